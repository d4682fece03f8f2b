//! The code and the documents of this repository.

mod documents;
mod layers;
mod statements;
