//! A crowd: many clients in one session, behind one key, at one owner's block. What each did is in a log of its own.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use talktree::{Block, Message, Session, SessionManager, Store, Usage};

use crate::Result;
use crate::soak::worker::{BUSY, is_passing, until_answered};

const KEY: &str = "crowd";
const OWNER: &str = "crowd";
const BLOCK: &str = "memory";
/// A client adds a text to the block, or usage, once in so many messages.
const SELDOM: u32 = 8;

/// What a client did: the number of each thing, and whether it was acknowledged.
#[derive(Debug, Default)]
struct Log {
    messages: BTreeMap<u32, bool>,
    texts: BTreeMap<u32, bool>,
    usages: BTreeMap<u32, bool>,
}

impl Log {
    fn read(folder: &Path, client: u32) -> Result<Self> {
        let text = std::fs::read_to_string(folder.join(format!("client-{client}.log")));
        let mut log = Self::default();
        for line in text.unwrap_or_default().lines() {
            let (kind, number) = line.split_once(' ').ok_or("a line without a number")?;
            let (of, is_done) = match kind {
                "say" => (&mut log.messages, false),
                "said" => (&mut log.messages, true),
                "note" => (&mut log.texts, false),
                "noted" => (&mut log.texts, true),
                "use" => (&mut log.usages, false),
                "used" => (&mut log.usages, true),
                _ => return Err(format!("unknown line {line:?}").into()),
            };
            of.insert(number.parse()?, is_done);
        }
        Ok(log)
    }
}

fn manager(store: &Store) -> talktree::Result<SessionManager> {
    SessionManager::builder(store).block(BLOCK, Block::stored().per_owner()).build()
}

/// Returns the one session.
pub(super) fn open(store: &Store) -> talktree::Result<Session> {
    manager(store)?.resume(KEY).owner(OWNER).open()
}

fn text(client: u32, number: u32) -> String {
    format!("<client {client} says {number}>")
}

/// Plays one client until the others are done.
pub(super) fn play(url: &str, folder: &Path, client: u32, is_over: &AtomicBool) -> Result<()> {
    let first = Log::read(folder, client)?.messages.keys().next_back().map_or(0, |last| last + 1);
    let path = folder.join(format!("client-{client}.log"));
    let mut log = OpenOptions::new().create(true).append(true).open(path)?;
    let store = until_answered(|| Store::options().busy_timeout(BUSY).connect(url))?;
    let bot = manager(&store)?;
    for number in first.. {
        if is_over.load(Ordering::Relaxed) {
            break;
        }
        let text = text(client, number);
        let said = Message::user(&text).with_id(text.clone());
        note(&mut log, "say", number)?;
        let chat = until_answered(|| {
            let chat = bot.resume(KEY).owner(OWNER).open()?;
            chat.append(said.clone()).map(|_| chat)
        })?;
        note(&mut log, "said", number)?;
        // These are not repeated: they would be there twice.
        match number % SELDOM {
            0 => {
                note(&mut log, "note", number)?;
                if answered(chat.context().append(BLOCK, &text))? {
                    note(&mut log, "noted", number)?;
                }
            }
            4 => {
                note(&mut log, "use", number)?;
                if answered(chat.add_usage(None, &Usage { input: 1, ..Usage::default() }))? {
                    note(&mut log, "used", number)?;
                }
            }
            _ => {}
        }
    }
    Ok(())
}

/// Writes a line with one system call: a killed process leaves whole lines.
fn note(log: &mut File, kind: &str, number: u32) -> Result<()> {
    Ok(log.write_all(format!("{kind} {number}\n").as_bytes())?)
}

fn answered<T>(answer: talktree::Result<T>) -> talktree::Result<bool> {
    match answer {
        Err(error) if is_passing(&error) => Ok(false),
        answer => answer.map(|_| true),
    }
}

/// What became of the crowd.
#[derive(Debug, Default)]
pub(super) struct Findings {
    pub(super) faults: Vec<String>,
    /// How many messages, texts and usages were acknowledged.
    pub(super) acknowledged: [usize; 3],
    /// How many texts and usages were not acknowledged.
    pub(super) unknown: usize,
}

/// Compares the session with the logs.
pub(super) fn check(store: &Store, folder: &Path, clients: u32) -> Result<Findings> {
    let mut out = Findings::default();
    let bindings = manager(store)?.bindings(KEY)?;
    if bindings.len() != 1 {
        out.faults.push(format!("one key leads to {} sessions", bindings.len()));
    }
    let chat = open(store)?;
    let path = chat.raw_history()?;
    let stored = chat.all_messages().count();
    if stored != path.len() {
        out.faults.push(format!("{stored} messages, {} of them on one path", path.len()));
    }
    if let Some(other) = path.iter().find(|message| message.id.as_str() != message.text()) {
        out.faults.push(format!("{} says {:?}", other.id, other.text()));
    }
    let texts: Vec<String> = path.iter().map(Message::text).collect();
    let block = chat.context().block(BLOCK)?.map(|block| block.content).unwrap_or_default();
    let (mut known, mut usages) = (0, [0, 0]);
    for client in 0..clients {
        let log = Log::read(folder, client)?;
        let prefix = format!("<client {client} says ");
        let own: Vec<_> = texts.iter().filter(|text| text.starts_with(&prefix)).collect();
        known += own.len();
        // In the order in which they were written; one that was not acknowledged may be missing.
        let mut left = own.iter().peekable();
        for (number, is_done) in &log.messages {
            let text = text(client, *number);
            if left.next_if(|found| ***found == text).is_none() && *is_done {
                out.faults.push(format!("{text} was acknowledged, and is not in its place"));
            }
        }
        if let Some(other) = left.next() {
            out.faults.push(format!("{other} is there twice, or nobody wrote it"));
        }
        for (number, is_done) in &log.texts {
            let (text, least) = (text(client, *number), usize::from(*is_done));
            let found = block.matches(&text).count();
            if !(least..=1).contains(&found) {
                out.faults.push(format!("{text} is {found} times in the block"));
            }
        }
        let done = |of: &BTreeMap<u32, bool>| of.values().filter(|is_done| **is_done).count();
        usages[0] += done(&log.usages);
        usages[1] += log.usages.len();
        let all = [done(&log.messages), done(&log.texts), done(&log.usages)];
        for (sum, one) in out.acknowledged.iter_mut().zip(all) {
            *sum += one;
        }
        out.unknown += log.texts.len() + log.usages.len() - all[1] - all[2];
    }
    if known != path.len() {
        out.faults.push(format!("{} messages are nobody's", path.len() - known));
    }
    let sum = usize::try_from(chat.usage()?.input)?;
    if !(usages[0]..=usages[1]).contains(&sum) {
        out.faults.push(format!("the usage is {sum}, and not {usages:?}"));
    }
    out.faults.truncate(50);
    Ok(out)
}
