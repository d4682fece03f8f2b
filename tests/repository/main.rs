//! The code and the documents of this repository.

mod documents;
mod layers;
#[path = "../common/server.rs"]
#[allow(dead_code, unreachable_pub, reason = "it starts no server")]
mod server;
mod statements;
