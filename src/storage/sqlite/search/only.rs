//! Narrows a search to the messages of authors and with tags.
//!
//! If these are few, the search begins with them: only their addresses are looked up in the index. Otherwise each match is
//! compared.

use std::rc::Rc;

use rusqlite::{CachedStatement, Connection, params};

use super::super::error::BackendResult;
use super::range::Range;
use crate::search::Filters;
use crate::tree::Address;

/// Up to this many messages are listed before the search: half a megabyte.
const MAX_LISTED: usize = 65_536;
/// Up to this many are looked up one by one: to start a search in a range takes about 0.1 ms.
const MAX_RANGES: usize = 64;

/// The messages that are searched.
pub(super) struct Only {
    /// The authors and the tags, as JSON arrays; `None` for any.
    pub(super) authors: Option<String>,
    pub(super) tags: Option<String>,
    /// The messages, oldest first, if they are few.
    listed: Option<Vec<Address>>,
}

impl Only {
    /// Returns the messages that filters name; `None` if they name no author and no tag.
    pub(super) fn of(
        conn: &Connection,
        filters: &Filters,
        range: &Range,
    ) -> BackendResult<Option<Self>> {
        let array = |names: &[String]| {
            (!names.is_empty()).then(|| serde_json::Value::from(names).to_string())
        };
        let mut only =
            Self { authors: array(&filters.authors), tags: array(&filters.tags), listed: None };
        let sql = match (&only.authors, &only.tags) {
            (None, None) => return Ok(None),
            (_, Some(_)) => TAGGED,
            (Some(_), None) => WRITTEN,
        };
        let mut listed = Vec::new();
        let mut statement = conn.prepare_cached(sql)?;
        for (low, high) in range.ranges() {
            let limit = MAX_LISTED + 1 - listed.len();
            let values = params![only.authors, only.tags, low, high, limit];
            for address in statement.query_map(values, |row| row.get(0))? {
                listed.push(address?);
            }
            if listed.len() > MAX_LISTED {
                return Ok(Some(only));
            }
        }
        listed.sort_unstable();
        only.listed = Some(listed);
        Ok(Some(only))
    }

    /// Returns those in a range, oldest first, if they are few.
    pub(super) fn listed(&self, (low, high): (Address, Address)) -> Option<&[Address]> {
        let listed = self.listed.as_ref()?;
        let from = listed.partition_point(|address| *address < low);
        let to = listed.partition_point(|address| *address <= high);
        Some(&listed[from..to.max(from)])
    }

    /// Returns the parts of a range to search, newest first.
    pub(super) fn ranges(&self, range: (Address, Address)) -> Vec<(Address, Address)> {
        match self.listed(range) {
            None => vec![range],
            Some(few) if few.len() <= MAX_RANGES => {
                few.iter().rev().map(|address| (*address, *address)).collect()
            }
            Some(listed) => vec![(listed[0], listed[listed.len() - 1])],
        }
    }

    pub(super) fn reader<'c>(self: &Rc<Self>, conn: &'c Connection) -> BackendResult<Reader<'c>> {
        let holds = match self.listed {
            Some(_) => None,
            None => Some(conn.prepare_cached(HOLDS)?),
        };
        Ok(Reader { only: Rc::clone(self), holds })
    }
}

/// Compares matches.
pub(super) struct Reader<'c> {
    only: Rc<Only>,
    holds: Option<CachedStatement<'c>>,
}

impl Reader<'_> {
    pub(super) fn holds(&mut self, address: Address) -> BackendResult<bool> {
        match (&self.only.listed, &mut self.holds) {
            (Some(listed), _) => Ok(listed.binary_search(&address).is_ok()),
            (None, Some(holds)) => {
                Ok(holds.exists(params![address, self.only.authors, self.only.tags])?)
            }
            (None, None) => Ok(true),
        }
    }
}

const WRITTEN: &str = "SELECT address
   FROM message INDEXED BY message_author
  WHERE author IN (SELECT value FROM json_each(?1))
    AND ?2 IS NULL
    AND address BETWEEN ?3 AND ?4
  LIMIT ?5";

/// Those with the first tag that have the others, too.
const TAGGED: &str = "SELECT address
   FROM message_tag AS first
  WHERE tag = ?2 ->> 0
    AND address BETWEEN ?3 AND ?4
    AND NOT EXISTS (SELECT 1 FROM json_each(?2) AS wanted
                     WHERE NOT EXISTS (SELECT 1 FROM message_tag
                                        WHERE message_tag.address = first.address
                                          AND message_tag.tag = wanted.value))
    AND (?1 IS NULL
         OR EXISTS (SELECT 1 FROM message INDEXED BY message_author
                     WHERE author IN (SELECT value FROM json_each(?1))
                       AND message.address = first.address))
  LIMIT ?5";

const HOLDS: &str = "SELECT 1
  WHERE (?2 IS NULL
         OR EXISTS (SELECT 1 FROM message INDEXED BY message_author
                     WHERE author IN (SELECT value FROM json_each(?2))
                       AND address = ?1))
    AND NOT EXISTS (SELECT 1 FROM json_each(?3) AS wanted
                     WHERE NOT EXISTS (SELECT 1 FROM message_tag
                                        WHERE message_tag.address = ?1
                                          AND message_tag.tag = wanted.value))";

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::super::connection::{Config, Database};
    use super::super::super::session::SqliteSession;
    use super::*;
    use crate::error::Result;
    use crate::message::{Author, Message};
    use crate::search::Query;
    use crate::storage::SessionProvider;
    use crate::view::{ExpectedHead, Parent};

    #[test]
    fn what_is_compared_is_what_would_be_listed() -> Result<()> {
        let database = Arc::new(Database::open_in_memory(Config::default())?);
        let session = SqliteSession::new(Arc::clone(&database), "s".into());
        for n in 0..40 {
            let message = Message::user("hi").from(&Author::new(format!("p{}", n % 3)));
            let done = session.append(&Parent::Head, &ExpectedHead::Any, &[message])?;
            let id = &done[0].id;
            for tag in (2..6).filter(|tag| n % tag == 0) {
                session.tag(id, &format!("t{tag}"))?;
            }
        }
        let mut found = 0;
        for query in
            ["author:p1", "tag:t2", "tag:t2 tag:t3", "author:p0 author:p2 tag:t5", "tag:no"]
        {
            let filters = Query::parse(query).filters;
            database.read(|conn| {
                let range = Range::Store { trash: Vec::new() };
                let only = Rc::new(Only::of(conn, &filters, &range)?.expect("it is narrowed"));
                let listed = only.listed.clone().expect("they are few");
                let many =
                    Only { listed: None, authors: only.authors.clone(), tags: only.tags.clone() };
                let mut reader = Rc::new(many).reader(conn)?;
                for n in 1..=40 {
                    let address = Address::new(1, n);
                    assert_eq!(reader.holds(address)?, listed.contains(&address), "{query} {n}");
                }
                found += listed.len();
                Ok(())
            })?;
        }
        assert_eq!(found, 13 + 20 + 7 + 6);
        Ok(())
    }
}
