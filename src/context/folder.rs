//! A folder of skills: documents that a model loads by name when it needs them.
//!
//! A skill is `NAME/SKILL.md` or `NAME.md`; its name is its key. Each call reads the folder, so that the next refresh of a
//! prompt shows what was edited.
//!
//! Invariant: nothing outside the folder is read, whatever a key, a path or a symbolic link says. The canonical path of a
//! document is checked before the document is opened and again when it is open: it may have been replaced by a link in
//! between.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

use super::front_matter;
use super::label::{breaks_line, listed};
use super::provider::{ReadProvider, SkillProvider};
use crate::error::{BoxError, Error, Result};
use crate::id::shorten;

/// The largest skill document, in bytes: 1 MiB.
const MAX_DOCUMENT_BYTES: usize = 1 << 20;

/// How much of a document is read to find its description, in bytes.
const HEAD_BYTES: usize = 64 << 10;

/// The most skills of a folder: every prompt lists them.
const MAX_SKILLS: usize = 1_000;

/// The longest key, in bytes: what file systems allow for a name.
const MAX_KEY_BYTES: usize = 255;

/// The document in the folder of a skill.
const DOCUMENT: &str = "SKILL.md";

/// A folder of skills that a model can load: `NAME/SKILL.md` or `NAME.md`.
///
/// The prompt lists keys and descriptions. A description is that of the front matter (`description: ..`), else the first
/// heading or line. At most 1 000 skills of at most 1 MiB each.
///
/// ```
/// use talktree::{ReadProvider, SkillFolder, SkillProvider};
///
/// # let folder = tempfile::tempdir()?;
/// std::fs::write(folder.path().join("pdf.md"), "---\ndescription: Reads PDFs\n---\nUse pdftotext.")?;
/// let skills = SkillFolder::open(folder.path())?;
/// assert_eq!(skills.get()?, "- pdf: Reads PDFs");
/// assert_eq!(skills.load("pdf")?.as_deref(), Some("Use pdftotext."));
/// assert!(skills.load("../secret").is_err());
/// # Ok::<(), talktree::BoxError>(())
/// ```
#[derive(Debug, Clone)]
pub struct SkillFolder {
    path: PathBuf,
    allowed: Option<BTreeSet<String>>,
}

impl SkillFolder {
    /// Returns the skills of this folder.
    ///
    /// # Errors
    /// [`Error::Io`] if it is missing, is not a folder, or cannot be read.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let given = path.as_ref();
        // Absolute: a program may change its working directory.
        let path = std::path::absolute(given).map_err(|source| io(given, source))?;
        fs::read_dir(&path).map_err(|source| io(given, source))?;
        Ok(Self { path, allowed: None })
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

    fn is_allowed(&self, key: &str) -> bool {
        self.allowed.as_ref().is_none_or(|allowed| allowed.contains(key))
    }

    fn root(&self) -> Result<PathBuf> {
        self.path.canonicalize().map_err(|source| io(&self.path, source))
    }

    /// Returns the keys in the folder, in order.
    fn keys(&self) -> std::result::Result<BTreeSet<String>, BoxError> {
        let failed = |source| io(&self.path, source);
        let mut keys = BTreeSet::new();
        for entry in fs::read_dir(&self.path).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let name = entry.file_name();
            // A model cannot name a file whose name is not Unicode.
            let Some(name) = name.to_str() else { continue };
            let key = match name.strip_suffix(".md") {
                Some(key) if !entry.path().is_dir() => key,
                _ if entry.path().join(DOCUMENT).exists() => name,
                _ => continue,
            };
            if check_key(key).is_ok() && self.is_allowed(key) {
                keys.insert(key.to_owned());
            }
            if keys.len() > MAX_SKILLS {
                let folder = self.path.display();
                return Err(format!(
                    "{folder} holds over {MAX_SKILLS} skills; allow those that are meant"
                )
                .into());
            }
        }
        Ok(keys)
    }

    /// Opens the document of a key; `None` if there is none.
    fn document(&self, key: &str) -> Result<Option<(PathBuf, File)>> {
        let root = self.root()?;
        for place in [Path::new(key).join(DOCUMENT), PathBuf::from(format!("{key}.md"))] {
            let Some(path) = resolved(&root, key, &place)? else { continue };
            // To open a named pipe would wait for its writer.
            if !path.is_file() {
                continue;
            }
            let file = File::open(&path).map_err(|source| io(&path, source))?;
            if resolved(&root, key, &place)?.as_ref() != Some(&path) || !is_at(&file, &path)? {
                let source = std::io::Error::other("it was replaced while it was opened");
                return Err(io(&path, source));
            }
            return Ok(Some((path, file)));
        }
        Ok(None)
    }
}

