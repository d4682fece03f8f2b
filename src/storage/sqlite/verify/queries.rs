//! The invariants that one query checks each: it returns a line for each violation.

use super::{REBUILD, RECOUNT, REMOVE, RESTORE};

/// The remedy for an elision of nothing.
pub(super) const HARMLESS: &str = "harmless: it is removed when the message is updated or deleted";

/// A query that finds violations of an invariant, as text.
pub(super) struct Check {
    pub(super) kind: &'static str,
    pub(super) sql: &'static str,
    pub(super) remedy: &'static str,
}

pub(super) const CHECKS: &[Check] = &[
    Check {
        kind: "missing-parent",
        sql: "SELECT format('the parent of message %s of session %s is %s, which does not exist',
                            address & 4294967295, address >> 32, parent & 4294967295)
                FROM message
               WHERE parent IS NOT NULL
                 AND NOT EXISTS (SELECT 1 FROM message AS above WHERE above.address = message.parent)",
        remedy: RESTORE,
    },
    Check {
        kind: "wrong-parent",
        sql: "SELECT format('the parent of message %s of session %s is newer or of another session',
                            address & 4294967295, address >> 32)
                FROM message
               WHERE parent >= address OR parent >> 32 <> address >> 32",
        remedy: RESTORE,
    },
    Check {
        kind: "stray-message",
        sql: "SELECT format('messages are stored under session key %s, which does not exist', key)
                FROM (SELECT DISTINCT address >> 32 AS key FROM message
                      EXCEPT SELECT key FROM session
                      EXCEPT SELECT session FROM leftover) AS it",
        remedy: RESTORE,
    },
    Check {
        kind: "stray-message",
        sql: "SELECT format('a message of session %s has the number 0, which no read finds', address >> 32)
                FROM message
               WHERE address & 4294967295 = 0",
        remedy: RESTORE,
    },
    Check {
        kind: "number-in-use",
        sql: "SELECT format('the next number of session %s is %s, which is in use or below 1', id, next)
                FROM session
               WHERE next < 1
                  OR EXISTS (SELECT 1
                               FROM message
                              WHERE address BETWEEN (key << 32 | next) AND (key << 32 | 4294967295))",
        remedy: RESTORE,
    },
    Check {
        kind: "broken-session",
        sql: "SELECT format('session %s has the key %s, outside 1 to 2147483647', id, key)
                FROM session
               WHERE key NOT BETWEEN 1 AND 2147483647",
        remedy: RESTORE,
    },
    Check {
        kind: "wrong-session",
        sql: "SELECT format('session %s says that it has %s messages, and it has %s', id, messages, found)
                FROM (SELECT id, messages, (SELECT count(*)
                                              FROM message
                                             WHERE address BETWEEN (key << 32) AND (key << 32 | 4294967295)
                                               AND message.id IS NOT NULL) AS found
                        FROM session) AS it
               WHERE messages <> found",
        remedy: "none needed: a list shows a wrong count until the session is cleared; an export and import corrects it",
    },
    Check {
        kind: "wrong-session",
        sql: "SELECT format('session %s is listed at %s, which is not its time or up to 100 ms before', id, listed_at)
                FROM session
               WHERE coalesce(last_message_at, created_at) NOT BETWEEN listed_at AND listed_at + 99999",
        remedy: "append a message to the session",
    },
    Check {
        kind: "stray-row",
        sql: "SELECT format('%s of session key %s, which does not exist', what, session)
                FROM (SELECT 'a tag' AS what, session FROM session_tag
                      UNION ALL SELECT 'a binding', session FROM binding
                      UNION ALL SELECT 'usage', session FROM usage WHERE session IS NOT NULL) AS it
               WHERE session NOT IN (SELECT key FROM session)",
        remedy: "none needed: no read finds it",
    },
    Check {
        kind: "lost-head",
        sql: "SELECT format('the head of session %s is a message that does not exist', id)
                FROM session
               WHERE head IS NOT NULL
                 AND (head >> 32 <> key
                      OR NOT EXISTS (SELECT 1 FROM message WHERE message.address = session.head))",
        remedy: "check out a message of the session",
    },
    Check {
        kind: "lost-head-entry",
        sql: "SELECT format('the head log of session key %s names a message that does not exist', session)
                FROM head_log
               WHERE address IS NOT NULL
                 AND (address >> 32 <> session
                      OR NOT EXISTS (SELECT 1 FROM message WHERE message.address = head_log.address))",
        remedy: "undo and redo stop at this entry; check out a message instead",
    },
    Check {
        kind: "lost-head-entry",
        sql: "SELECT format('the head log of session key %s has a gap', session)
                FROM (SELECT session, position FROM head_log UNION SELECT key, head_position FROM session) AS it
               GROUP BY session
              HAVING max(position) - min(position) + 1 <> count(*)",
        remedy: "undo and redo stop at the gap; check out a message instead",
    },
    Check {
        kind: "lost-label",
        sql: "SELECT format('label %s of session key %s names a message that does not exist', name, session)
                FROM label
               WHERE address >> 32 <> session
                  OR NOT EXISTS (SELECT 1
                                   FROM message
                                  WHERE message.address = label.address AND message.id IS NOT NULL)",
        remedy: "set the label again, or remove it",
    },
    Check {
        kind: "stray-row",
        sql: "SELECT format('the tag %s of message %s of session key %s, which does not exist', tag, address & 4294967295, address >> 32)
                FROM message_tag
               WHERE NOT EXISTS (SELECT 1
                                   FROM message
                                  WHERE message.address = message_tag.address AND message.id IS NOT NULL)",
        remedy: "none needed: no read finds it",
    },
    Check {
        kind: "broken-label",
        sql: "SELECT format('a label of session key %s has a name of %s bytes, not of 1 to 1024', session, octet_length(name))
                FROM label
               WHERE octet_length(name) NOT BETWEEN 1 AND 1024",
        remedy: "remove the label",
    },
    Check {
        kind: "lost-compaction",
        sql: "SELECT format('compaction %s of session key %s covers messages that do not exist', id, session)
                FROM compaction
               WHERE first > last OR first >> 32 <> session OR last >> 32 <> session
                  OR NOT EXISTS (SELECT 1 FROM message WHERE message.address = compaction.first)
                  OR NOT EXISTS (SELECT 1 FROM message WHERE message.address = compaction.last)",
        remedy: REMOVE,
    },
    Check {
        kind: "broken-compaction",
        sql: "SELECT format('compaction %s of session key %s names other messages than it covers',
                            compaction.id, compaction.session)
                FROM compaction
                JOIN message AS start ON start.address = compaction.first
                JOIN message AS stop ON stop.address = compaction.last
               WHERE start.id <> first_id OR stop.id <> last_id",
        remedy: REMOVE,
    },
    Check {
        kind: "childless-tombstone",
        sql: "SELECT format('message %s of session %s is a tombstone without children',
                            address & 4294967295, address >> 32)
                FROM message
               WHERE id IS NULL
                 AND address >> 32 NOT IN (SELECT session FROM leftover)
                 AND NOT EXISTS (SELECT 1
                                   FROM message AS below
                                  WHERE below.address = message.address + 1
                                    AND below.parent = message.address)
                 AND NOT EXISTS (SELECT 1
                                   FROM message AS below
                                  WHERE below.parent = message.address
                                    AND below.parent IS DISTINCT FROM below.address - 1)",
        remedy: RESTORE,
    },
    Check {
        kind: "wrong-unindexed",
        sql: "SELECT format('session %s has %s as its first message that is not indexed, and %s as its next',
                            id, unindexed, next)
                FROM session
               WHERE unindexed NOT BETWEEN 1 AND next",
        remedy: REBUILD,
    },
    Check {
        kind: "wrong-word",
        sql: "SELECT format('''%s'' is no term of the index, or has the languages %s', term, languages)
                FROM term
               WHERE length(term) NOT BETWEEN 2 AND 40 OR languages NOT BETWEEN 0 AND 4294967295",
        remedy: REBUILD,
    },
    Check {
        kind: "stray-record",
        sql: "SELECT format('session key %s does not exist, and records name it', session)
                FROM (SELECT session FROM compaction UNION SELECT session FROM label
                      UNION SELECT session FROM head_log UNION SELECT session FROM imported
                      EXCEPT SELECT key FROM session) AS it",
        remedy: RESTORE,
    },
    Check {
        kind: "stray-item",
        sql: "SELECT format('items are stored under inbox %s, which does not exist', source)
                FROM (SELECT source FROM inbox_item EXCEPT SELECT key FROM inbox_source) AS it",
        remedy: RESTORE,
    },
    Check {
        kind: "wrong-item",
        sql: "SELECT format('inbox %s has %s handled items, not %s', name, found, handled)
                FROM (SELECT name, handled,
                             (SELECT count(*) FROM inbox_item
                               WHERE source = inbox_source.key AND inbox_item.key IS NULL) AS found
                        FROM inbox_source) AS it
               WHERE found <> handled",
        remedy: RESTORE,
    },
    Check {
        kind: "stray-context",
        sql: "SELECT format('context block %s belongs to session key %s, which does not exist', label, session)
                FROM context_block
               WHERE session <> 0
                 AND NOT EXISTS (SELECT 1 FROM session WHERE session.key = context_block.session)",
        remedy: RESTORE,
    },
    Check {
        kind: "stray-context",
        sql: "SELECT format('texts are stored under context block %s, which does not exist', key)
                FROM (SELECT DISTINCT address >> 32 AS key
                        FROM context_entry
                      EXCEPT SELECT key FROM context_block) AS it",
        remedy: RESTORE,
    },
    Check {
        kind: "stray-context",
        sql: "SELECT format('a frozen prompt belongs to session key %s, which does not exist', session)
                FROM frozen_prompt
               WHERE NOT EXISTS (SELECT 1 FROM session WHERE session.key = frozen_prompt.session)",
        remedy: RESTORE,
    },
    Check {
        kind: "stray-context",
        sql: "SELECT format('a text of context block %s has the number 0, which no read finds', block)
                FROM context_entry
               WHERE address & 4294967295 = 0",
        remedy: RESTORE,
    },
    Check {
        kind: "number-in-use",
        sql: "SELECT format('the next number of context block %s is %s, which is in use', key, next)
                FROM context_block
               WHERE next < 1
                  OR EXISTS (SELECT 1
                               FROM context_entry
                              WHERE address BETWEEN (context_block.key << 32 | context_block.next)
                                                AND (context_block.key << 32 | 4294967295))",
        remedy: RESTORE,
    },
    Check {
        kind: "wrong-version",
        sql: "SELECT format('version %s of text %s of context block %s is not before its current one',
                            version, entry & 4294967295, entry >> 32)
                FROM context_version
               WHERE version < 1
                  OR NOT EXISTS (SELECT 1
                                   FROM context_entry
                                  WHERE context_entry.address = context_version.entry
                                    AND context_entry.version > context_version.version)",
        remedy: RESTORE,
    },
    Check {
        kind: "lost-elision",
        sql: "SELECT format('message %s of session %s has an elision and does not exist',
                            address & 4294967295, address >> 32)
                FROM elision
               WHERE NOT EXISTS (SELECT 1
                                   FROM message
                                  WHERE message.address = elision.address AND message.id IS NOT NULL)",
        remedy: HARMLESS,
    },
    Check {
        kind: "stray-entry",
        sql: "SELECT format('entries are stored under transcript %s, which does not exist', key)
                FROM (SELECT DISTINCT address >> 32 AS key
                        FROM transcript_entry
                      EXCEPT SELECT key FROM transcript
                      EXCEPT SELECT transcript FROM leftover) AS it",
        remedy: RESTORE,
    },
    Check {
        kind: "stray-entry",
        sql: "SELECT format('an entry of transcript %s has the number 0, which no read finds', transcript)
                FROM transcript_entry
               WHERE address & 4294967295 = 0",
        remedy: RESTORE,
    },
    Check {
        kind: "number-in-use",
        sql: "SELECT format('the next number of transcript %s is %s, which is in use', key, next)
                FROM transcript
               WHERE next < 1
                  OR EXISTS (SELECT 1
                               FROM transcript_entry
                              WHERE address BETWEEN (transcript.key << 32 | transcript.next)
                                                AND (transcript.key << 32 | 4294967295))",
        remedy: RESTORE,
    },
    Check {
        kind: "stray-transcript",
        sql: "SELECT format('transcript %s is shown by session %s, which does not exist', key, shown_by)
                FROM transcript
               WHERE shown_by IS NOT NULL AND shown_by NOT IN (SELECT key FROM session)",
        remedy: RESTORE,
    },
    Check {
        kind: "wrong-tokens",
        sql: "SELECT format('session %s stores %s visible tokens', id, visible_tokens)
                FROM session
               WHERE visible_tokens < 0",
        remedy: RECOUNT,
    },
    Check {
        kind: "lost-counter",
        sql: "SELECT format('the tokens of session %s were counted by counter %s, which does not exist',
                            id, counter)
                FROM session
               WHERE counter > 0
                 AND counter NOT IN (SELECT key FROM token_counter)",
        remedy: RECOUNT,
    },
];
