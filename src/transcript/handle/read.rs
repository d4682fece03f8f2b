//! Reads of sessions, as the agent SDK offers them.

use super::Transcripts;
use crate::error::Result;
use crate::storage::sqlite::transcript::read;
use crate::transcript::{TranscriptInfo, TranscriptKey, TranscriptMessage, chain, subagent};

impl Transcripts {
    /// Returns the sessions of a project as a list shows them, the one that was appended to last first.
    ///
    /// Sessions of subagents, and those without title and prompt, are left out. It reads the summaries and no transcript.
    ///
    /// # Errors
    /// [`Error::Storage`](crate::Error::Storage) if the database fails.
    pub fn infos(&self, project: &str) -> Result<Vec<TranscriptInfo>> {
        let mut summaries = self.list_session_summaries(project)?;
        summaries.sort_by_key(|summary| std::cmp::Reverse(summary.mtime));
        Ok(summaries.iter().filter_map(|summary| summary.info(None)).collect())
    }

    /// Returns what a list shows of a session; `None` if it is unknown or hidden.
    ///
    /// It is made from the session's summary, as in [`infos`](Self::infos). The SDK's own function searches the ends of the
    /// transcript, and takes the time of its last entry instead of that of the append.
    ///
    /// ```
    /// use talktree::{Json, Store, TranscriptKey};
    ///
    /// let transcripts = Store::open_in_memory()?.transcripts();
    /// let entry = Json::parse(r#"{"type":"user","message":{"content":"Fix the login."}}"#)?;
    /// transcripts.append(&TranscriptKey::new("p", "s"), &[entry])?;
    /// transcripts.rename("p", "s", "Login")?;
    /// let info = transcripts.info("p", "s")?.expect("it has a title");
    /// assert_eq!((info.summary.as_str(), info.first_prompt.as_deref()), ("Login", Some("Fix the login.")));
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Storage`](crate::Error::Storage) if the database fails.
    pub fn info(&self, project: &str, session: &str) -> Result<Option<TranscriptInfo>> {
        let summary = self.database.read(|conn| read::summary(conn, project, session))?;
        Ok(summary.and_then(|summary| summary.info(None)))
    }

    /// Returns the messages of a session's conversation, oldest first; none if it is unknown.
    ///
    /// The conversation leads to the message that was written last. After a compaction it begins with the summary. The
    /// results of parallel tool calls follow their answer. Messages of subagents and of the program itself are left out.
    ///
    /// ```
    /// use talktree::{Json, Role, Store, TranscriptKey};
    ///
    /// let transcripts = Store::open_in_memory()?.transcripts();
    /// let entry = |text: &str| Json::parse(text);
    /// transcripts.append(&TranscriptKey::new("p", "s"), &[
    ///     entry(r#"{"type":"user","uuid":"1","message":{"content":"Name a colour."}}"#)?,
    ///     entry(r#"{"type":"assistant","uuid":"2","parentUuid":"1","message":{"content":"red"}}"#)?,
    ///     entry(r#"{"type":"assistant","uuid":"3","parentUuid":"1","message":{"content":"blue"}}"#)?,
    /// ])?;
    /// let messages = transcripts.messages("p", "s")?;
    /// assert_eq!((messages[1].role.clone(), messages[1].uuid.as_str()), (Role::Assistant, "3"));
    /// assert_eq!(messages[1].message.value()["content"], "blue");
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`load`](Self::load).
    pub fn messages(&self, project: &str, session: &str) -> Result<Vec<TranscriptMessage>> {
        let entries = self.load(&TranscriptKey::new(project, session))?;
        Ok(chain::messages(&entries.unwrap_or_default()))
    }

    /// Returns the ids of a session's subagents, in any order.
    ///
    /// # Errors
    /// [`Error::Storage`](crate::Error::Storage) if the database fails.
    pub fn subagents(&self, project: &str, session: &str) -> Result<Vec<String>> {
        let mut found: Vec<String> = Vec::new();
        let mut seen = std::collections::HashSet::new();
        for subpath in self.list_subkeys(project, session)? {
            if let Some(id) = subagent::id_of(&subpath)
                && seen.insert(id.to_owned())
            {
                found.push(id.to_owned());
            }
        }
        Ok(found)
    }

    /// Returns the messages of a subagent, oldest first, with what started it; none if it is unknown.
    ///
    /// ```
    /// use talktree::{Json, Store, TranscriptKey};
    ///
    /// let transcripts = Store::open_in_memory()?.transcripts();
    /// let key = TranscriptKey::new("p", "s").subpath("subagents/agent-7f");
    /// transcripts.append(&key, &[
    ///     Json::parse(r#"{"type":"user","uuid":"1","isSidechain":true,"message":{"content":"Check."}}"#)?,
    ///     Json::parse(r#"{"type":"agent_metadata","toolUseId":"call"}"#)?,
    /// ])?;
    /// assert_eq!(transcripts.subagents("p", "s")?, ["7f"]);
    /// let messages = transcripts.subagent_messages("p", "s", "7f")?;
    /// assert_eq!(messages[0].parent_call.as_deref(), Some("call"));
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`load`](Self::load).
    pub fn subagent_messages(
        &self,
        project: &str,
        session: &str,
        agent: &str,
    ) -> Result<Vec<TranscriptMessage>> {
        let subpaths = self.list_subkeys(project, session)?;
        let of_agent = |subpath: &String| subagent::id_of(subpath) == Some(agent);
        let Some(subpath) = subpaths.into_iter().find(of_agent).filter(|_| !agent.is_empty())
        else {
            return Ok(Vec::new());
        };
        let entries = self.load(&TranscriptKey::new(project, session).subpath(subpath))?;
        Ok(chain::messages_of_subagent(&entries.unwrap_or_default()))
    }
}
