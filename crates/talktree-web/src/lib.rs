//! A page over a store: people browse sessions, branches and summaries in a browser, search, and see what a model saw.
//!
//! [`Server`] offers it on the loopback interface; [`export_html`] writes one session as a file that opens without a network.
//!
//! - `server`: connections, who may ask, headers; `routes`: what is asked, and its parameters;
//! - `read`, `seen`, `write`: what the store answers, and does;
//! - `view`: a message as the page shows it; `html`: the page itself, of the files in `page/`.
//!
//! Invariant: no text of a store becomes HTML, script or an address that is loaded. The server sends JSON, and the page makes text
//! nodes of it. Its content security policy allows its own script and style, by a random nonce, and nothing from elsewhere.

mod html;
mod read;
mod routes;
mod seen;
mod server;
mod view;
mod write;

pub use html::export_html;
pub use server::{Options, Server};

/// Runs the examples of the document.
#[cfg(doctest)]
mod documents {
    #[doc = include_str!("../../../docs/browse.md")]
    mod browse {}
}
