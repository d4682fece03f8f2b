//! One line of JSON per message and the whole history in memory, as coding agents store conversations.
//!
//! Opening reads and parses the file. Each line names its parent. A history is the walk from the newest line to the
//! root; the newest summary replaces everything before the first message it keeps. A fork writes the lines of a path
//! into a new file.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::Result;
use crate::messages::TestMessage;
use crate::tasks::Chat;

pub(crate) struct Jsonl {
    folder: PathBuf,
    file: File,
    is_full: bool,
    entries: Vec<Entry>,
    positions: HashMap<String, usize>,
    forks: usize,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Entry {
    id: String,
    #[serde(rename = "parentId")]
    parent: Option<String>,
    timestamp: String,
    #[serde(flatten)]
    body: Body,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "camelCase")]
enum Body {
    Message { message: Content },
    Compaction { summary: String, first_kept: String },
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Content {
    role: String,
    content: Vec<Text>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Text {
    r#type: String,
    text: String,
}

impl Entry {
    fn text(&self) -> &str {
        match &self.body {
            Body::Message { message } => message.content.first().map_or("", |part| &part.text),
            Body::Compaction { summary, .. } => summary,
        }
    }
}

fn content(message: &TestMessage) -> Body {
    let text = Text { r#type: "text".to_owned(), text: message.text.clone() };
    Body::Message { message: Content { role: message.role.clone(), content: vec![text] } }
}

impl Jsonl {
    fn push(&mut self, id: &str, parent: Option<String>, body: Body) -> Result<()> {
        let timestamp = "2026-11-21T06:00:00.000Z".to_owned();
        let entry = Entry { id: id.to_owned(), parent, timestamp, body };
        let mut line = serde_json::to_vec(&entry)?;
        line.push(b'\n');
        self.file.write_all(&line)?;
        if self.is_full {
            self.file.sync_data()?;
        }
        self.keep(entry);
        Ok(())
    }

    fn keep(&mut self, entry: Entry) {
        self.positions.insert(entry.id.clone(), self.entries.len());
        self.entries.push(entry);
    }

    fn leaf(&self) -> Option<String> {
        self.entries.last().map(|entry| entry.id.clone())
    }

    /// Returns the path of the newest line, newest first.
    fn walk(&self) -> impl Iterator<Item = &Entry> {
        std::iter::successors(self.entries.last(), |entry| {
            let position = self.positions.get(entry.parent.as_ref()?)?;
            self.entries.get(*position)
        })
    }
}

impl Chat for Jsonl {
    type Item = Entry;
    type Id = String;

    const LACKS: &'static [(&'static str, &'static str)] = &[("search-first", "has no index")];
    const NOTES: &'static [(&'static str, &'static str)] = &[
        ("append", "no fsync, no checksum: weaker than a transaction"),
        ("append-deep", "no fsync, no checksum: weaker than a transaction"),
        ("append-full", "fsync after each line"),
        ("branch", "no fsync, no checksum: weaker than a transaction"),
        ("history-small", "copied from memory"),
        ("history", "copied from memory"),
        ("compacted", "copied from memory; shows only the newest summary"),
        ("last", "copied from memory"),
        ("fork-small", "a new file, no fsync"),
        ("fork", "a new file, no fsync"),
        ("search", "scans memory, newest first: stops at the 20th hit"),
        ("search-huge", "scans memory, newest first: stops at the 20th hit"),
        ("search-common", "scans memory, newest first: stops at the 20th hit"),
    ];
    const SUMMARIES: usize = 1;

    fn versions() -> String {
        "serde_json 1".to_owned()
    }

    fn open(folder: &Path, is_full: bool) -> Result<Self> {
        let path = folder.join("chat.jsonl");
        let file = OpenOptions::new().create(true).append(true).open(&path)?;
        let (entries, positions) = (Vec::new(), HashMap::new());
        let folder = folder.to_owned();
        let mut chat = Self { folder, file, is_full, entries, positions, forks: 0 };
        for line in std::fs::read_to_string(&path)?.lines() {
            chat.keep(serde_json::from_str(line)?);
        }
        Ok(chat)
    }

    fn append(&mut self, message: &TestMessage) -> Result<()> {
        self.push(&message.id, self.leaf(), content(message))
    }

    fn fill(&mut self, messages: &[TestMessage]) -> Result<()> {
        messages.iter().try_for_each(|message| self.append(message))
    }

    fn history(&mut self) -> Result<Vec<Entry>> {
        let mut shown = Vec::new();
        let mut kept: Option<&str> = None;
        let mut summary = None;
        for entry in self.walk() {
            match &entry.body {
                Body::Message { .. } => shown.push(entry.clone()),
                Body::Compaction { first_kept, .. } if summary.is_none() => {
                    kept = Some(first_kept);
                    summary = Some(entry.clone());
                }
                Body::Compaction { .. } => {}
            }
            if kept == Some(entry.id.as_str()) {
                break;
            }
        }
        shown.extend(summary);
        shown.reverse();
        Ok(shown)
    }

    fn last(&mut self, count: usize) -> Result<Vec<Entry>> {
        let mut last: Vec<Entry> = self.walk().take(count).cloned().collect();
        last.reverse();
        Ok(last)
    }

    fn text(item: &Entry) -> String {
        item.text().to_owned()
    }

    fn ids(&mut self) -> Result<Vec<String>> {
        let mut ids: Vec<String> = self.walk().map(|entry| entry.id.clone()).collect();
        ids.reverse();
        Ok(ids)
    }

    fn branch(&mut self, at: &String, message: &TestMessage) -> Result<()> {
        self.push(&message.id, Some(at.clone()), content(message))
    }

    fn fork(&mut self, at: &String) -> Result<String> {
        self.forks += 1;
        let name = format!("fork-{}.jsonl", self.forks);
        let mut path: Vec<&Entry> = self.walk().skip_while(|entry| entry.id != *at).collect();
        path.reverse();
        let mut file = BufWriter::new(File::create(self.folder.join(&name))?);
        for entry in path {
            serde_json::to_writer(&mut file, entry)?;
            file.write_all(b"\n")?;
        }
        file.flush()?;
        Ok(name)
    }

    fn fork_length(&mut self, name: &str) -> Result<usize> {
        let path = self.folder.join(name);
        let length = std::fs::read_to_string(&path)?.lines().count();
        std::fs::remove_file(path)?;
        Ok(length)
    }

    fn compact(&mut self, ids: &[String], next: &String, summary: &str) -> Result<()> {
        let body = Body::Compaction { summary: summary.to_owned(), first_kept: next.clone() };
        self.push(&format!("compaction-{}", ids[0]), self.leaf(), body)
    }

    fn search(&mut self, word: &str, limit: usize) -> Result<Vec<String>> {
        let found = self.entries.iter().rev().map(Entry::text).filter(|text| text.contains(word));
        Ok(found.take(limit).map(str::to_owned).collect())
    }
}
