//! What a model's provider is given.
//!
//! [`validate_for`] holds any request to the provider's published rules.

#[cfg(test)]
mod tests;
mod validate;

pub use validate::{Problem, Provider, validate_for};
