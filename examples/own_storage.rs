//! A storage of one's own: a session that a program keeps in memory, with summaries that replace what is old.
//!
//!     cargo run --example own_storage
//!
//! It keeps messages in a list, each with its parent, and searches them one by one. Everything else, such as prompts for
//! summaries, comes from the session over it.

use std::sync::{Mutex, MutexGuard, PoisonError};

use talktree::{
    Appended, Compaction, CompactionId, CompactionOptions, CompactionOutcome, Error, Extract,
    Message, MessageId, Parent, Result, Session, SessionId, SessionProvider,
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
    fn new(id: impl Into<SessionId>) -> Self {
        Self { id: id.into(), kept: Mutex::default() }
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn unknown(&self, id: &MessageId) -> Error {
        Error::UnknownMessage { session: self.id.clone(), id: id.clone() }
    }

    /// Returns the stored path to a place, oldest first.
    fn path(&self, kept: &Kept, leaf: Option<&MessageId>) -> Result<Vec<Message>> {
        let mut at = match leaf {
            Some(leaf) => Some(kept.place(leaf).ok_or_else(|| self.unknown(leaf))?.id.clone()),
            None => kept.messages.last().map(|message| message.id.clone()),
        };
        let mut path = Vec::new();
        while let Some(message) = at.as_ref().and_then(|id| kept.find(id)) {
            path.push(message.clone());
            at.clone_from(&message.parent);
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
        match CompactionId::from_message(id) {
            None => self.find(id),
            Some(summary) => {
                let compaction = self.compactions.iter().find(|known| known.id == summary)?;
                self.find(&compaction.last)
            }
        }
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
            let starts = ends_here.filter_map(|known| {
                let above = path.iter().position(|other| other.id == known.first);
                let start = if known.first == message.id { Some(path.len()) } else { above };
                start.map(|start| (start, known))
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
        let parent = match id {
            Some(id) => Some(kept.place(id).ok_or_else(|| self.unknown(id))?.id.clone()),
            None => None,
        };
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
            match kept.find(&message.id) {
                Some(known) => {
                    appended
                        .push(Appended::known(message.id.clone(), known.parts != message.parts));
                }
                None => {
                    let mut message = message.clone();
                    message.parent = above;
                    appended.push(Appended::new(message.id.clone()));
                    kept.messages.push(message);
                }
            }
            above = Some(message.id.clone());
        }
        Ok(appended)
    }

    fn update(&self, message: &Message) -> Result<bool> {
        let mut kept = self.kept();
        let stored = kept.messages.iter_mut().find(|stored| stored.id == message.id);
        let stored = stored.ok_or_else(|| self.unknown(&message.id))?;
        let before = stored.clone();
        stored.role.clone_from(&message.role);
        stored.parts.clone_from(&message.parts);
        stored.metadata.clone_from(&message.metadata);
        Ok(*stored != before)
    }

    fn delete(&self, ids: &[MessageId]) -> Result<()> {
        let mut kept = self.kept();
        for id in ids {
            kept.find(id).ok_or_else(|| self.unknown(id))?;
        }
        for id in ids {
            let Some(at) = kept.messages.iter().position(|message| message.id == *id) else {
                continue;
            };
            let parent = kept.messages.remove(at).parent;
            for child in
                kept.messages.iter_mut().filter(|message| message.parent.as_ref() == Some(id))
            {
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
        if path.iter().all(|message| message.id != compaction.first) {
            return Err(self.unknown(&compaction.first));
        }
        kept.compactions.push(compaction.clone());
        Ok(())
    }

    fn compactions(&self) -> Result<Vec<Compaction>> {
        Ok(self.kept().compactions.clone())
    }

    fn search(&self, query: &str, limit: usize) -> Result<Vec<Message>> {
        let query = query.to_lowercase();
        let has_all = |message: &&Message| {
            let text = message.text().to_lowercase();
            query.split_whitespace().all(|word| text.contains(word))
        };
        Ok(self.kept().messages.iter().rev().filter(has_all).take(limit).cloned().collect())
    }
}

fn main() -> Result<()> {
    let chat = Session::over(InMemory::new("garden"));
    for day in 1..=30 {
        chat.append(Message::user(format!(
            "Day {day}: how are the beans doing? {}",
            "Tell me. ".repeat(20)
        )))?;
        chat.append(Message::assistant(format!("On day {day} they are {} cm high.", day * 3)))?;
    }
    let options = CompactionOptions::default().protect_head(1).keep_recent_tokens(200);
    if let CompactionOutcome::Compacted(done) = chat.compact(&Extract, &options)? {
        println!(
            "{} messages, {} tokens, are a summary of {} now",
            done.messages, done.tokens_before, done.tokens_after
        );
    }
    println!("{} messages are stored, a model sees {}", chat.path_length()?, chat.history()?.len());
    println!("found: {}", chat.search("day 7: beans", 1)?[0].text());
    Ok(())
}
