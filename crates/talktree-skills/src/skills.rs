//! A folder of skills: which keys it has, their descriptions, their documents.
//!
//! A skill is a document that a model loads by name when it needs it: `NAME/SKILL.md` or `NAME.md`; its name is its key. Each
//! call reads the folder, so that the next refresh of a prompt shows what was edited.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs::{self, DirEntry, File};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use talktree::{BoxError, Document, Error, ReadProvider, Result, SkillProvider};
use talktree_text::foreign;

use crate::front_matter::FrontMatter;
use crate::text_file::{self, is_absence, open_in, why};
use crate::{FileNotice, check_key, failed, folder};

/// The file in the folder of a skill.
const DOCUMENT: &str = "SKILL.md";

/// The most skills of a folder: every prompt lists them.
const MAX_SKILLS: usize = 1_000;

/// The most notices of one reading.
const MAX_NOTICES: usize = 1_000;

/// How many entries of a folder without a document are looked at.
const MAX_LOOKED_AT: usize = 100;

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
/// use talktree::{ReadProvider, SkillProvider};
/// use talktree_skills::SkillFolder;
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
        let path = folder(path.as_ref())?;
        Ok(Self { path, allowed: None, handler: None, handled: Arc::default() })
    }

    /// Keeps only the skills with these keys; all others are ignored.
    ///
    /// ```
    /// use talktree::{ReadProvider, SkillProvider};
    /// use talktree_skills::SkillFolder;
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
    /// use talktree_skills::SkillFolder;
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
        let io = |source| failed(&self.path, source);
        let root = self.path.canonicalize().map_err(io)?;
        let (keys, mut notices) = scan(&root, self.allowed.as_ref()).map_err(io)?;
        let mut lines = Vec::new();
        for key in keys {
            let read = open(&root, &key).and_then(|document| {
                // It was removed since the folder was read.
                let Some((path, file)) = document else { return Ok(None) };
                match text_file::head(file) {
                    Ok((head, is_whole)) => Ok(Some((path, head, is_whole))),
                    Err(why) => Err(FileNotice::left_out(path, why)),
                }
            });
            match read {
                Ok(None) => {}
                Ok(Some((path, head, is_whole))) => {
                    let matter = FrontMatter::of(&head);
                    notices
                        .extend(fault(&matter, is_whole).map(|why| FileNotice::listed(path, why)));
                    lines.push(Document::new(key, "").described(description(&matter)).list_line());
                }
                Err(notice) => notices.push(notice),
            }
        }
        notices.truncate(MAX_NOTICES);
        Ok((lines, notices))
    }

    /// Calls the handler with the notices that it did not get yet. `is_all`: no other notice holds.
    fn handle(&self, notices: Vec<FileNotice>, is_all: bool) {
        let Some(handler) = &self.handler else { return };
        let notices: BTreeSet<_> = notices.into_iter().collect();
        let mut handled = self.handled.lock().unwrap_or_else(PoisonError::into_inner);
        let new: Vec<_> = notices.difference(&handled).cloned().collect();
        if is_all {
            *handled = notices;
        } else if handled.len() < MAX_NOTICES {
            handled.extend(notices);
        }
        // The handler may read the folder.
        drop(handled);
        for notice in new {
            // The prompt is complete: a panic of the handler must not make it look failed.
            let _ = catch_unwind(AssertUnwindSafe(|| handler(&notice)));
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
        check_key(key).map_err(|why| Error::InvalidValue {
            what: "skill key",
            given: foreign::short_line(key, 80),
            why,
        })?;
        if self.allowed.as_ref().is_some_and(|allowed| !allowed.contains(key)) {
            return Ok(None);
        }
        // A model reads the error, so it has no path.
        let root = self.path.canonicalize();
        let root = root.map_err(|error| format!("the folder of skills cannot be read: {error}"))?;
        let text = open(&root, key).and_then(|document| {
            let Some((path, file)) = document else { return Ok(None) };
            text_file::whole(file).map(Some).map_err(|why| FileNotice::left_out(path, why))
        });
        match text {
            Ok(text) => Ok(text.map(|text| FrontMatter::of(&text).body.to_owned())),
            Err(notice) => {
                let key = foreign::quoted(key);
                let error = format!("skill {key} cannot be loaded: {}", notice.why);
                self.handle(vec![notice], false);
                Err(error.into())
            }
        }
    }
}

/// Opens the document of a key; `None` if there is none. `root` is the canonical path of the folder.
///
/// A folder has priority over a file of the same key, even if the file in the folder cannot be read.
fn open(root: &Path, key: &str) -> std::result::Result<Option<(PathBuf, File)>, FileNotice> {
    let places = [Path::new(key).join(DOCUMENT), PathBuf::from(format!("{key}.md"))];
    let is_there = |place: &PathBuf| {
        !fs::symlink_metadata(root.join(place)).is_err_and(|error| is_absence(&error))
    };
    let Some(place) = places.into_iter().find(is_there) else { return Ok(None) };
    Ok(Some((root.join(&place), open_in(root, &place)?)))
}

