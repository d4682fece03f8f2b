-- The format of a talktree store, version 7.
--
-- One file holds many sessions; a session is a tree of messages. Times are microseconds since 1970 in
-- UTC. JSON is text. Everything here can be read with the stock sqlite3 shell; start with
--   SELECT * FROM message_tree WHERE session = 'my session';
--
-- `application_id` is 0x74616c6b ("talk"), `user_version` is the version of the format.

-- One named conversation.
CREATE TABLE session (
    key            INTEGER PRIMARY KEY AUTOINCREMENT, -- never reused: it is part of every address
    id             TEXT    NOT NULL UNIQUE,           -- the name for programs
    name           TEXT,                              -- the name for people
    next           INTEGER NOT NULL DEFAULT 1,        -- the number of the next message
    head           INTEGER,                           -- address: the parent of the next message
    head_position  INTEGER NOT NULL DEFAULT 0,        -- of the current entry in head_log
    parent_session TEXT,                              -- id of the session it was forked from
    fork_point     TEXT,                              -- id of the message it was forked at
    model          TEXT,
    source         TEXT,                              -- the program or file it came from
    metadata       TEXT,                              -- JSON
    end_reason     TEXT,                              -- why it was ended, if it was
    visible_tokens INTEGER,                           -- how many tokens a model sees on the path to the head; NULL: not counted
    counter        INTEGER NOT NULL DEFAULT 0,        -- what counted them: key of a token_counter, or 0
    changes        INTEGER NOT NULL DEFAULT 0,        -- how often they were changed by anything but an append at the head
    created_at     INTEGER NOT NULL,
    updated_at     INTEGER NOT NULL,                  -- time of the last write to it
    unindexed      INTEGER,                           -- the number of the first message that is not in the search index; NULL: all are
    owner           TEXT,                             -- the person or tenant whose data it is
    messages        INTEGER NOT NULL DEFAULT 0,       -- how many messages it has; tombstones are none
    last_message_at INTEGER,                          -- time of the message that was appended last
    listed_at       INTEGER NOT NULL DEFAULT 0,       -- last_message_at, or up to 100 ms before it: it is in indexes, and changes less often
    ended_at        INTEGER,                          -- when it was ended; NULL: it was not
    pinned          INTEGER NOT NULL DEFAULT 0,       -- 1: no retention rule removes it
    deleted_at      INTEGER                           -- when it was put into the trash; NULL: it is not there
) STRICT;

-- Serves: lists of sessions, newest first. Those of a source, of a model and pinned ones are chosen in the index alone: of
-- 100 000 sessions in 7 ms at most.
CREATE INDEX session_listed ON session (listed_at, source, model, pinned) WHERE deleted_at IS NULL;

-- Serves: the list of an owner.
CREATE INDEX session_owner ON session (owner, listed_at) WHERE owner IS NOT NULL AND deleted_at IS NULL;

-- Serves: the forks of a session, newest first, and what was made from its messages in sessions that continue it.
CREATE INDEX session_parent ON session (parent_session, listed_at) WHERE parent_session IS NOT NULL;

-- Serves: the sessions that began at a time. A copy of a conversation begins when the conversation did.
CREATE INDEX session_created ON session (created_at, listed_at) WHERE deleted_at IS NULL;

-- Serves: the trash, newest first, and what searches leave out.
CREATE INDEX session_deleted ON session (listed_at) WHERE deleted_at IS NOT NULL;

-- Serves: the sessions with messages that are not in the search index.
CREATE INDEX session_unindexed ON session (key) WHERE unindexed IS NOT NULL;

-- The tags of sessions. The sessions with a tag are found by a scan: 6 ms for 150 000 tags.
CREATE TABLE session_tag (
    session INTEGER NOT NULL, -- key of the session
    tag     TEXT    NOT NULL,
    PRIMARY KEY (session, tag)
) STRICT, WITHOUT ROWID;

-- Which session an outside key, such as a chat of a messenger, points to; and which ones it pointed to before, which are found
-- by a scan: 4 ms for 100 000 rows.
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

-- Serves: the keys of a session.
CREATE INDEX binding_session ON binding (session);

-- What answers of models cost. A message has one row at most. Totals of a time, of a model or of an author scan it: 40 ms for
-- 500 000 rows.
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
    answer      TEXT,                       -- the provider's id of an answer that came as several messages
    author      TEXT                        -- of the message it answers; NULL: none, or erased
) STRICT;

-- Serves: the usage of a session, of a range of its messages, and of one. Unique: a message that is appended again is not
-- counted twice.
CREATE UNIQUE INDEX usage_message ON usage (session, address);

-- Unique: an answer that came as several messages, each with the usage of all of it, is counted once.
CREATE UNIQUE INDEX usage_answer ON usage (session, answer) WHERE answer IS NOT NULL;