impl ReadProvider for SkillFolder {
    fn get(&self) -> std::result::Result<String, BoxError> {
        let mut list = Vec::new();
        for key in self.keys()? {
            // It may have been removed since the folder was read.
            let (path, file) = match self.document(&key) {
                Ok(Some(found)) => found,
                // A link that leads out of the folder is not listed; loading it is an error.
                Ok(None) | Err(Error::InvalidName { .. }) => continue,
                Err(error) => return Err(error.into()),
            };
            let mut head = Vec::new();
            let limited = file.take(HEAD_BYTES as u64);
            { limited }.read_to_end(&mut head).map_err(|source| io(&path, source))?;
            list.push(listed(&key, &description(&String::from_utf8_lossy(&head))));
        }
        Ok(list.join("\n"))
    }
}

impl SkillProvider for SkillFolder {
    fn load(&self, key: &str) -> std::result::Result<Option<String>, BoxError> {
        check_key(key)?;
        if !self.is_allowed(key) {
            return Ok(None);
        }
        let Some((path, file)) = self.document(key)? else { return Ok(None) };
        let size = file.metadata().map_err(|source| io(&path, source))?.len();
        let mut bytes = Vec::new();
        // The file may grow while it is read.
        let mut limited = file.take(MAX_DOCUMENT_BYTES as u64 + 1);
        limited.read_to_end(&mut bytes).map_err(|source| io(&path, source))?;
        if bytes.len() > MAX_DOCUMENT_BYTES {
            let size = usize::try_from(size).unwrap_or(usize::MAX).max(bytes.len());
            let (what, max) = ("the document of a skill", MAX_DOCUMENT_BYTES);
            return Err(Error::TooLarge { what, bytes: size, max }.into());
        }
        let text = String::from_utf8(bytes)
            .map_err(|source| io(&path, std::io::Error::new(ErrorKind::InvalidData, source)))?;
        let (fields, body) = front_matter::split(&text);
        let body = if fields.is_empty() { body } else { body.trim_start_matches(['\r', '\n']) };
        Ok(Some(body.to_owned()))
    }
}

/// Returns the canonical path of a place in the folder; `None` if nothing is there.
fn resolved(root: &Path, key: &str, place: &Path) -> Result<Option<PathBuf>> {
    let path = match root.join(place).canonicalize() {
        Ok(path) => path,
        Err(error) if is_absence(&error) => return Ok(None),
        Err(source) => return Err(io(&root.join(place), source)),
    };
    if path.starts_with(root) {
        return Ok(Some(path));
    }
    Err(Error::InvalidName {
        what: "skill key",
        given: shorten(key).into_owned(),
        why: format!("{} leads out of the folder of skills", place.display()),
    })
}

/// Returns whether the open file is the one at a path, and the path is not a link.
#[cfg(unix)]
fn is_at(file: &File, path: &Path) -> Result<bool> {
    use std::os::unix::fs::MetadataExt;

    let failed = |source| io(path, source);
    let at = match fs::symlink_metadata(path) {
        Ok(at) => at,
        Err(error) if is_absence(&error) => return Ok(false),
        Err(source) => return Err(failed(source)),
    };
    let open = file.metadata().map_err(failed)?;
    Ok((open.dev(), open.ino()) == (at.dev(), at.ino()))
}

