//! Exports what a person wrote in all sessions, for a person who asks to see it.
//!
//! JSON lines, version 1: a `session` record, which has the id alone, is followed by the messages that the person wrote in it,
//! each with its tags. `usage` records are those of the answers to the person.
//!
//! ```json
//! {"format":"talktree-author","version":1}
//! {"type":"author","id":"telegram:42"}
//! {"type":"session","id":"group"}
//! {"type":"message","message":{"id":"a",..},"tags":["spam"]}
//! {"type":"usage","session":"group","message":"b","model":"..","input":100,..}
//! {"type":"end","sessions":1,"messages":1,"compactions":0,"labels":0,"checksum":".."}
//! ```

use std::io::Write;

use serde::Serialize;

use super::jsonl::{Lines, Typed};
use super::markdown::{one_line, write_message};
use super::owner::{OwnerExport, OwnerFormat, fence_json, heading, item, write_rest};
use super::{output_error, spooled};
use crate::catalog::{ListedMessage, MessageFilter};
use crate::clock;
use crate::error::Result;
use crate::id::{SessionId, check_name};
use crate::message::Message;
use crate::storage::owner_data::{LedgerOf, LedgerRow};
use crate::store::Store;

/// How many messages one read returns.
const PAGE: usize = 256;

impl Store {
    /// Writes what a person wrote in all sessions, those of others and those in the trash included. The person is named by
    /// [`Author::key`](crate::Author::key).
    ///
    /// That is each message as it was written, with its tags and the id of its session, and the usage of the answers to the
    /// person. Nothing that others wrote is in it, nor the names of their sessions. The person's own sessions are in
    /// [`export_owner`](Self::export_owner). All is from one snapshot.
    ///
    /// ```
    /// use talktree::export::OwnerFormat;
    /// use talktree::{Author, Message, Store};
    ///
    /// let store = Store::open_in_memory()?;
    /// for id in ["ann", "bob"] {
    ///     let message = Message::user(format!("I am {id}.")).from(&Author::new(id));
    ///     store.session("group")?.append(message)?;
    /// }
    /// let mut file = Vec::new();
    /// let written = store.export_author("ann", OwnerFormat::Jsonl, &mut file)?;
    /// assert_eq!((written.sessions, written.messages), (1, 1));
    /// let text = String::from_utf8_lossy(&file);
    /// assert!(text.contains("I am ann.") && !text.contains("bob"));
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`export_owner`](Self::export_owner).
    pub fn export_author(
        &self,
        author: &str,
        format: OwnerFormat,
        output: &mut impl Write,
    ) -> Result<OwnerExport> {
        check_name("author", author)?;
        spooled(self.spool(), output, |mut output| {
            let store = self.snapshot()?;
            let mut written = OwnerExport::default();
            match format {
                OwnerFormat::Jsonl => {
                    let header = r#"{"format":"talktree-author","version":1}"#;
                    let mut lines = Lines::begin_with(header, &mut output)?;
                    lines.line(&Typed {
                        kind: "author",
                        rest: &serde_json::json!({ "id": author }),
                    })?;
                    each(&store, author, &mut |data| {
                        count(&mut written, &data);
                        write_line(data, &mut lines)
                    })?;
                    lines.end()?;
                }
                OwnerFormat::Markdown => {
                    let name = one_line(author);
                    heading("#", format_args!("Written by {name}"), clock::now(), &mut output)?;
                    each(&store, author, &mut |data| {
                        count(&mut written, &data);
                        write_section(data, &mut output)
                    })?;
                }
            }
            Ok(written)
        })
    }
}

/// One piece of what a person wrote.
enum Data<'a> {
    Session(&'a SessionId),
    Message(&'a ListedMessage),
    Usage(&'a LedgerRow),
}

fn count(written: &mut OwnerExport, data: &Data<'_>) {
    match data {
        Data::Session(_) => written.sessions += 1,
        Data::Message(_) => written.messages += 1,
        Data::Usage(_) => written.usage += 1,
    }
}

fn each(store: &Store, author: &str, with: &mut dyn FnMut(Data<'_>) -> Result<()>) -> Result<()> {
    let filter = MessageFilter { includes_trash: true, ..MessageFilter::written_by(author) };
    let (mut after, mut session) = (None, None);
    loop {
        let page = store.list_messages(&filter, after, PAGE)?;
        for found in &page.messages {
            if session.as_ref() != Some(&found.session) {
                with(Data::Session(&found.session))?;
                session = Some(found.session.clone());
            }
            with(Data::Message(found))?;
        }
        after = page.after;
        if after.is_none() {
            break;
        }
    }
    let mut after = None;
    loop {
        let rows = store.ledger(LedgerOf::Author(author), after)?;
        let Some(last) = rows.last() else { return Ok(()) };
        after = Some(last.place);
        rows.iter().try_for_each(|row| with(Data::Usage(row)))?;
    }
}

#[derive(Serialize)]
struct MessageLine<'a> {
    message: &'a Message,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    tags: &'a [String],
}

fn write_line<W: Write>(data: Data<'_>, lines: &mut Lines<'_, W>) -> Result<()> {
    match data {
        Data::Session(id) => {
            lines.at.counts.sessions += 1;
            lines.line(&Typed { kind: "session", rest: &serde_json::json!({ "id": id }) })
        }
        Data::Message(ListedMessage { message, tags, .. }) => {
            lines.at.counts.messages += 1;
            lines.line(&Typed { kind: "message", rest: &MessageLine { message, tags } })
        }
        Data::Usage(row) => lines.line(&Typed { kind: "usage", rest: row }),
    }
}

fn write_section(data: Data<'_>, output: &mut impl Write) -> Result<()> {
    match data {
        Data::Session(id) => {
            heading("#", format_args!("Session {}", one_line(id.as_str())), clock::now(), output)
        }
        Data::Message(ListedMessage { message, tags, .. }) => {
            write_message(message, output).map_err(output_error)?;
            write_rest(message, output)?;
            tags.iter().try_for_each(|tag| item("Tag", tag, output))
        }
        Data::Usage(row) => {
            heading("##", "Usage", row.used_at, output)?;
            fence_json(row, output)
        }
    }
}