-- Serves: the usage of an owner, which a program may ask for before each answer.
CREATE INDEX usage_owner ON usage (owner, used_at) WHERE owner IS NOT NULL;

-- A message, at address = session key << 32 | its number in the session's order of appends, from 1.
-- Neither its address nor its parent ever changes, and a parent's address is smaller than its child's.
-- A deleted message with children stays as a tombstone: id NULL, content removed, address and parent kept.
CREATE TABLE message (
    address    INTEGER PRIMARY KEY,
    parent     INTEGER,                    -- address; NULL: a root
    id         TEXT,                       -- NULL: a tombstone
    role       TEXT    NOT NULL,
    parts      TEXT    NOT NULL,           -- JSON array
    metadata   TEXT,                       -- JSON
    extra      TEXT,                       -- JSON object: the fields that talktree does not know
    tokens     INTEGER NOT NULL,           -- how many tokens it takes
    counter    INTEGER NOT NULL DEFAULT 0, -- what counted them: key of a token_counter, or 0
    hidden     INTEGER NOT NULL DEFAULT 0, -- 1: not shown to a model
    origin     INTEGER,                    -- in a copy made by a fork: the address it was first written at
    created_at INTEGER NOT NULL,
    session    INTEGER GENERATED ALWAYS AS (address >> 32) VIRTUAL,
    -- Who wrote it: the id in `metadata.author`, or without one the name. One of more than 1 024 bytes is none.
    author     TEXT GENERATED ALWAYS AS (
                   CASE
                   WHEN instr(metadata, '"author"') AND json_valid(metadata) THEN coalesce(
                       CASE WHEN json_type(metadata, '$.author.id') IN ('text', 'integer')
                             AND length(CAST(metadata ->> '$.author.id' AS BLOB)) <= 1024
                            THEN nullif(trim(metadata ->> '$.author.id', char(9, 10, 12, 13, 32)), '') END,
                       CASE WHEN json_type(metadata, '$.author.name') IN ('text', 'integer')
                             AND length(CAST(metadata ->> '$.author.name' AS BLOB)) <= 1024
                            THEN nullif(trim(metadata ->> '$.author.name', char(9, 10, 12, 13, 32)), '') END,
                       CASE WHEN json_type(metadata, '$.author') = 'text'
                             AND length(CAST(metadata ->> '$.author' AS BLOB)) <= 1024
                            THEN nullif(trim(metadata ->> '$.author', char(9, 10, 12, 13, 32)), '') END)
                   END) VIRTUAL
) STRICT;

-- Serves: a message by id. The condition keeps the planner from using it to count tombstones.
CREATE UNIQUE INDEX message_id ON message (session, id) WHERE id IS NOT NULL;

-- Serves: the start of the run of a message, and the run's parent (the greatest entry at or before it).
-- A run is a range of addresses in which each message's parent is the one before; only the breaks are
-- indexed. SQLite uses this index and the next one only if a query repeats the condition literally.
CREATE INDEX run ON message (address, parent) WHERE parent IS NOT address - 1;

-- Serves: the children of a message, apart from the one that may follow it in its run.
CREATE INDEX branch ON message (parent) WHERE parent IS NOT address - 1;

-- Serves: which addresses of a range are tombstones or hidden, and how many.
CREATE INDEX unshown ON message (address, hidden, id) WHERE id IS NULL OR hidden = 1;

-- Serves: the copies of one message in forks.
CREATE INDEX copy ON message (origin) WHERE origin IS NOT NULL;

-- Serves: the nearest author above an answer; and the messages of an author, by a scan: 20 ms for 250 000 messages with one.
CREATE INDEX message_author ON message (address, author) WHERE author IS NOT NULL;

-- The tags of messages. The messages with a tag are found by a scan: 3 ms for 100 000 tags.
CREATE TABLE message_tag (
    address INTEGER NOT NULL, -- of the message
    tag     TEXT    NOT NULL,
    PRIMARY KEY (address, tag)
) STRICT, WITHOUT ROWID;

-- The counters that counted the tokens of messages. 0 and below have no row: 0 is the first version of talktree's own
-- estimate, -1 the second, and so on.
CREATE TABLE token_counter (
    key  INTEGER PRIMARY KEY,
    name TEXT    NOT NULL UNIQUE
) STRICT;

