//! Providers: sources of context blocks that a program implements.
//!
//! Every provider can be read; its trait says what else it can do. `init` is called before anything else.
//!
//! No transaction is open while a provider is called, and only calls to its own block wait for it. So it may be slow and
//! call the library. A panic is an [`Error::Provider`](crate::Error::Provider).
//!
//! One thread at a time writes to a block over a provider; others wait up to the store's busy timeout. A provider that
//! writes to its own block while it is written is refused with [`Error::BlockBusy`](crate::Error::BlockBusy), and so is a
//! call to its block from its own `init`. At most eight callbacks run inside each other: a provider that reads its own
//! prompt would never end.

use talktree_text::foreign;

use crate::error::BoxError;

/// The longest description in a list of documents, in characters: every prompt shows the list.
const MAX_DESCRIPTION_CHARS: usize = 1_024;

/// A text under a key. Skills and knowledge are documents.
///
/// ```
/// use talktree::Document;
///
/// let skill = Document::new("pdf", "Use the tool `pdftotext`.").titled("PDF").described("Reads PDFs");
/// assert_eq!(skill.title.as_deref(), Some("PDF"));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Document {
    /// The name it is loaded by, unique in its block.
    pub key: String,
    /// The title, for people.
    pub title: Option<String>,
    /// What the document is about, in one line.
    pub description: Option<String>,
    /// The text.
    pub content: String,
}

impl Document {
    /// Returns a document without title and description.
    ///
    /// ```
    /// use talktree::Document;
    ///
    /// assert_eq!(Document::new("pdf", "..").key, "pdf");
    /// ```
    #[must_use]
    pub fn new(key: impl Into<String>, content: impl Into<String>) -> Self {
        Self { key: key.into(), content: content.into(), ..Self::default() }
    }

    /// Returns the document with this title.
    ///
    /// ```
    /// use talktree::Document;
    ///
    /// assert_eq!(Document::new("pdf", "..").titled("PDF").title.as_deref(), Some("PDF"));
    /// ```
    #[must_use]
    pub fn titled(self, title: impl Into<String>) -> Self {
        Self { title: Some(title.into()), ..self }
    }

    /// Returns the document with this description.
    ///
    /// ```
    /// use talktree::Document;
    ///
    /// let skill = Document::new("pdf", "..").described("Reads PDFs");
    /// assert_eq!(skill.description.as_deref(), Some("Reads PDFs"));
    /// ```
    #[must_use]
    pub fn described(self, description: impl Into<String>) -> Self {
        Self { description: Some(description.into()), ..self }
    }

    /// Returns the line that lists the document in the content of a block of skills: its key and its description or, without
    /// one, its title. No key and no description makes a second line, or reads as another key.
    ///
    /// ```
    /// use talktree::Document;
    ///
    /// let skill = Document::new("pdf", "..").described("Reads PDFs");
    /// assert_eq!(skill.list_line(), "- pdf: Reads PDFs");
    /// ```
    #[must_use]
    pub fn list_line(&self) -> String {
        let about = self.description.as_ref().or(self.title.as_ref());
        let about = about.map(|text| foreign::short_line(text, MAX_DESCRIPTION_CHARS));
        let key = foreign::name(&self.key);
        match about.filter(|text| !text.is_empty()) {
            Some(about) => format!("- {key}: {about}"),
            None => format!("- {key}"),
        }
    }
}

/// A source that a context block is read from.
///
/// It may call the library, but not its own block in `init`. A panic is an error.
///
/// ```
/// use talktree::{Block, BoxError, ReadProvider};
///
/// struct Motd;
///
/// impl ReadProvider for Motd {
///     fn get(&self) -> Result<String, BoxError> {
///         Ok(std::fs::read_to_string("/etc/motd")?)
///     }
/// }
///
/// let block = Block::read(Motd).describe("Message of the day");
/// ```
pub trait ReadProvider: Send + Sync {
    /// Is called once with the label of the block, before anything else.
    ///
    /// # Errors
    /// Whatever keeps the provider from working.
    fn init(&self, label: &str) -> Result<(), BoxError> {
        let _ = label;
        Ok(())
    }

    /// Returns the current content of the block.
    ///
    /// # Errors
    /// Whatever keeps it from being read.
    fn get(&self) -> Result<String, BoxError>;
}