/// Returns whether the path is a file and not a link; this system does not tell which file is open.
#[cfg(not(unix))]
fn is_at(_: &File, path: &Path) -> Result<bool> {
    Ok(fs::symlink_metadata(path).is_ok_and(|at| at.is_file()))
}

/// Returns whether nothing is there; a link to nowhere and a file in place of a folder count.
fn is_absence(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory)
}

fn io(path: &Path, source: std::io::Error) -> Error {
    Error::Io { path: path.to_owned(), source }
}

/// Checks that a key is a plain file name on every system.
fn check_key(key: &str) -> Result<()> {
    let why = if key.trim().is_empty() {
        "it is blank".to_owned()
    } else if key.len() > MAX_KEY_BYTES {
        format!("it has {} bytes, over the limit of {MAX_KEY_BYTES}", key.len())
    } else if key.starts_with('.') {
        "it begins with a full stop".to_owned()
    } else if let Some(c) = key.chars().find(|c| matches!(c, '/' | '\\' | ':')) {
        // On Windows a colon separates a drive or an alternate data stream.
        format!("it has a {c:?}; a key is the name of a skill, no path")
    } else if key.contains(breaks_line) {
        "it has a control character".to_owned()
    } else {
        return Ok(());
    };
    Err(Error::InvalidName { what: "skill key", given: shorten(key).into_owned(), why })
}

fn description(document: &str) -> String {
    let (mut fields, body): (BTreeMap<_, _>, _) = front_matter::split(document);
    let stated = fields.remove("description").filter(|text| !text.trim().is_empty());
    stated.unwrap_or_else(|| {
        let mut lines = body.lines().map(str::trim).filter(|line| !line.is_empty());
        let first = lines.clone().next();
        let heading = lines.find(|line| heading(line).is_some()).and_then(heading);
        heading.or(first).unwrap_or_default().to_owned()
    })
}