-- A summary that replaces the range first .. last of a path when a history is read.
CREATE TABLE compaction (
    key        INTEGER PRIMARY KEY AUTOINCREMENT, -- of two with the same ends the greater one is visible
    session    INTEGER NOT NULL,                  -- key of the session
    id         TEXT    NOT NULL,
    first      INTEGER NOT NULL,                  -- address
    last       INTEGER NOT NULL,                  -- address
    first_id   TEXT    NOT NULL,                  -- the message ids of both when it was added
    last_id    TEXT    NOT NULL,
    count      INTEGER NOT NULL,                  -- how many messages the range had when it was added
    before     INTEGER NOT NULL,                  -- tokens that a model saw in the range then
    after      INTEGER NOT NULL,                  -- tokens of the summary
    nested     TEXT,                              -- JSON array: the ids of the compactions inside the range
    model      TEXT,                              -- the model that wrote the summary
    summary    TEXT    NOT NULL,
    details    TEXT,                              -- JSON
    created_at INTEGER NOT NULL,
    UNIQUE (session, id)
) STRICT;

-- Serves: the walk back along a path: the last end at or before an address, then the longest range.
CREATE INDEX compaction_end ON compaction (last DESC, first, key DESC);

-- A named pointer to a message.
CREATE TABLE label (
    session INTEGER NOT NULL, -- key of the session
    name    TEXT    NOT NULL,
    address INTEGER NOT NULL,
    PRIMARY KEY (session, name)
) STRICT, WITHOUT ROWID;

-- The places of the head before and after its current one, for undo and redo. The current place is
-- `session.head`; its row here is written when the head leaves it.
CREATE TABLE head_log (
    session  INTEGER NOT NULL, -- key of the session
    position INTEGER NOT NULL,
    address  INTEGER,          -- NULL: before the first message
    moved_at INTEGER NOT NULL, -- when the head left it
    PRIMARY KEY (session, position)
) STRICT, WITHOUT ROWID;

-- The records that were imported, so that a second import does not add them again, even if their messages
-- were deleted since.
CREATE TABLE imported (
    session INTEGER NOT NULL, -- key of the session
    record  TEXT    NOT NULL, -- key of the record in its source
    PRIMARY KEY (session, record)
) STRICT, WITHOUT ROWID;

-- The index of words, in their normal form: what the text says, what reasoning and tools say, and labels of the message's role and
-- time (`ruser`, `d46051`: the days since 1900). It holds no text, so `MATCH` finds addresses alone.
CREATE VIRTUAL TABLE search USING fts5 (
    text, tools, labels,
    content = '', contentless_delete = 1, tokenize = 'ascii'
);

-- The terms of letters in that index, for other forms and spellings of the words of a query. It may have terms of deleted messages,
-- none of erased ones.
CREATE TABLE term (
    term      TEXT    PRIMARY KEY,
    languages INTEGER NOT NULL DEFAULT 0 -- the languages of the messages with the term, a bit each; 0: not known
) STRICT, WITHOUT ROWID;

-- A context block: a label with texts, of one session, of all sessions of an owner, or shared by all.
CREATE TABLE context_block (
    key     INTEGER PRIMARY KEY AUTOINCREMENT, -- never reused: it is part of the address of every text
    session INTEGER NOT NULL,                  -- key of the session; 0: of an owner, or shared by all
    owner   TEXT    NOT NULL DEFAULT '',       -- the owner; empty: of a session, or shared by all
    label   TEXT    NOT NULL,
    next    INTEGER NOT NULL DEFAULT 1,        -- the number of the next text
    UNIQUE (session, owner, label),
    CHECK (session = 0 OR owner = '')
) STRICT;

-- A text of a block, at address = block key << 32 | its number in the block, from 1: so all texts of a
-- block are one range, here and in the index. A removed text keeps its row and its version number:
-- content NULL.
CREATE TABLE context_entry (
    address     INTEGER PRIMARY KEY,
    block       INTEGER NOT NULL, -- key of the block
    key         TEXT    NOT NULL, -- the document's name in the block; empty: the block's own text
    present     INTEGER NOT NULL, -- 0: removed
    version     INTEGER NOT NULL, -- from 1
    searchable  INTEGER NOT NULL, -- 1: in the search index
    changed_at  INTEGER NOT NULL,
    title       TEXT,
    description TEXT,
    content     TEXT,             -- last, so that listing titles does not read it
    CHECK (block = address >> 32 AND (present = 1) = (content IS NOT NULL))
) STRICT;

-- Serves: a text by its key, and the documents of a block in order of key.
CREATE UNIQUE INDEX context_key ON context_entry (block, key);

-- The earlier versions of a text. A row is written when a new version replaces it, so the current text is stored once.
CREATE TABLE context_version (
    entry       INTEGER NOT NULL, -- address of the text
    version     INTEGER NOT NULL,
    changed_at  INTEGER NOT NULL, -- when this version was put or removed
    title       TEXT,
    description TEXT,
    content     TEXT,             -- NULL: this version is a removal
    PRIMARY KEY (entry, version)
) STRICT, WITHOUT ROWID;

-- The index of the texts of blocks: key, title and description in one column, content in another. The labels are empty.
CREATE VIRTUAL TABLE context_search USING fts5 (
    text, tools, labels,
    content = '', contentless_delete = 1, tokenize = 'ascii'
);

