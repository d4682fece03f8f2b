//! A conversation of some hundred turns with summaries written by a model of any server with OpenAI's API, such as Ollama.
//!
//! ```console
//! $ cargo run -p talktree-client --example ollama -- http://localhost:11434/v1 llama3.2
//! $ MODEL_KEY=sk-.. cargo run -p talktree-client --example ollama -- https://api.openai.com/v1 gpt-4o-mini 100
//! ```

#[path = "../../../examples/talk/mod.rs"]
mod talk;

use std::error::Error;
use std::time::Duration;

use talk::{Window, spaced};
use talktree::{Store, Summary};
use talktree_client::Client;

const USAGE: &str = "usage: ollama URL MODEL [TURNS]

URL is the address of an API up to /v1. The key, if one is needed, is read from the environment variable MODEL_KEY.";

/// Above this many tokens the conversation is compacted; the newest half of them is kept unchanged.
const THRESHOLD: u64 = 2_000;

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let (url, name, turns) = match &args[..] {
        [url, name] => (url, name, 200),
        [url, name, turns] => (url, name, turns.parse()?),
        _ => return Err(USAGE.into()),
    };
    let key = std::env::var("MODEL_KEY").unwrap_or_default();
    let model = Client::openai(name).base_url(url).key(key).timeout(Duration::from_secs(120));
    // First of all: this reports a mistyped name at once, and loads a slow model.
    model.complete("Answer with one word: ready")?;

    let store = Store::open_in_memory()?;
    let chat = store
        .session_builder("workshop")
        .summarizer(move |prompt: &str| {
            model.complete(prompt).map(|text| Summary::new(text).by(model.model()))
        })
        .compact_after(THRESHOLD)
        .on_error(|error| println!("not compacted, will be retried: {error}"))
        .open()?;

    let _subscription = talk::print_compactions(&chat);
    for number in 1..=turns {
        for message in talk::turn(number) {
            chat.append(message)?; // waits for the model if it compacts
        }
        println!("turn {number:4}  {} of {}", Window::of(&chat)?, spaced(THRESHOLD));
    }

    if !talk::is_complete(&chat, turns)? {
        return Err("the stored messages differ from the script".into());
    }
    println!("\nAll {} messages are stored unchanged.", spaced(chat.path_length()?));
    if let Some(last) = chat.compactions()?.pop() {
        println!("\nThe last summary:\n\n{}", last.summary);
    }
    Ok(())
}
