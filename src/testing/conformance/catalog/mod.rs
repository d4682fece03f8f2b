//! The conformance suite of [`SessionCatalog`]. Each rule runs on an empty catalog.

mod bindings;
mod changes;
mod contexts;
mod lists;
mod names;
mod races;
mod retention;
mod trash;
mod usage;

use std::slice::from_ref;
use std::sync::Arc;

use chrono::{DateTime, TimeDelta, Utc};

use crate::catalog::SessionFilter;
use crate::error::Result;
use crate::id::SessionId;
use crate::message::Message;
use crate::outcome::{SessionDetails, SessionInfo};
use crate::storage::catalog::SessionCatalog;
use crate::storage::{SessionProvider, catalog::SessionStorage};
use crate::view::{ExpectedHead, Parent};

/// Tests the catalogs that `make` returns against the contract of [`SessionCatalog`].
///
/// `make` is called for each rule and returns an empty catalog. If its sessions have contexts, what becomes of these is
/// tested, too; [`conformance`](super::conformance) and [`conformance_of_context`](super::conformance_of_context) test the
/// sessions and the contexts themselves.
///
/// ```
/// use std::sync::Arc;
/// use talktree::testing::{MemoryCatalog, conformance_of_catalog};
///
/// conformance_of_catalog(|| Arc::new(MemoryCatalog::new())); // replace with your own
/// ```
///
/// # Panics
/// If a rule is broken. The message names the rule.
pub fn conformance_of_catalog(mut make: impl FnMut() -> Arc<dyn SessionCatalog>) {
    for (rule, check) in RULES {
        if let Err(error) = check(&Probe { catalog: make() }) {
            panic!("{rule}: {error}");
        }
    }
}

/// A catalog under test.
struct Probe {
    catalog: Arc<dyn SessionCatalog>,
}

/// Returns a time long ago, some microseconds after a fixed one.
fn at(micros: i64) -> DateTime<Utc> {
    DateTime::UNIX_EPOCH + TimeDelta::microseconds(1_600_000_000_000_000 + micros)
}

fn owned_by(owner: &str) -> SessionDetails {
    SessionDetails { owner: Some(owner.to_owned()), ..SessionDetails::default() }
}

impl Probe {
    fn create(&self, id: &str) -> Result<()> {
        self.catalog.create(&id.into(), &SessionDetails::default())
    }

    fn open(&self, id: &str) -> SessionStorage {
        self.catalog.session(&SessionId::from(id))
    }

    fn chat(&self, id: &str) -> Arc<dyn SessionProvider> {
        self.open(id).session
    }

    /// Appends a message of this time to a session.
    fn say(&self, id: &str, time: DateTime<Utc>) -> Result<()> {
        self.append(id, &Message::user(format!("text of {id}")).at(time))
    }

    fn append(&self, id: &str, message: &Message) -> Result<()> {
        self.chat(id).append(&Parent::Head, &ExpectedHead::Any, from_ref(message)).map(drop)
    }

    fn info(&self, id: &str) -> Result<SessionInfo> {
        let info = self.catalog.info(&id.into())?;
        Ok(info.unwrap_or_else(|| panic!("{id:?} is not in the catalog")))
    }

    /// Returns the sessions that a filter shows, read in pages of this size.
    fn listed_by(&self, filter: &SessionFilter, size: usize) -> Result<Vec<SessionInfo>> {
        let (mut listed, mut after) = (Vec::new(), None);
        loop {
            let page = self.catalog.list(filter, after, size)?;
            assert!(page.sessions.len() <= size, "a page exceeds its limit");
            listed.extend(page.sessions.into_iter().map(|listed| listed.info));
            match page.after {
                None => return Ok(listed),
                next => after = next,
            }
        }
    }

    /// Returns the ids of the sessions that a filter shows.
    fn listed(&self, filter: &SessionFilter) -> Result<Vec<String>> {
        let listed = self.listed_by(filter, 3)?;
        Ok(listed.into_iter().map(|info| info.id.to_string()).collect())
    }
}

/// Panics or returns an error if a rule is broken.
type Check = fn(&Probe) -> Result<()>;

const RULES: &[(&str, Check)] = &[
    ("a new catalog is empty", lists::empty),
    ("a session is created once, with its details", changes::creates),
    ("a list shows the session with the newest message first", lists::order),
    ("messages a moment apart are listed in the order of their times", lists::close_times),
    ("each filter shows the sessions that it says", lists::filters),
    ("a list by author shows the sessions in which the author wrote", lists::by_author),
    ("pages show every session once while others append", lists::pages),
    ("a listed session has the first line of a user", lists::previews),
    ("changes are read back", changes::changes),
    ("a session has a hundred tags at most", changes::tags),
    ("a changed detail moves a session to other lists", changes::moves),
    ("an unknown session is an error", changes::unknown),
    ("names are any texts that are not too long", names::odd),
    ("a name that is too long is refused and nothing is done", names::long),
    ("a session in the trash is left out of lists and searches", trash::left_out),
    ("a session in the trash refuses writes until it is restored", trash::refuses),
    ("the trash is a list", trash::list),
    ("a removed session leaves the catalog", trash::removed),
    ("a key leads to one session until that must not be resumed", bindings::resumes),
    ("a resumed session has the owner that was asked for", bindings::owners),
    ("a session expires when nothing was written for long enough", bindings::expires),
    ("a resume that cannot create its session changes nothing", bindings::taken),
    ("a session that continues another one takes over its keys", bindings::continued),
    ("an unbound key leads to a new session", bindings::unbinds),
    ("bindings are listed newest first", bindings::lists),
    ("the context of a session goes with it", contexts::removed),
    ("the context of a session in the trash refuses writes", contexts::in_trash),
    ("clearing and compacting a session remove its frozen prompt", contexts::thawed),
    ("another owner removes the frozen prompt", contexts::thawed_for_owner),
    ("what is made from a session has its owner and copies of its texts", contexts::copied),
    ("usage is added up by group", usage::groups),
    ("an answer counts once", usage::once),
    ("usage is that of the session's owner and source", usage::followed),
    ("the usage of removed messages stays in the totals", usage::kept),
    ("sessions that did not change are discarded", retention::discards),
    ("the size of a session is that of its messages", retention::sizes),
    ("owners are listed by name", retention::owners),
    ("a retention discards what a dry run lists", retention::runs),
    ("threads that resume one key get one session", races::resumes),
    ("of threads that create one session one succeeds", races::creates),
    ("threads that tag a session do not exceed the limit", races::tags),
];
