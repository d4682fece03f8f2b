//! Several hosts on one server, lost connections, crashes. Without a server nothing of it runs: `just test-postgres`.
#![cfg(all(unix, feature = "postgres"))]

#[path = "../common/mod.rs"]
mod common;
mod crash;
mod cut;
mod hosts;
mod portions;
#[expect(dead_code, reason = "a part of it is used")]
mod proxy;