fn heading(line: &str) -> Option<&str> {
    let text = line.trim_start_matches('#');
    (text.len() < line.len() && text.starts_with(' ')).then(|| text.trim())
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    type Outcome = std::result::Result<(), BoxError>;

    /// A folder of these files, inside a folder with files that must not be read.
    fn folder(files: &[(&str, &str)]) -> io::Result<(tempfile::TempDir, PathBuf)> {
        let outer = tempfile::tempdir()?;
        fs::write(outer.path().join("secret.md"), "secret")?;
        fs::write(outer.path().join("SKILL.md"), "secret")?;
        let skills = outer.path().join("skills");
        fs::create_dir(&skills)?;
        for (path, text) in files {
            let path = skills.join(path);
            if let Some(parent) = path.parent() {
                fs::create_dir_all(parent)?;
            }
            fs::write(path, text)?;
        }
        Ok((outer, skills))
    }

    #[test]
    fn a_folder_lists_its_skills_by_key_and_description() -> Outcome {
        let (_outer, path) = folder(&[
            ("pdf/SKILL.md", "---\nname: pdf\ndescription: >\n  Reads\n  PDFs\n---\n# PDF\n"),
            ("plain.md", "intro\n\n## How to *brew*\ntext"),
            ("line.md", "\n  just one line\nand another"),
            ("empty.md", ""),
            ("both.md", "the file"),
            ("both/SKILL.md", "the folder"),
            ("notes.txt", "no skill"),
            ("no-skill/README.md", "no skill"),
            (".hidden.md", "no skill"),
        ])?;
        let skills = SkillFolder::open(&path)?;
        let list = "- both: the folder\n- empty\n- line: just one line\n- pdf: Reads PDFs\n- plain: How to *brew*";
        assert_eq!(skills.get()?, list);
        assert_eq!(skills.load("pdf")?.as_deref(), Some("# PDF\n"));
        assert_eq!(skills.load("both")?.as_deref(), Some("the folder"));
        assert_eq!(skills.load("plain")?.as_deref(), Some("intro\n\n## How to *brew*\ntext"));
        assert_eq!(skills.load("nobody")?, None);
        assert_eq!(skills.load("no-skill")?, None);
        assert!(!SkillProvider::is_writable(&skills));
        Ok(())
    }

    #[test]
    fn what_is_edited_is_seen_at_the_next_reading() -> Outcome {
        let (_outer, path) = folder(&[("a.md", "one")])?;
        let skills = SkillFolder::open(&path)?;
        assert_eq!(skills.get()?, "- a: one");
        fs::write(path.join("a.md"), "two")?;
        fs::write(path.join("b.md"), "three")?;
        assert_eq!(skills.get()?, "- a: two\n- b: three");
        fs::remove_dir_all(&path)?;
        assert!(skills.get().unwrap_err().to_string().contains("skills: "));
        assert!(skills.load("a").is_err());
        Ok(())
    }

    #[test]
    fn no_key_leaves_the_folder() -> Outcome {
        let (_outer, path) = folder(&[("a.md", "one"), ("in/b.md", "two")])?;
        let skills = SkillFolder::open(&path)?;
        let keys = [
            "",
            " ",
            ".",
            "..",
            "../secret",
            "..\\secret",
            "/etc/passwd",
            "C:secret",
            "C:\\secret",
            "in/b",
            "a\0",
            "a\n",
            ".hidden",
            "a.md::$DATA",
            &"k".repeat(256),
            "%2e%2e/secret",
        ];
        for key in keys {
            let error = skills.load(key).unwrap_err();
            let error = error.downcast_ref::<Error>();
            assert!(
                matches!(error, Some(Error::InvalidName { what: "skill key", .. })),
                "{key:?}: {error:?}"
            );
        }
        assert_eq!(skills.load("%2e%2e")?, None);
        let error = skills.load("../secret").unwrap_err().to_string();
        let text = "skill key \"../secret\" cannot be used: it begins with a full stop";
        assert_eq!(error, text);
        let error = skills.load("in/b").unwrap_err().to_string();
        assert!(error.ends_with("it has a '/'; a key is the name of a skill, no path"), "{error}");
        Ok(())
    }

    #[cfg(unix)]
    #[test]
    fn no_link_leaves_the_folder() -> Outcome {
        use std::os::unix::fs::symlink;

        let (outer, path) = folder(&[("a.md", "one"), ("real/SKILL.md", "two")])?;
        symlink(path.join("a.md"), path.join("inside.md"))?;
        symlink("real", path.join("folder"))?;
        symlink("nowhere", path.join("broken.md"))?;
        let skills = SkillFolder::open(&path)?;
        assert_eq!(skills.get()?, "- a: one\n- folder: two\n- inside: one\n- real: two");
        assert_eq!(skills.load("broken")?, None);

        symlink("../secret.md", path.join("file.md"))?;
        symlink(outer.path(), path.join("up"))?;
        fs::create_dir(path.join("dir"))?;
        symlink("../../secret.md", path.join("dir/SKILL.md"))?;
        for key in ["file", "up", "dir"] {
            let error = skills.load(key).unwrap_err().to_string();
            assert!(error.ends_with("leads out of the folder of skills"), "{error}");
        }
        assert_eq!(skills.get()?, "- a: one\n- folder: two\n- inside: one\n- real: two");
        assert_eq!(skills.allow(["a", "real"]).get()?, "- a: one\n- real: two");

        // The folder itself may be reached by a link.
        let link = outer.path().join("link");
        symlink(&path, &link)?;
        assert_eq!(SkillFolder::open(&link)?.load("a")?.as_deref(), Some("one"));
        Ok(())
    }

    /// Between looking where a document truly lies and opening it, a link was put in its place, and followed.
    #[cfg(unix)]
    #[test]
    fn no_link_that_comes_while_a_document_is_opened_leaves_the_folder() -> Outcome {
        use std::os::unix::fs::symlink;
        use std::sync::atomic::{AtomicBool, Ordering};
        use std::time::{Duration, Instant};

        let (outer, path) = folder(&[("a.md", "one")])?;
        let (file, link) = (outer.path().join("file"), outer.path().join("link"));
        let (skills, is_done) = (SkillFolder::open(&path)?, AtomicBool::new(false));
        std::thread::scope(|scope| {
            let swapping = scope.spawn(|| -> io::Result<()> {
                while !is_done.load(Ordering::Relaxed) {
                    symlink(outer.path().join("secret.md"), &link)?;
                    fs::rename(&link, path.join("a.md"))?;
                    fs::write(&file, "one")?;
                    fs::rename(&file, path.join("a.md"))?;
                }
                Ok(())
            });
            let end = Instant::now() + Duration::from_secs(1);
            let mut texts = BTreeSet::new();
            while Instant::now() < end {
                texts.extend(skills.load("a").ok().flatten());
            }
            // Before anything is judged: a panic would wait for the other thread.
            is_done.store(true, Ordering::Relaxed);
            assert_eq!(texts, BTreeSet::from(["one".to_owned()]));
            swapping.join().unwrap()
        })?;
        Ok(())
    }

    #[test]
    fn only_what_is_allowed_is_there() -> Outcome {
        let (_outer, path) = folder(&[("a.md", "one"), ("b.md", "two")])?;
        let skills = SkillFolder::open(&path)?.allow(["b", "missing"]);
        assert_eq!(skills.get()?, "- b: two");
        assert_eq!(skills.load("a")?, None);
        assert_eq!(SkillFolder::open(&path)?.allow([""; 0]).get()?, "");
        Ok(())
    }

    #[test]
    fn a_missing_folder_is_a_clear_error() -> Outcome {
        let (_outer, path) = folder(&[("a.md", "one")])?;
        for missing in ["missing", "a.md"] {
            let error = SkillFolder::open(path.join(missing)).unwrap_err();
            assert!(error.to_string().contains(&format!("{missing}: ")), "{error}");
        }
        Ok(())
    }

    #[test]
    fn a_document_has_at_most_one_mebibyte() -> Outcome {
        let (_outer, path) = folder(&[])?;
        fs::write(path.join("a.md"), "x".repeat(MAX_DOCUMENT_BYTES))?;
        fs::write(path.join("b.md"), "x".repeat(MAX_DOCUMENT_BYTES + 1))?;
        fs::write(path.join("c.md"), b"\xFF\xFE")?;
        let skills = SkillFolder::open(&path)?;
        assert_eq!(skills.load("a")?.map(|text| text.len()), Some(MAX_DOCUMENT_BYTES));
        let error = skills.load("b").unwrap_err().to_string();
        assert_eq!(
            error,
            "the document of a skill is 1048577 bytes, over the store's limit of 1048576"
        );
        let error = skills.load("c").unwrap_err().to_string();
        assert!(error.contains("c.md: invalid utf-8"), "{error}");
        // A description is short whatever the document is.
        assert_eq!(skills.get()?.lines().next().map(|line| line.chars().count()), Some(5 + 1025));
        Ok(())
    }

    #[test]
    fn a_folder_has_at_most_1_000_skills() -> Outcome {
        let (_outer, path) = folder(&[])?;
        for n in 0..MAX_SKILLS {
            fs::write(path.join(format!("s{n}.md")), "x")?;
        }
        let skills = SkillFolder::open(&path)?;
        assert_eq!(skills.get()?.lines().count(), MAX_SKILLS);
        fs::write(path.join("one-more.md"), "x")?;
        let error = skills.get().unwrap_err().to_string();
        assert!(error.ends_with("holds over 1000 skills; allow those that are meant"), "{error}");
        assert_eq!(skills.allow(["s1"]).get()?, "- s1: x");
        Ok(())
    }
}
