//! The outline of a whole tree: what a person looks at.