/// A source that a context block is read from and written to.
///
/// One thread at a time writes. While it does, the provider may not write to its own block:
/// [`Error::BlockBusy`](crate::Error::BlockBusy).
///
/// ```
/// use std::sync::Mutex;
/// use talktree::{Block, BoxError, ReadProvider, WriteProvider};
///
/// struct Note(Mutex<String>);
///
/// impl ReadProvider for Note {
///     fn get(&self) -> Result<String, BoxError> {
///         Ok(self.0.lock().map_err(|_| "another thread panicked")?.clone())
///     }
/// }
///
/// impl WriteProvider for Note {
///     fn set(&self, content: &str) -> Result<(), BoxError> {
///         *self.0.lock().map_err(|_| "another thread panicked")? = content.to_owned();
///         Ok(())
///     }
/// }
///
/// let block = Block::write(Note(Mutex::default())).max_tokens(500);
/// ```
pub trait WriteProvider: ReadProvider {
    /// Replaces the content.
    ///
    /// # Errors
    /// Whatever keeps it from being written; the content must then be unchanged.
    fn set(&self, content: &str) -> Result<(), BoxError>;
}

/// A source of documents that are loaded by key. Its content lists them.
///
/// ```
/// use talktree::{Block, BoxError, ReadProvider, SkillProvider};
///
/// struct Greeting;
///
/// impl ReadProvider for Greeting {
///     fn get(&self) -> Result<String, BoxError> {
///         Ok("- hello: how to greet".to_owned())
///     }
/// }
///
/// impl SkillProvider for Greeting {
///     fn load(&self, key: &str) -> Result<Option<String>, BoxError> {
///         Ok((key == "hello").then(|| "Say hello.".to_owned()))
///     }
/// }
///
/// let block = Block::skills(Greeting);
/// ```
pub trait SkillProvider: ReadProvider {
    /// Returns the document of this key; `None` if there is none.
    ///
    /// # Errors
    /// Whatever keeps it from being read.
    fn load(&self, key: &str) -> Result<Option<String>, BoxError>;

    /// Returns whether documents can be written.
    fn is_writable(&self) -> bool {
        false
    }

    /// Stores a document under its key; one with the same key is replaced.
    ///
    /// # Errors
    /// Whatever keeps it from being written; the default implementation always fails.
    fn set_keyed(&self, document: &Document) -> Result<(), BoxError> {
        Err(refused(document))
    }
}

/// A source that is searched. Its content says what there is to find.
///
/// ```
/// use talktree::{Block, BoxError, Document, ReadProvider, SearchProvider};
///
/// struct Capitals;
///
/// impl ReadProvider for Capitals {
///     fn get(&self) -> Result<String, BoxError> {
///         Ok("1 country".to_owned())
///     }
/// }
///
/// impl SearchProvider for Capitals {
///     fn search(&self, query: &str, limit: usize) -> Result<Vec<Document>, BoxError> {
///         let all = [Document::new("France", "Paris")];
///         Ok(all.into_iter().filter(|country| country.key.contains(query)).take(limit).collect())
///     }
/// }
///
/// let block = Block::searchable(Capitals);
/// ```
pub trait SearchProvider: ReadProvider {
    /// Returns at most `limit` documents that match, best first.
    ///
    /// # Errors
    /// Whatever keeps it from being searched.
    fn search(&self, query: &str, limit: usize) -> Result<Vec<Document>, BoxError>;

    /// Returns whether documents can be written.
    fn is_writable(&self) -> bool {
        false
    }

    /// Stores a document under its key; one with the same key is replaced.
    ///
    /// # Errors
    /// Whatever keeps it from being written; the default implementation always fails.
    fn set_keyed(&self, document: &Document) -> Result<(), BoxError> {
        Err(refused(document))
    }
}

fn refused(document: &Document) -> BoxError {
    format!("document {:?} cannot be written: its provider only reads", document.key).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Fixed;

    impl ReadProvider for Fixed {
        fn get(&self) -> Result<String, BoxError> {
            Ok(String::new())
        }
    }

    impl SkillProvider for Fixed {
        fn load(&self, _: &str) -> Result<Option<String>, BoxError> {
            Ok(None)
        }
    }

    impl SearchProvider for Fixed {
        fn search(&self, _: &str, _: usize) -> Result<Vec<Document>, BoxError> {
            Ok(Vec::new())
        }
    }

    #[test]
    fn a_provider_that_only_reads_refuses_documents() -> Result<(), BoxError> {
        let (skills, search): (&dyn SkillProvider, &dyn SearchProvider) = (&Fixed, &Fixed);
        assert!(!skills.is_writable() && !search.is_writable());
        let document = Document::new("k", "text");
        let text = "document \"k\" cannot be written: its provider only reads";
        assert_eq!(skills.set_keyed(&document).unwrap_err().to_string(), text);
        assert_eq!(search.set_keyed(&document).unwrap_err().to_string(), text);
        skills.init("label")
    }
}
