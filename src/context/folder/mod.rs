//! Files whose texts a model sees: a folder of skills, a folder of documents, a text.
//!
//! A skill is a document that a model loads by name when it needs it: `NAME/SKILL.md` or `NAME.md`; its name is its key. Each
//! call reads the folder, so that the next refresh of a prompt shows what was edited. `scan` finds the keys, `text_file` opens
//! and reads one, also for `documents` (a folder whose files are stored) and `watched` (a text).
//!
//! Invariant: a bad file affects no other file. The program gets a [`FileNotice`] about it; no path of the host is shown to a
//! model.

mod documents;
mod notice;
mod scan;
mod text_file;
mod watched;

use std::collections::BTreeSet;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use talktree_text::foreign;

use super::front_matter::FrontMatter;
use super::label::listed;
use super::provider::{ReadProvider, SkillProvider};
use crate::callback;
use crate::error::{BoxError, Error, Result};
use crate::id::shorten;
pub use documents::{DocumentFolder, FolderChanges};
pub use notice::FileNotice;
use text_file::TextFile;
pub(super) use watched::WatchedText;

/// The longest key, in bytes: what file systems allow for a name.
const MAX_KEY_BYTES: usize = 255;

type Handler = Arc<dyn Fn(&FileNotice) + Send + Sync>;

/// A folder of skills that a model can load: `NAME/SKILL.md` or `NAME.md`.
///
/// The prompt lists keys and descriptions. A description is that of the front matter (`description: ..`), else the first
/// heading or line. A file that cannot be a skill is left out: one that cannot be read, is not UTF-8, has more than 1 MiB,
/// or is a link that leads out of the folder; and all skills after the first 1 000 by name. Hidden files and folders in
/// folders are not looked at.
///
/// ```
/// use std::sync::mpsc;
/// use talktree::{ReadProvider, SkillFolder, SkillProvider};
///
/// # let folder = tempfile::tempdir()?;
/// std::fs::write(folder.path().join("pdf.md"), "---\ndescription: Reads PDFs\n---\nUse pdftotext.")?;
/// std::fs::write(folder.path().join("photo.md"), b"\xFF\xD8\xFF\xE0")?;
/// let (sender, notices) = mpsc::channel();
/// let skills = SkillFolder::open(folder.path())?
///     .on_notice(move |notice| { let _ = sender.send(notice.to_string()); });
/// assert_eq!(skills.get()?, "- pdf: Reads PDFs");
/// assert_eq!(skills.load("pdf")?.as_deref(), Some("Use pdftotext."));
/// assert!(skills.load("../secret").is_err());
/// assert!(notices.try_recv()?.ends_with("photo.md: left out: it is not a text in UTF-8, from byte 0 on"));
/// # Ok::<(), talktree::BoxError>(())
/// ```
#[derive(Clone)]
pub struct SkillFolder {
    path: PathBuf,
    allowed: Option<BTreeSet<String>>,
    handler: Option<Handler>,
    /// The notices that the handler got and that still hold. Clones share them.
    handled: Arc<Mutex<BTreeSet<FileNotice>>>,
}

impl SkillFolder {
    /// Returns a provider of the skills in this folder.
    ///
    /// # Errors
    /// [`Error::Io`] if it is missing, is not a folder, or cannot be read.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let given = path.as_ref();
        // Absolute: a program may change its working directory.
        let path = std::path::absolute(given).map_err(|source| io(given, source))?;
        fs::read_dir(&path).map_err(|source| io(given, source))?;
        Ok(Self { path, allowed: None, handler: None, handled: Arc::default() })
    }

    /// Keeps only the skills with these keys; all others are ignored.
    ///
    /// ```
    /// use talktree::{ReadProvider, SkillFolder, SkillProvider};
    ///
    /// # let folder = tempfile::tempdir()?;
    /// for key in ["pdf", "shell"] {
    ///     std::fs::write(folder.path().join(format!("{key}.md")), "# How to")?;
    /// }
    /// let skills = SkillFolder::open(folder.path())?.allow(["pdf"]);
    /// assert_eq!(skills.get()?, "- pdf: How to");
    /// assert_eq!(skills.load("shell")?, None);
    /// # Ok::<(), talktree::BoxError>(())
    /// ```
    #[must_use]
    pub fn allow<K: Into<String>>(self, keys: impl IntoIterator<Item = K>) -> Self {
        Self { allowed: Some(keys.into_iter().map(Into::into).collect()), ..self }
    }

    /// Calls `handler` with each notice, when the folder is read for a prompt or a skill is loaded.
    ///
    /// It gets a notice once, and again only if the notice did not hold in between.
    ///
    /// [`SkillFolder`] has an example.
    #[must_use]
    pub fn on_notice(self, handler: impl Fn(&FileNotice) + Send + Sync + 'static) -> Self {
        Self { handler: Some(Arc::new(handler)), ..self }
    }

    /// Reads the folder and returns all notices: what is left out, and what is odd; at most 1 000. No handler is called.
    ///
    /// ```
    /// use talktree::SkillFolder;
    ///
    /// # let folder = tempfile::tempdir()?;
    /// std::fs::write(folder.path().join("pdf.md"), "---\ndescription: [a, list]\n---\n# PDF")?;
    /// let notices = SkillFolder::open(folder.path())?.notices()?;
    /// assert_eq!(notices[0].why, "the description in its front matter is not one text; its first heading is shown");
    /// assert!(!notices[0].is_left_out);
    /// # Ok::<(), talktree::BoxError>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Io`] if the folder is gone or cannot be read.
    pub fn notices(&self) -> Result<Vec<FileNotice>> {
        Ok(self.list()?.1)
    }

    /// Returns the lines that list the skills, and the notices.
    fn list(&self) -> Result<(Vec<String>, Vec<FileNotice>)> {
        let failed = |source| io(&self.path, source);
        let root = self.path.canonicalize().map_err(failed)?;
        let mut scan = scan::scan(&root, self.allowed.as_ref()).map_err(failed)?;
        let mut lines = Vec::new();
        for key in std::mem::take(&mut scan.keys) {
            let document = match TextFile::open(&root, &key) {
                Ok(Some(document)) => document,
                // It was removed since the folder was read.
                Ok(None) => continue,
                Err(notice) => {
                    scan.note(notice);
                    continue;
                }
            };
            let path = document.path.clone();
            match document.head() {
                Ok((head, is_whole)) => {
                    let matter = FrontMatter::of(&head);
                    if let Some(why) = fault(&matter, is_whole) {
                        scan.note(FileNotice::odd(path, why));
                    }
                    lines.push(listed(&key, &description(&matter)));
                }
                Err(notice) => scan.note(notice),
            }
        }
        Ok((lines, scan.notices))
    }

    /// Calls the handler with the notices that it did not get yet. `is_all`: no other notice holds.
    fn handle(&self, notices: Vec<FileNotice>, is_all: bool) {
        let Some(handler) = &self.handler else { return };
        let notices: BTreeSet<_> = notices.into_iter().collect();
        let mut handled = self.handled.lock().unwrap_or_else(PoisonError::into_inner);
        let new: Vec<_> = notices.difference(&handled).cloned().collect();
        if is_all {
            *handled = notices;
        } else if handled.len() < scan::MAX_NOTICES {
            handled.extend(notices);
        }
        // The handler may read the folder.
        drop(handled);
        for notice in new {
            // The prompt is complete: a panic of the handler must not make it look failed.
            let _ = callback::caught(|| handler(&notice));
        }
    }
}

