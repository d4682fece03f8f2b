//! The conformance suite of [`ContextStore`].
//!
//! Each rule runs on the contexts of four sessions: two of one owner, one of another owner, one without an owner that was
//! never written to.

mod prompt;
mod scopes;
mod search;
mod texts;

use std::sync::Arc;

use crate::error::Result;
use crate::id::SessionId;
use crate::storage::context::{BlockScope, ContextStore, NewEntry};

/// Tests the contexts that `make` returns against the contract of [`ContextStore`].
///
/// `make` is called with new ids. It returns the context of a new session of the given owner; without an owner, that of a
/// session that was never written to. All contexts are of one storage.
///
/// ```
/// use talktree::testing::{MemoryCatalog, conformance_of_context};
/// use talktree::{SessionCatalog, SessionDetails};
///
/// let catalog = MemoryCatalog::new();
/// conformance_of_context(|id, owner| {
///     if let Some(owner) = owner {
///         let details = SessionDetails { owner: Some(owner.to_owned()), ..SessionDetails::default() };
///         catalog.create(&id, &details).expect("the id is new");
///     }
///     catalog.session(&id).context.expect("it has contexts")
/// });
/// ```
///
/// # Panics
/// If a rule is broken. The message names the rule.
pub fn conformance_of_context(
    mut make: impl FnMut(SessionId, Option<&str>) -> Arc<dyn ContextStore>,
) {
    for (rule, check) in RULES {
        let mut open = |name: &str, owner: Option<&str>| {
            let id = SessionId::from(format!("conformance of contexts: {rule}: {name}"));
            let owner = owner.map(|owner| format!("{rule}: {owner}"));
            let context = make(id.clone(), owner.as_deref());
            assert_eq!(*context.session(), id, "a context is of the session it was made for");
            context
        };
        let contexts = Contexts {
            one: open("one", Some("ann")),
            two: open("two", Some("ann")),
            other: open("other", Some("bob")),
            free: open("free", None),
            label: format!("label of {rule}"),
        };
        if let Err(error) = check(&contexts) {
            panic!("{rule}: {error}");
        }
    }
}

/// The contexts under test.
struct Contexts {
    one: Arc<dyn ContextStore>,
    /// Of the same owner.
    two: Arc<dyn ContextStore>,
    /// Of another owner.
    other: Arc<dyn ContextStore>,
    /// Of no owner.
    free: Arc<dyn ContextStore>,
    /// A label that no other rule uses, since all sessions share some texts.
    label: String,
}

impl Contexts {
    /// Puts searchable documents, given as key and content, in the first context.
    fn put(&self, scope: BlockScope, documents: &[(&str, &str)]) -> Result<()> {
        put(&*self.one, scope, &self.label, documents)
    }

    /// Returns the contents that the first context has under a key, of every version.
    fn versions(&self, scope: BlockScope, key: &str) -> Result<Vec<Option<String>>> {
        let versions = self.one.versions(scope, &self.label, key)?;
        Ok(versions.into_iter().map(|version| version.content).collect())
    }

    /// Returns what a context has under a key, or an empty text.
    fn read(&self, context: &dyn ContextStore, scope: BlockScope, key: &str) -> Result<String> {
        let entry = context.entry(scope, &self.label, key)?;
        Ok(entry.map(|entry| entry.content).unwrap_or_default())
    }
}

fn put(
    context: &dyn ContextStore,
    scope: BlockScope,
    label: &str,
    documents: &[(&str, &str)],
) -> Result<()> {
    let entries: Vec<_> =
        documents.iter().map(|(key, content)| NewEntry::new(key, content)).collect();
    context.put(scope, label, &entries, true)
}

/// Panics or returns an error if a rule is broken.
type Check = fn(&Contexts) -> Result<()>;

const RULES: &[(&str, Check)] = &[
    ("a context that was never written to reads as empty", texts::empty),
    ("a text is read back as it was put", texts::round_trip),
    ("a text that is stored is no new version", texts::unchanged),
    ("a write reads its own puts and is done as a whole or not at all", texts::one_write),
    ("a removed text keeps its versions and returns as the next one", texts::removed),
    ("the newest thousand versions are kept", texts::many_versions),
    ("labels are sorted and say what they have", texts::labels),
    ("documents are sorted by key", texts::documents),
    ("labels and keys are any texts that are not too long", texts::names),
    ("threads that read and put in one write lose nothing", texts::threads),
    ("each scope has texts of its own", scopes::apart),
    ("the sessions of an owner share its texts", scopes::of_owner),
    ("a session without an owner has no texts of one", scopes::without_owner),
    ("the context of another session is that session's", scopes::of_another),
    ("a search finds the searchable texts of one block", search::finds),
    ("a search for words that no text has together finds any of them", search::relaxes),
    ("no query is an error", search::odd_queries),
    ("a prompt is frozen once until it is removed", prompt::frozen),
    ("each session has a prompt of its own", prompt::apart),
];
