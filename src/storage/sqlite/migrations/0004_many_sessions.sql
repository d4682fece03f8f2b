-- Version 3 to 4: sessions have owners, tags, pins, a trash and the time of their last message; outside keys are bound to
-- sessions; a ledger of usage; blocks of an owner; transcripts of agents.

ALTER TABLE session ADD COLUMN owner TEXT;
ALTER TABLE session ADD COLUMN messages INTEGER NOT NULL DEFAULT 0;
ALTER TABLE session ADD COLUMN last_message_at INTEGER;
ALTER TABLE session ADD COLUMN listed_at INTEGER NOT NULL DEFAULT 0;
ALTER TABLE session ADD COLUMN ended_at INTEGER;
ALTER TABLE session ADD COLUMN pinned INTEGER NOT NULL DEFAULT 0;
ALTER TABLE session ADD COLUMN deleted_at INTEGER;

UPDATE session
   SET messages = (SELECT count(*)
                     FROM message
                    WHERE address BETWEEN (key << 32) AND (key << 32 | 4294967295) AND id IS NOT NULL),
       last_message_at = (SELECT min(created_at, session.updated_at)
                            FROM message
                           WHERE address BETWEEN (key << 32) AND (key << 32 | 4294967295) AND id IS NOT NULL
                           ORDER BY address DESC
                           LIMIT 1),
       ended_at = iif(end_reason IS NULL, NULL, updated_at);

UPDATE session
   SET listed_at = coalesce(last_message_at, created_at);

-- Eight leaf pages of the indexes fit into a page of the file; of 500 bytes it was seven. Not by FTS5's own command, which
-- fails if the index is damaged.
UPDATE search_config SET v = 490 WHERE k = 'pgsz';
UPDATE context_search_config SET v = 490 WHERE k = 'pgsz';

-- Serves: lists of sessions, newest first: all, those of one owner, of one source, of one model, and pinned ones.
CREATE INDEX session_listed ON session (listed_at) WHERE deleted_at IS NULL;
CREATE INDEX session_owner ON session (owner, listed_at) WHERE owner IS NOT NULL AND deleted_at IS NULL;
CREATE INDEX session_source ON session (source, listed_at) WHERE source IS NOT NULL AND deleted_at IS NULL;
CREATE INDEX session_model ON session (model, listed_at) WHERE model IS NOT NULL AND deleted_at IS NULL;
CREATE INDEX session_pinned ON session (listed_at) WHERE pinned = 1 AND deleted_at IS NULL;

-- Serves: the forks of a session, newest first.
CREATE INDEX session_parent ON session (parent_session, listed_at) WHERE parent_session IS NOT NULL AND deleted_at IS NULL;

-- Serves: the trash, newest first, and what searches leave out.
CREATE INDEX session_deleted ON session (listed_at) WHERE deleted_at IS NOT NULL;

-- The tags of sessions.
CREATE TABLE session_tag (
    session INTEGER NOT NULL, -- key of the session
    tag     TEXT    NOT NULL,
    PRIMARY KEY (session, tag)
) STRICT, WITHOUT ROWID;

-- Serves: the sessions with a tag.
CREATE INDEX session_tagged ON session_tag (tag, session);

-- Which session an outside key, such as a chat of a messenger, points to; and which ones it pointed to before.
CREATE TABLE binding (
    number    INTEGER PRIMARY KEY AUTOINCREMENT, -- the order in which a key was bound
    key       TEXT    NOT NULL,
    session   INTEGER NOT NULL,                  -- key of the session
    bound_at  INTEGER NOT NULL,
    ended_at  INTEGER,                           -- NULL: it points there now
    end_cause TEXT                               -- why it does not any more: expired, replaced, unbound, ..
) STRICT;

-- Serves: the session that a key points to. Unique, so that processes that bind one key at once agree.
CREATE UNIQUE INDEX binding_open ON binding (key) WHERE ended_at IS NULL;

-- Serves: the former sessions of a key.
CREATE INDEX binding_key ON binding (key, number);

-- Serves: the keys of a session.
CREATE INDEX binding_session ON binding (session);