/// Returns the keys in a folder, and notices of what is left out or odd. With `allowed` all others are ignored.
fn scan(
    root: &Path,
    allowed: Option<&BTreeSet<String>>,
) -> std::io::Result<(Vec<String>, Vec<FileNotice>)> {
    let mut notices = Vec::new();
    // By key: whether there is a folder, and whether there is a file.
    let mut found: BTreeMap<String, [bool; 2]> = BTreeMap::new();
    let mut has_more = false;
    for entry in fs::read_dir(root)? {
        let entry = entry?;
        let (key, place) = match look_at(&entry) {
            Ok(Some(found)) => found,
            Ok(None) => continue,
            Err(notice) => {
                // Nobody has asked for it.
                if allowed.is_none() && notices.len() < MAX_NOTICES {
                    notices.push(notice);
                }
                continue;
            }
        };
        if allowed.is_some_and(|allowed| !allowed.contains(&key)) {
            continue;
        }
        found.entry(key).or_default()[place] = true;
        if found.len() > MAX_SKILLS {
            has_more = true;
            found.pop_last();
        }
    }
    if has_more {
        let why = format!(
            "it holds over {MAX_SKILLS} skills; those after the first {MAX_SKILLS}, by name, are left out"
        );
        notices.push(FileNotice::left_out(root, why));
    }
    for key in allowed.into_iter().flatten().filter(|key| !found.contains_key(*key)) {
        let why = "it is allowed, but there is no such skill";
        notices.push(FileNotice::left_out(root.join(key), why));
    }
    notices.extend(look_alikes(root, &found));
    Ok((found.into_keys().collect(), notices))
}

/// Returns notices of keys with two documents, and of keys that differ by case alone.
fn look_alikes(root: &Path, found: &BTreeMap<String, [bool; 2]>) -> Vec<FileNotice> {
    let (mut notices, mut by_case) = (Vec::new(), BTreeMap::new());
    for (key, places) in found {
        let file = root.join(format!("{key}.md"));
        if *places == [true, true] {
            let why = format!("{key}/{DOCUMENT} is the document of this key");
            notices.push(FileNotice::left_out(&file, why));
        }
        if let Some(other) = by_case.insert(key.to_lowercase(), key) {
            let path = if places[0] { root.join(key) } else { file };
            let why =
                format!("its key differs from {other:?} by case alone; a model may confuse them");
            notices.push(FileNotice::listed(path, why));
        }
    }
    notices
}

/// Returns the key of an entry of the folder, and whether it is a folder (0) or a file (1); `None` if it is no skill. The error
/// is about what looks like a skill and is none.
fn look_at(entry: &DirEntry) -> std::result::Result<Option<(String, usize)>, FileNotice> {
    let path = entry.path();
    let name = entry.file_name();
    if name.as_encoded_bytes().starts_with(b".") {
        return Ok(None);
    }
    let Some(name) = name.to_str() else {
        // A model could not name it.
        return Err(FileNotice::left_out(path, "its name is not Unicode"));
    };
    let is_folder = match fs::metadata(&path) {
        Ok(found) => found.is_dir(),
        // It was removed since the folder was read.
        Err(error) if is_absence(&error) && fs::symlink_metadata(&path).is_err() => {
            return Ok(None);
        }
        Err(error) => return Err(FileNotice::left_out(path, why(error))),
    };
    let found = if is_folder {
        match fs::symlink_metadata(path.join(DOCUMENT)) {
            Ok(_) => (name, 0),
            Err(error) if is_absence(&error) => return look_inside(&path).map(|()| None),
            Err(error) => return Err(FileNotice::left_out(path, why(error))),
        }
    } else {
        match name.rsplit_once('.') {
            Some((key, "md")) => (key, 1),
            Some((_, end)) if ["md", "markdown"].contains(&&*end.to_lowercase()) => {
                let why = "only files whose names end in .md are skills";
                return Err(FileNotice::left_out(path, why));
            }
            _ => return Ok(None),
        }
    };
    match check_key(found.0) {
        Ok(()) => Ok(Some((found.0.to_owned(), found.1))),
        Err(why) => Err(FileNotice::left_out(path, format!("its name cannot be a key: {why}"))),
    }
}

/// Looks in a folder without a document for a file that its author may take for the document.
fn look_inside(folder: &Path) -> std::result::Result<(), FileNotice> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten().take(MAX_LOOKED_AT);
    for entry in entries {
        if entry.file_name().eq_ignore_ascii_case(DOCUMENT) {
            let why = format!("the document of a skill is named {DOCUMENT}");
            return Err(FileNotice::left_out(entry.path(), why));
        }
        if fs::symlink_metadata(entry.path().join(DOCUMENT)).is_ok() {
            let why = "folders in folders are not read; move it one folder up";
            return Err(FileNotice::left_out(entry.path(), why));
        }
    }
    Ok(())
}

/// Returns what is wrong with the front matter of a document.
fn fault(matter: &FrontMatter<'_>, is_whole: bool) -> Option<&'static str> {
    match (matter.is_open, is_whole) {
        (true, true) => {
            Some("its front matter has no end, a line of ---; it is shown as part of the document")
        }
        (true, false) => Some("its front matter has no end, a line of ---, in the first 64 KiB"),
        (false, _) => matter.is_nested.then_some(
            "the description in its front matter is not one text; its first heading is shown",
        ),
    }
}

fn description(matter: &FrontMatter<'_>) -> String {
    let mut lines = matter.body.lines().map(str::trim).filter(|line| !line.is_empty());
    let first = lines.clone().next();
    let stated = matter.description.as_deref().filter(|text| !text.is_empty());
    stated.or_else(|| lines.find_map(heading)).or(first).unwrap_or_default().to_owned()
}

fn heading(line: &str) -> Option<&str> {
    let text = line.trim_start_matches('#');
    (text.len() < line.len() && text.starts_with(' ')).then(|| text.trim())
}
