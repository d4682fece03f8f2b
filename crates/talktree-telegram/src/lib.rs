//! Telegram's Bot API, for a bot that loses nothing and says nothing twice.
//!
//! A [`Client`] keeps the API's rate limits and retries failed calls; no error contains the token. [`Update`] reads an update
//! and ignores what it does not know. [`split()`] cuts a long text into messages. [`Workers`] run a thread for each chat that
//! has work, and [`Permits`] let the oldest updates go first. [`Stop`] ends all waits when the program ends. All calls block;
//! nothing is stored here.

#[path = "../../talktree-client/src/addresses.rs"]
mod addresses;
mod client;
mod pace;
mod permits;
mod split;
mod stop;
mod update;
mod workers;

pub use client::{
    Address, CallError, Client, Edited, Event, Me, Settings, backoff, poll_again_after,
};
pub use permits::{Permit, Permits};
pub use split::{MAX_UNITS, split};
pub use stop::Stop;
pub use update::{Incoming, Update, number};
pub use workers::Workers;
