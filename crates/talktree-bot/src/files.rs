//! The files that the model reads: the system text, skills, knowledge. A change counts from the next message on.

use std::path::Path;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use talktree::{Block, Context, Store};
use talktree_skills::{DocumentFolder, SkillFolder, TextFile};

use crate::error::Result;
use crate::lock::lock;

/// The label of the block with the knowledge.
pub const KNOWLEDGE: &str = "knowledge";

/// The system text if the configuration names no file.
const SYSTEM_TEXT: &str = "\
You answer in a chat. Be friendly and brief; write as people write in a messenger, without headings.
Before each message a line says who wrote it and when. Several people may write in one chat: do not confuse them.
What you learn about the person and will need later, write into your memory. Before you say that you do not know \
something, search the past conversations and the knowledge. Say so if you find nothing; invent nothing.";

/// The shortest time between two looks at the folder of knowledge: with many chats, each message would look.
const INTERVAL: Duration = Duration::from_secs(1);

/// Returns the block of the system text: that of the file, or the bot's own if the path is empty.
///
/// # Errors
/// [`Error::Store`](crate::Error::Store) if the file cannot be read.
pub fn system_text(path: &Path) -> Result<Block> {
    match path.as_os_str().is_empty() {
        true => Ok(Block::text(SYSTEM_TEXT)),
        false => Ok(Block::read(TextFile::open(path)?)),
    }
}

/// Returns the block of a folder of skills.
///
/// # Errors
/// [`Error::Store`](crate::Error::Store) if the folder cannot be read.
pub fn skills(folder: &Path) -> Result<Block> {
    let folder = SkillFolder::open(folder)?
        .on_notice(|notice| tracing::warn!(%notice, "a skill is left out or unclear"));
    Ok(Block::skills(folder).describe("What you can look up before you do something"))
}

/// A folder whose files are documents of a block that all sessions share.
#[derive(Debug)]
pub struct Knowledge {
    folder: DocumentFolder,
    context: Context,
    /// When the folder was last looked at.
    looked: Mutex<Option<Instant>>,
}

impl Knowledge {
    /// Returns the folder at this path, after storing its files.
    ///
    /// # Errors
    /// [`Error::Store`](crate::Error::Store) if the folder cannot be read; as every write.
    pub fn open(store: &Store, folder: &Path) -> Result<Self> {
        // Sessions have the block read-only; this context writes it.
        let block = Block::knowledge().across_sessions();
        let context =
            store.session_builder(KNOWLEDGE).block(KNOWLEDGE, block).open()?.context().clone();
        let folder = DocumentFolder::open(folder)?;
        let knowledge = Self { folder, context, looked: Mutex::default() };
        knowledge.refresh()?;
        Ok(knowledge)
    }

    /// Stores what changed in the folder since the last time.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn refresh(&self) -> Result<()> {
        let mut looked = lock(&self.looked);
        if looked.is_some_and(|at| at.elapsed() < INTERVAL) {
            return Ok(());
        }
        *looked = Some(Instant::now());
        drop(looked);
        let changes = self.folder.update(&self.context, KNOWLEDGE)?;
        for notice in &changes.left_out {
            tracing::warn!(%notice, "a file of knowledge is left out");
        }
        let (written, removed) = (changes.written.len(), changes.removed.len());
        if written + removed > 0 {
            tracing::info!(written, removed, "knowledge was read");
        }
        Ok(())
    }
}
