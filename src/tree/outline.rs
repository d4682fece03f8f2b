//! The outline of a whole tree: what a person looks at.

/// The outline.
#[derive(Debug, Clone, Default)]
pub struct Tree;
/// A segment.
#[derive(Debug, Clone, Default)]
pub struct Segment;
