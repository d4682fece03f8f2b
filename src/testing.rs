//! The conformance suite for a storage of your own.
