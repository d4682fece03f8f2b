//! talktree, used as documented.

use std::path::Path;

use talktree::{Durability, Message, MessageId, Session, Store};

use crate::Result;
use crate::messages::TestMessage;
use crate::tasks::Chat;

const RANKED: &str = "reads and ranks all hits; returns snippets, branch, summary, copies";

pub(crate) struct Talktree {
    store: Store,
    chat: Session,
}

fn to_message(message: &TestMessage) -> Message {
    let text = message.text.clone();
    if message.role == "user" { Message::user(text) } else { Message::assistant(text) }
}

impl Chat for Talktree {
    type Item = Message;
    type Id = MessageId;

    const LACKS: &'static [(&'static str, &'static str)] = &[];
    const NOTES: &'static [(&'static str, &'static str)] = &[
        ("fork-small", "copies the messages; the next search indexes the copies"),
        ("fork", "copies the messages; the next search indexes the copies"),
        ("search", RANKED),
        ("search-huge", RANKED),
        ("search-common", RANKED),
    ];
    const SUMMARIES: usize = 20;

    fn versions() -> String {
        format!("talktree {}, SQLite {}", env!("CARGO_PKG_VERSION"), rusqlite::version())
    }

    fn open(folder: &Path, is_full: bool) -> Result<Self> {
        let durability = if is_full { Durability::Full } else { Durability::Normal };
        let store = Store::options().durability(durability).open(folder.join("store.db"))?;
        let chat = store.session("chat")?;
        Ok(Self { store, chat })
    }

    fn append(&mut self, message: &TestMessage) -> Result<()> {
        self.chat.append(to_message(message))?;
        Ok(())
    }

    fn fill(&mut self, messages: &[TestMessage]) -> Result<()> {
        self.chat.append_all(messages.iter().map(to_message))?;
        Ok(())
    }

    fn history(&mut self) -> Result<Vec<Message>> {
        Ok(self.chat.history()?)
    }

    fn last(&mut self, count: usize) -> Result<Vec<Message>> {
        Ok(self.chat.page().limit(count).run()?.messages)
    }

    fn text(item: &Message) -> String {
        item.text()
    }

    fn ids(&mut self) -> Result<Vec<MessageId>> {
        Ok(self.chat.raw_history()?.into_iter().map(|message| message.id).collect())
    }

    fn branch(&mut self, at: &MessageId, message: &TestMessage) -> Result<()> {
        self.chat.append_to(at, to_message(message))?;
        Ok(())
    }

    fn fork(&mut self, at: &MessageId) -> Result<String> {
        Ok(self.chat.fork(at, "fork")?.id().to_string())
    }

    fn fork_length(&mut self, name: &str) -> Result<usize> {
        Ok(self.store.session(name)?.history()?.len())
    }

    fn compact(&mut self, ids: &[MessageId], _: &MessageId, summary: &str) -> Result<()> {
        self.chat.add_compaction(summary, &ids[0], &ids[ids.len() - 1])?;
        Ok(())
    }

    fn search(&mut self, word: &str, limit: usize) -> Result<Vec<String>> {
        let found = self.chat.search(word).limit(limit).run()?;
        Ok(found.hits.iter().map(|hit| hit.snippet.marked("", "")).collect())
    }
}
