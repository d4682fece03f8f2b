//! The context's storage, seen from inside.
