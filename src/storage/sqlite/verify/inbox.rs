//! Checks inboxes: their sources, and how many handled items each has.

use super::{Check, RESTORE};

pub(super) const CHECKS: &[Check] = &[
    Check {
        kind: "stray-item",
        sql: "SELECT format('items are stored under inbox %d, which does not exist', source)
                FROM (SELECT source FROM inbox_item EXCEPT SELECT key FROM inbox_source)",
        remedy: RESTORE,
    },
    Check {
        kind: "wrong-item",
        sql: "SELECT format('item %d of inbox %d is neither pending nor handled', number, source)
                FROM inbox_item
               WHERE (key IS NULL) <> (body IS NULL)
                  OR (key IS NULL AND (owner IS NOT NULL OR note IS NOT NULL))",
        remedy: RESTORE,
    },
    Check {
        kind: "wrong-item",
        sql: "SELECT format('inbox %s has %d handled items, not %d', quote(name), found, handled)
                FROM (SELECT name, handled,
                             (SELECT count(*) FROM inbox_item
                               WHERE source = inbox_source.key AND inbox_item.key IS NULL) AS found
                        FROM inbox_source)
               WHERE found <> handled",
        remedy: RESTORE,
    },
];
