//! Two conversations whose summaries are written in the background, by one worker.
//!
//! No append waits for a summary: the worker takes compactions from a queue and runs them one after the other. When the
//! last handle is dropped, the worker runs what is left in the queue, and ends.
//!
//! ```console
//! $ cargo run --example background
//! ```

use std::error::Error;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use talktree::{BoxError, Message, Session, Store};

/// How long a summary takes.
const THINKING: Duration = Duration::from_millis(50);
const SESSIONS: [&str; 2] = ["kitchen", "garden"];
const TURNS: usize = 200;

fn main() -> Result<(), Box<dyn Error>> {
    let store = Store::open_in_memory()?;
    let (queue, jobs) = mpsc::channel::<Box<dyn FnOnce() + Send>>();
    let worker = thread::spawn(move || jobs.into_iter().for_each(|job| job()));

    let thinking = Arc::new(AtomicUsize::new(0));
    let open = |id: &str| -> talktree::Result<Session> {
        let (queue, thinking) = (queue.clone(), Arc::clone(&thinking));
        let summarize = move |prompt: &str| -> Result<String, BoxError> {
            thinking.fetch_add(1, Ordering::SeqCst);
            thread::sleep(THINKING); // a model is asked here
            thinking.fetch_sub(1, Ordering::SeqCst);
            Ok(format!("They made plans, in {} lines.", prompt.lines().count()))
        };
        store
            .session_builder(id)
            .summarizer(summarize)
            .compact_after(2_000)
            .compact_on(move |job| drop(queue.send(job)))
            .on_error(|error| println!("not compacted: {error}"))
            .open()
    };
    let chats = SESSIONS.map(open).into_iter().collect::<talktree::Result<Vec<_>>>()?;
    drop(queue);

    let mut meanwhile = 0;
    for turn in 0..TURNS {
        for chat in &chats {
            chat.append(Message::user(format!("Plan {turn}: {}", "dig and cook ".repeat(6))))?;
            meanwhile += usize::from(thinking.load(Ordering::SeqCst) > 0);
        }
    }
    println!("{meanwhile} appends returned while a summary was being written.");

    // The handles hold the queue.
    drop(chats);
    worker.join().map_err(|_| "the worker panicked")?;
    for id in SESSIONS {
        let chat = store.session(id)?;
        let (stored, shown) = (chat.path_length()?, chat.history()?.len());
        let request = chat.request_tokens()?;
        println!(
            "{id}: {stored} messages are stored, a model sees {shown} of {} tokens, with {} summaries so far",
            request.total,
            chat.compactions()?.len(),
        );
    }
    Ok(())
}