-- What answers of models cost. A message has one row at most.
CREATE TABLE usage (
    number      INTEGER PRIMARY KEY AUTOINCREMENT,
    session     INTEGER,                    -- key of the session; NULL: of a session that is not in the store any more
    address     INTEGER,                    -- of the message; NULL: of no message, or of a deleted one
    owner       TEXT,                       -- of the session; NULL: none, or erased
    source      TEXT,                       -- of the session
    model       TEXT,
    input       INTEGER NOT NULL DEFAULT 0, -- tokens, those of the cache included
    output      INTEGER NOT NULL DEFAULT 0, -- tokens, those of reasoning included
    cache_read  INTEGER NOT NULL DEFAULT 0, -- tokens
    cache_write INTEGER NOT NULL DEFAULT 0, -- tokens
    reasoning   INTEGER NOT NULL DEFAULT 0, -- tokens
    cost        INTEGER,                    -- in millionths of the currency; NULL: unknown
    currency    TEXT,                       -- such as USD
    used_at     INTEGER NOT NULL,
    answer      TEXT                        -- the provider's id of an answer that came as several messages
) STRICT;

-- Serves: the usage of a session, and of a range of its messages.
CREATE INDEX usage_session ON usage (session, address);

-- Serves: the row of a message. Unique: a message that is appended again is not counted twice.
CREATE UNIQUE INDEX usage_message ON usage (address) WHERE address IS NOT NULL;

-- Unique: an answer that came as several messages, each with the usage of all of it, is counted once.
CREATE UNIQUE INDEX usage_answer ON usage (session, answer) WHERE answer IS NOT NULL;

-- Serves: totals of a time, and by day.
CREATE INDEX usage_time ON usage (used_at);

-- Serves: the usage of an owner.
CREATE INDEX usage_owner ON usage (owner, used_at) WHERE owner IS NOT NULL;

-- SQLite cannot change a UNIQUE of a table: a new table takes the place of the old one.
ALTER TABLE context_block RENAME TO former_block;
CREATE TABLE context_block (
    key     INTEGER PRIMARY KEY AUTOINCREMENT, -- never reused: it is part of the address of every text
    session INTEGER NOT NULL,                  -- key of the session; 0: of an owner, or shared by all
    owner   TEXT    NOT NULL DEFAULT '',       -- the owner; empty: of a session, or shared by all
    label   TEXT    NOT NULL,
    next    INTEGER NOT NULL DEFAULT 1,        -- the number of the next text
    UNIQUE (session, owner, label),
    CHECK (session = 0 OR owner = '')
) STRICT;
INSERT INTO context_block (key, session, label, next) SELECT key, session, label, next FROM former_block;
-- Keys are never reused, those of removed blocks included.
DELETE FROM sqlite_sequence WHERE name = 'context_block';
INSERT INTO sqlite_sequence (name, seq) SELECT 'context_block', seq FROM sqlite_sequence WHERE name = 'former_block';
DROP TABLE former_block;

-- The sessions that were erased and must not be imported again.
CREATE TABLE erased_session (
    hash TEXT PRIMARY KEY -- of the id, keyed by the setting `erasure_key`
) STRICT, WITHOUT ROWID;

-- Pages that earlier versions have written keep what was deleted from them. The first erasure writes the file again.
INSERT INTO setting (name, value) VALUES ('erasure_rewrites', 'yes');

-- A transcript: the entries of an agent's session, or of one of its subagents, as the Claude Agent SDK writes them.
CREATE TABLE transcript (
    key        INTEGER PRIMARY KEY AUTOINCREMENT, -- never reused: it is part of the address of every entry
    project    TEXT    NOT NULL,
    session    TEXT    NOT NULL,                  -- the SDK's id; not one of table session
    subpath    TEXT    NOT NULL,                  -- empty: the main transcript of its session
    owner      TEXT,                              -- the person or tenant whose data it is
    next       INTEGER NOT NULL DEFAULT 1,        -- the number of the next entry
    written_at INTEGER NOT NULL,                  -- milliseconds since 1970: greater than at any append before
    summary    TEXT,                              -- JSON object; NULL: not the main transcript
    UNIQUE (project, session, subpath),
    CHECK ((subpath = '') = (summary IS NOT NULL))
) STRICT;

-- Serves: the transcripts of an owner.
CREATE INDEX transcript_owner ON transcript (owner) WHERE owner IS NOT NULL;

