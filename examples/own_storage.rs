//! A storage of one's own: a session that a program keeps in memory, with summaries that replace what is old.
//!
//!     cargo run --example own_storage
//!
//! It keeps messages in a list, each with its parent, and searches them one by one. Everything else, such as prompts for
//! summaries, comes from the session over it.

use std::sync::{Mutex, MutexGuard, PoisonError};

use talktree::{
    Appended, Compaction, CompactionId, CompactionOptions, Error, Extract, Message, MessageId,
    Parent, Result, Session, SessionId, SessionProvider,
};

struct InMemory {
    id: SessionId,
    kept: Mutex<Kept>,
}

/// Messages in order of creation; `parent` of each is its place in the tree.
#[derive(Default)]
struct Kept {
    messages: Vec<Message>,
    compactions: Vec<Compaction>,
}

impl InMemory {
    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn unknown(&self, id: &MessageId) -> Error {
        Error::UnknownMessage { session: self.id.clone(), id: id.clone() }
    }

    /// Returns the stored path to a place, oldest first.
    fn path(&self, kept: &Kept, leaf: Option<&MessageId>) -> Result<Vec<Message>> {
        let mut at = match leaf {
            Some(leaf) => Some(kept.place(leaf).ok_or_else(|| self.unknown(leaf))?),
            None => kept.messages.last(),
        };
        let mut path = Vec::new();
        while let Some(message) = at {
            path.push(message.clone());
            at = message.parent.as_ref().and_then(|parent| kept.find(parent));
        }
        path.reverse();
        Ok(path)
    }
}

impl Kept {
    fn find(&self, id: &MessageId) -> Option<&Message> {
        self.messages.iter().find(|message| message.id == *id)
    }

    /// Returns the message that an id names as a place: a summary means the last message of its range.
    fn place(&self, id: &MessageId) -> Option<&Message> {
        let Some(summary) = CompactionId::from_message(id) else { return self.find(id) };
        let compaction = self.compactions.iter().find(|known| known.id == summary)?;
        self.find(&compaction.last)
    }
}

impl SessionProvider for InMemory {
    fn id(&self) -> &SessionId {
        &self.id
    }

    fn message(&self, id: &MessageId) -> Result<Option<Message>> {
        Ok(self.kept().find(id).cloned())
    }

    fn history(&self, leaf: Option<&MessageId>) -> Result<Vec<Message>> {
        let kept = self.kept();
        let mut path = self.path(&kept, leaf)?;
        let mut shown = Vec::new();
        while let Some(message) = path.pop() {
            let ends_here = kept.compactions.iter().filter(|known| known.last == message.id);
            let starts = ends_here.map(|known| {
                let start = path.iter().position(|other| other.id == known.first);
                (start.unwrap_or(path.len()), known)
            });
            // The one that reaches furthest back; of equals the newest.
            match starts.rev().min_by_key(|(start, _)| *start) {
                Some((start, known)) => {
                    path.truncate(start);
                    shown.push(known.to_message(path.last().map(|above| above.id.clone())));
                }
                None if message.is_hidden => {}
                None => shown.push(message),
            }
        }
        shown.reverse();
        Ok(shown)
    }

    fn latest_leaf(&self) -> Result<Option<Message>> {
        Ok(self.kept().messages.last().cloned())
    }

    fn branches(&self, id: Option<&MessageId>) -> Result<Vec<Message>> {
        let kept = self.kept();
        let parent = id.map(|id| kept.place(id).ok_or_else(|| self.unknown(id))).transpose()?;
        let parent = parent.map(|parent| parent.id.clone());
        Ok(kept.messages.iter().filter(|message| message.parent == parent).cloned().collect())
    }

    fn path_length(&self, leaf: Option<&MessageId>) -> Result<u64> {
        Ok(self.path(&self.kept(), leaf)?.len() as u64)
    }

    fn append(&self, parent: &Parent, messages: &[Message]) -> Result<Vec<Appended>> {
        let mut kept = self.kept();
        let place = |id: &MessageId| kept.place(id).ok_or_else(|| self.unknown(id));
        let mut above = match parent {
            Parent::Root => None,
            Parent::Message(id) => Some(place(id)?.id.clone()),
            Parent::SiblingOf(id) => place(id)?.parent.clone(),
            _ => kept.messages.last().map(|message| message.id.clone()),
        };
        let mut appended = Vec::new();
        for message in messages {
            let (id, mut message) = (message.id.clone(), message.clone());
            if let Some(known) = kept.find(&id) {
                appended.push(Appended::known(id.clone(), known.parts != message.parts));
            } else {
                message.parent = above;
                appended.push(Appended::new(id.clone()));
                kept.messages.push(message);
            }
            above = Some(id);
        }
        Ok(appended)
    }

    fn update(&self, message: &Message) -> Result<bool> {
        let mut kept = self.kept();
        let stored = kept.messages.iter_mut().find(|stored| stored.id == message.id);
        let stored = stored.ok_or_else(|| self.unknown(&message.id))?;
        let (before, message) = (stored.clone(), message.clone());
        (stored.role, stored.parts, stored.metadata) =
            (message.role, message.parts, message.metadata);
        Ok(*stored != before)
    }

    fn delete(&self, ids: &[MessageId]) -> Result<()> {
        let mut kept = self.kept();
        ids.iter().try_for_each(|id| kept.find(id).map(drop).ok_or_else(|| self.unknown(id)))?;
        for id in ids {
            let parent = kept.find(id).and_then(|message| message.parent.clone());
            kept.messages.retain(|message| message.id != *id);
            for child in kept.messages.iter_mut().filter(|it| it.parent.as_ref() == Some(id)) {
                child.parent.clone_from(&parent);
            }
            kept.compactions.retain(|known| known.first != *id && known.last != *id);
        }
        Ok(())
    }

    fn clear(&self) -> Result<()> {
        *self.kept() = Kept::default();
        Ok(())
    }

    fn add_compaction(&self, compaction: &Compaction) -> Result<()> {
        let mut kept = self.kept();
        let path = self.path(&kept, Some(&compaction.last))?;
        let first = path.iter().find(|message| message.id == compaction.first);
        first.ok_or_else(|| self.unknown(&compaction.first))?;
        kept.compactions.push(compaction.clone());
        Ok(())
    }

    fn compactions(&self) -> Result<Vec<Compaction>> {
        Ok(self.kept().compactions.clone())
    }

    fn search(&self, query: &str, limit: usize) -> Result<Vec<Message>> {
        let has_all =
            |message: &&Message| query.split_whitespace().all(|word| message.text().contains(word));
        Ok(self.kept().messages.iter().rev().filter(has_all).take(limit).cloned().collect())
    }
}

fn main() -> Result<()> {
    let chat = Session::over(InMemory { id: "garden".into(), kept: Mutex::default() });
    for day in 1..=200 {
        chat.append(Message::user(format!("Day {day}: how are the beans doing?")))?;
        chat.append(Message::assistant(format!("On day {day} they are {} cm high.", day * 3)))?;
    }
    let options = CompactionOptions::default().protect_head(1).keep_recent_tokens(200);
    if let Ok(done) = chat.compact(&Extract, &options)? {
        println!("{} messages are a summary of {} tokens now", done.messages, done.tokens_after);
    }
    println!("{} messages are stored, a model sees {}", chat.path_length()?, chat.history()?.len());
    println!("found: {}", chat.search("Day 7: beans", 1)?[0].text());
    Ok(())
}