impl fmt::Debug for SkillFolder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, allowed, .. } = self;
        f.debug_struct("SkillFolder")
            .field("path", path)
            .field("allowed", allowed)
            .finish_non_exhaustive()
    }
}

impl ReadProvider for SkillFolder {
    fn get(&self) -> std::result::Result<String, BoxError> {
        let (lines, notices) = self.list()?;
        self.handle(notices, true);
        Ok(lines.join("\n"))
    }
}

impl SkillProvider for SkillFolder {
    fn load(&self, key: &str) -> std::result::Result<Option<String>, BoxError> {
        check_key(key).map_err(|(given, why)| Error::InvalidValue {
            what: "skill key",
            given,
            why,
        })?;
        if self.allowed.as_ref().is_some_and(|allowed| !allowed.contains(key)) {
            return Ok(None);
        }
        // A model reads the error, so it has no path.
        let root = self.path.canonicalize();
        let root = root.map_err(|error| format!("the folder of skills cannot be read: {error}"))?;
        let text = TextFile::open(&root, key)
            .and_then(|document| document.map(TextFile::whole).transpose());
        match text {
            Ok(text) => Ok(text.map(|text| FrontMatter::of(&text).body.to_owned())),
            Err(notice) => {
                let why =
                    format!("skill {} cannot be loaded: {}", foreign::quoted(key), notice.why);
                self.handle(vec![notice], false);
                Err(why.into())
            }
        }
    }
}

fn io(path: &Path, source: std::io::Error) -> Error {
    Error::Io { path: path.to_owned(), source }
}

/// Checks that a key is a plain file name on every system; the error is the key, shortened, and the reason.
fn check_key(key: &str) -> std::result::Result<(), (String, String)> {
    let why = if key.trim().is_empty() {
        "it is blank".to_owned()
    } else if key.len() > MAX_KEY_BYTES {
        format!("it has {} bytes, over the limit of {MAX_KEY_BYTES}", key.len())
    } else if key.starts_with('.') {
        "it begins with a full stop".to_owned()
    } else if let Some(c) = key.chars().find(|c| matches!(c, '/' | '\\' | ':')) {
        // On Windows a colon separates a drive or an alternate data stream.
        format!("it has a {c:?}; a key is the name of a skill, no path")
    } else if key.contains(foreign::breaks_line) {
        "it has a line break or a control character".to_owned()
    } else {
        return Ok(());
    };
    Err((shorten(key).into_owned(), why))
}

/// Returns what is wrong with the front matter of a document.
fn fault(matter: &FrontMatter<'_>, is_whole: bool) -> Option<&'static str> {
    if matter.is_open {
        return Some(match is_whole {
            true => {
                "its front matter has no end, a line of ---; it is shown as part of the document"
            }
            false => "its front matter has no end, a line of ---, in the first 64 KiB",
        });
    }
    let is_odd = matter.nested.contains("description");
    is_odd.then_some(
        "the description in its front matter is not one text; its first heading is shown",
    )
}

fn description(matter: &FrontMatter<'_>) -> String {
    let stated = matter.fields.get("description").filter(|text| !text.trim().is_empty());
    if let Some(stated) = stated {
        return stated.clone();
    }
    let mut lines = matter.body.lines().map(str::trim).filter(|line| !line.is_empty());
    let first = lines.clone().next();
    let heading = lines.find(|line| heading(line).is_some()).and_then(heading);
    heading.or(first).unwrap_or_default().to_owned()
}

fn heading(line: &str) -> Option<&str> {
    let text = line.trim_start_matches('#');
    (text.len() < line.len() && text.starts_with(' ')).then(|| text.trim())
}