-- An entry, at address = transcript key << 32 | its number in the transcript, from 1.
CREATE TABLE transcript_entry (
    address    INTEGER PRIMARY KEY,
    uuid       TEXT,                              -- NULL: it has none. One with unpaired surrogates is its JSON
    entry      TEXT    NOT NULL,                  -- JSON object, as it came
    transcript INTEGER GENERATED ALWAYS AS (address >> 32) VIRTUAL
) STRICT;

-- Serves: whether a transcript has an entry. Unique: an entry that is appended again is not added.
CREATE UNIQUE INDEX transcript_uuid ON transcript_entry (transcript, uuid) WHERE uuid IS NOT NULL;

-- Which session shows which transcript.
CREATE TABLE projection (
    transcript   INTEGER PRIMARY KEY,        -- key of the transcript
    session      INTEGER NOT NULL,           -- key of the session
    entries      INTEGER NOT NULL,           -- how many of its first entries are in the session
    next         INTEGER NOT NULL,           -- `next` and `changes` of the session after the last projection: others mean that
    changes      INTEGER NOT NULL,           -- others have changed it
    needs_repair INTEGER NOT NULL DEFAULT 0, -- 1: entries have come that change earlier messages
    is_changed   INTEGER NOT NULL DEFAULT 0, -- 1: others have changed the session before the last projection
    is_closed    INTEGER NOT NULL DEFAULT 0  -- 1: it is being erased
) STRICT;

-- Serves: the transcript that a session shows.
CREATE UNIQUE INDEX projection_session ON projection (session);

-- A source of deliveries, such as the update queue of a messenger.
CREATE TABLE inbox_source (
    key         INTEGER PRIMARY KEY,
    name        TEXT    NOT NULL UNIQUE,
    next_offset INTEGER,                    -- from where to read next; NULL: not stored
    stored_at   INTEGER,                    -- when it was stored
    handled     INTEGER NOT NULL DEFAULT 0, -- how many handled items it has
    CHECK ((next_offset IS NULL) = (stored_at IS NULL))
) STRICT;

-- A received item. When it is handled, only its id is left, so that a duplicate is known.
CREATE TABLE inbox_item (
    number      INTEGER PRIMARY KEY AUTOINCREMENT, -- the order in which items were received
    source      INTEGER NOT NULL,                  -- key of the source
    id          TEXT    NOT NULL,                  -- in the source
    received_at INTEGER NOT NULL,
    key         TEXT,                              -- whose turn it is; NULL: it is handled
    owner       TEXT,                              -- the person or tenant whose data it is
    note        TEXT,                              -- how far its handling came
    body        TEXT,                              -- last, because it may be long
    UNIQUE (source, id),
    CHECK ((key IS NULL) = (body IS NULL) AND (key IS NOT NULL OR (owner IS NULL AND note IS NULL)))
) STRICT;

-- Serves: the oldest pending item of a key, the keys that have one, and how many there are.
CREATE INDEX inbox_pending ON inbox_item (source, key) WHERE key IS NOT NULL;

-- Serves: the oldest handled items, which are forgotten first.
CREATE INDEX inbox_handled ON inbox_item (source) WHERE key IS NULL;

-- Serves: the pending items of an owner.
CREATE INDEX inbox_owner ON inbox_item (owner) WHERE owner IS NOT NULL;

-- The times and roles of the indexed messages: which matches cannot pass the filters of a search. A row is a stretch of 256
-- addresses; times are in units of 2^20 microseconds.
CREATE TABLE search_filter (
    stretch INTEGER PRIMARY KEY, -- address >> 8
    first   INTEGER NOT NULL,    -- the least time
    last    INTEGER NOT NULL,    -- the greatest time
    entries BLOB    NOT NULL     -- five bytes for each address: time, role; zeros: not indexed
) STRICT;

-- Every word that was indexed, in lower case and without diacritics, not stemmed: for other spellings and forms of the words
-- of a query. It may have words of deleted messages, none of erased ones.
CREATE TABLE vocabulary (
    word      TEXT    PRIMARY KEY,
    languages INTEGER NOT NULL DEFAULT 0 -- the languages of the messages with the word, a bit each; 0: not known
) STRICT, WITHOUT ROWID;