-- The frozen system prompt of a session.
CREATE TABLE frozen_prompt (
    session   INTEGER PRIMARY KEY, -- key of the session
    sections  TEXT    NOT NULL,    -- JSON array of {"label": .., "header": .., "content": ..}
    frozen_at INTEGER NOT NULL
) STRICT;

-- A short marker that replaces the output of one tool call when a history is read.
CREATE TABLE elision (
    address INTEGER NOT NULL, -- of the message
    call    TEXT    NOT NULL, -- id of the tool call
    marker  TEXT    NOT NULL,
    PRIMARY KEY (address, call)
) STRICT, WITHOUT ROWID;

-- A transcript: the entries of an agent's session, or of one of its subagents, as the Claude Agent SDK writes them.
CREATE TABLE transcript (
    key        INTEGER PRIMARY KEY AUTOINCREMENT, -- never reused: it is part of the address of every entry
    project    TEXT    NOT NULL,
    session    TEXT    NOT NULL,                  -- the SDK's id; not one of table session
    subpath    TEXT    NOT NULL,                  -- empty: the main transcript of its session
    owner      TEXT,                              -- the person or tenant whose data it is
    next       INTEGER NOT NULL DEFAULT 1,        -- the number of the next entry
    written_at INTEGER NOT NULL,                  -- milliseconds since 1970: greater than at any append before, to this transcript if on a server
    summary    TEXT,                              -- JSON: what the last append has derived of the entries, if anything
    shown_by   INTEGER,                           -- key of the session that shows it; NULL: none does
    shown      INTEGER,                           -- how many of its first entries that session shows
    version    INTEGER,                           -- `next` + `changes` of the session after that; NULL: others had changed it
    UNIQUE (project, session, subpath)
) STRICT;

-- Serves: the transcripts of an owner.
CREATE INDEX transcript_owner ON transcript (owner) WHERE owner IS NOT NULL;

-- Serves: the transcript that a session shows.
CREATE UNIQUE INDEX transcript_shown_by ON transcript (shown_by) WHERE shown_by IS NOT NULL;

-- An entry, at address = transcript key << 32 | its number in the transcript, from 1.
CREATE TABLE transcript_entry (
    address    INTEGER PRIMARY KEY,
    uuid       TEXT,                              -- NULL: it has none. One with unpaired surrogates is a quote and its escaped bytes
    entry      TEXT    NOT NULL,                  -- JSON object, as it came
    transcript INTEGER GENERATED ALWAYS AS (address >> 32) VIRTUAL
) STRICT;

-- Serves: whether a transcript has an entry. Unique: an entry that is appended again is not added.
CREATE UNIQUE INDEX transcript_uuid ON transcript_entry (transcript, uuid) WHERE uuid IS NOT NULL;

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

-- Serves: the oldest pending item of a key, the keys that have one, and all that are pending; and the oldest handled items,
-- which are forgotten first.
CREATE INDEX inbox_turn ON inbox_item (source, key);

-- Settings of the store itself.
CREATE TABLE setting (
    name  TEXT PRIMARY KEY,
    value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- What was removed or erased and is still in the file. A session or a transcript vanishes in one step, with its row; its
-- messages or entries are deleted later. A row with neither is an erasure: deleted bytes are still to be overwritten.
CREATE TABLE leftover (
    number     INTEGER PRIMARY KEY AUTOINCREMENT,
    session    INTEGER NOT NULL DEFAULT 0, -- key of the session whose messages are left; 0: none
    transcript INTEGER NOT NULL DEFAULT 0  -- key of the transcript whose entries are left; 0: none
) STRICT;

-- The sessions that were erased and must not be imported again.
CREATE TABLE erased_session (
    hash TEXT PRIMARY KEY -- of the id, keyed by the setting `erasure_key`
) STRICT, WITHOUT ROWID;

-- For people with the sqlite3 shell: the tree with ids instead of addresses. Tombstones are skipped: the
-- parent shown is the nearest ancestor that is not one.
CREATE VIEW message_tree AS
    SELECT session.id AS session, message.id,
           (WITH RECURSIVE above (id, parent) AS (
                SELECT direct.id, direct.parent FROM message AS direct WHERE direct.address = message.parent
                 UNION ALL
                SELECT next.id, next.parent
                  FROM above
                  JOIN message AS next ON next.address = above.parent
                 WHERE above.id IS NULL)
            SELECT id FROM above WHERE id IS NOT NULL) AS parent,
           message.role, message.parts, message.hidden, message.tokens,
           strftime('%Y-%m-%dT%H:%M:%fZ', message.created_at / 1e6, 'unixepoch') AS created_at,
           message.address
      FROM message
      JOIN session ON session.key = message.session
     WHERE message.id IS NOT NULL;
