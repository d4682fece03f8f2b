//! Changes of sessions, as the agent SDK offers them: titles, tags, copies.

use serde_json::json;

use super::Transcripts;
use crate::clock;
use crate::error::{Error, Result};
use crate::message::Json;
use crate::storage::sqlite::transcript::read;
use crate::transcript::fork::Fork;
use crate::transcript::{TranscriptFork, TranscriptKey, tag};

impl Transcripts {
    /// Gives a session a title. A session that is unknown is created with it.
    ///
    /// # Errors
    /// [`Error::InvalidValue`] if the title is blank; as [`append`](Self::append).
    pub fn rename(&self, project: &str, session: &str, title: &str) -> Result<()> {
        let title = tag::title(title)?;
        self.note(project, session, json!({"type": "custom-title", "customTitle": title}))
    }

    /// Gives a session a tag, which replaces the former one; `None` removes it. A session that is unknown is created.
    ///
    /// Characters that are not shown (formats, private use) are removed from the tag.
    ///
    /// ```
    /// use talktree::Store;
    ///
    /// let transcripts = Store::open_in_memory()?.transcripts();
    /// transcripts.rename("p", "s", "Login")?;
    /// transcripts.tag("p", "s", Some("c\u{200B}i"))?;
    /// assert_eq!(transcripts.info("p", "s")?.and_then(|info| info.tag).as_deref(), Some("ci"));
    /// transcripts.tag("p", "s", None)?;
    /// assert_eq!(transcripts.info("p", "s")?.and_then(|info| info.tag), None);
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::InvalidValue`] if nothing of the tag is visible; as [`append`](Self::append).
    pub fn tag(&self, project: &str, session: &str, tag: Option<&str>) -> Result<()> {
        let tag = tag.map(tag::tag).transpose()?.unwrap_or_default();
        self.note(project, session, json!({"type": "tag", "tag": tag}))
    }

    /// Copies the conversation of a session to a new one and returns the id of the copy.
    ///
    /// The copy has new uuids, and each entry says what it is a
    /// copy of. Titles, tags, records of progress and subagents are not copied. The copy gets the owner of the session, or
    /// that of this handle if the session has none.
    ///
    /// ```
    /// use talktree::{Json, Store, TranscriptFork, TranscriptKey};
    ///
    /// let transcripts = Store::open_in_memory()?.transcripts();
    /// let entry = Json::parse(r#"{"type":"user","uuid":"1","message":{"content":"Fix the login."}}"#)?;
    /// transcripts.append(&TranscriptKey::new("p", "s"), &[entry])?;
    /// let copy = transcripts.fork("p", "s", &TranscriptFork::default())?;
    /// assert_eq!(transcripts.messages("p", &copy)?[0].session, copy);
    /// assert_eq!(transcripts.info("p", &copy)?.unwrap().summary, "Fix the login. (fork)");
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::UnknownSession`] if the session has no entries, [`Error::UnknownMessage`] if its `last` is not among them,
    /// [`Error::InvalidValue`] if there is no message to copy; as [`append`](Self::append).
    pub fn fork(&self, project: &str, session: &str, options: &TranscriptFork) -> Result<String> {
        let source = TranscriptKey::new(project, session);
        let entries = self.load(&source)?;
        let entries = entries.ok_or_else(|| Error::UnknownSession { id: session.into() })?;
        // Read after the entries, so that an owner who was set with them is seen.
        let owner =
            self.database.read(|conn| read::stored(conn, &source))?.and_then(|stored| stored.owner);
        let copies = owner.map_or_else(|| self.clone(), |owner| self.owned_by(owner));
        let id = clock::uuid().to_string();
        let (last, title) = (options.last.as_deref(), options.title.as_deref());
        let fork = Fork { source: session, id: &id, last, title };
        copies.append(&TranscriptKey::new(project, &id), &fork.entries(&entries)?)?;
        Ok(id)
    }

    /// Appends an entry about its session.
    fn note(&self, project: &str, session: &str, mut entry: serde_json::Value) -> Result<()> {
        entry["sessionId"] = session.into();
        entry["uuid"] = clock::uuid().to_string().into();
        let now = clock::now().to_rfc3339_opts(chrono::SecondsFormat::Millis, true);
        entry["timestamp"] = now.into();
        self.append(&TranscriptKey::new(project, session), &[Json::from(entry)]).map(drop)
    }
}
