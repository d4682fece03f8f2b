//! What a model's provider is given.
//!
//! [`truncate`] cuts what is old and long. [`validate_for`] holds any request to the provider's published rules.

#[cfg(test)]
mod tests;
mod truncate;
mod validate;

pub use truncate::{TruncateOptions, truncate};
pub use validate::{Problem, Provider, validate_for};
