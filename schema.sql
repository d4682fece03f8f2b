-- The format of a talktree store, version 2.
--
-- One file holds many sessions; a session is a tree of messages. Times are microseconds since 1970 in
-- UTC. JSON is text. Everything here can be read with the stock sqlite3 shell; start with
--   SELECT * FROM message_tree WHERE session = 'my session';
--
-- `application_id` is 0x74616c6b ("talk"), `user_version` the version of the format.

-- One named conversation.
CREATE TABLE session (
    key            INTEGER PRIMARY KEY AUTOINCREMENT, -- never used again: it is in every address
    id             TEXT    NOT NULL UNIQUE,           -- the name programs know it by
    name           TEXT,                              -- the name people know it by
    next           INTEGER NOT NULL DEFAULT 1,        -- the number that the next message gets
    head           INTEGER,                           -- address: where the next message is attached
    head_position  INTEGER NOT NULL DEFAULT 0,        -- of the present entry in head_log
    parent_session TEXT,                              -- id of the session it was forked from ..
    fork_point     TEXT,                              -- .. and the message at which
    model          TEXT,
    source         TEXT,                              -- the program or file it comes from
    metadata       TEXT,                              -- JSON
    end_reason     TEXT,                              -- why it was closed, if it was
    visible_tokens INTEGER,                           -- what a model sees on the path to the head; NULL: to be counted
    counter        INTEGER NOT NULL DEFAULT 0,        -- what counted them: key of a token_counter
    changes        INTEGER NOT NULL DEFAULT 0,        -- how often anything but an append at the head changed them
    created_at     INTEGER NOT NULL,
    updated_at     INTEGER NOT NULL                   -- of the last write to it
) STRICT;

-- A message, at address = session key << 32 | its number in the session's order of appends, from 1.
-- Neither its address nor its parent ever changes, and a parent's address is smaller than its child's.
-- A deleted message with children stays as a tombstone: id NULL, content gone, place kept.
CREATE TABLE message (
    address    INTEGER PRIMARY KEY,
    parent     INTEGER,                    -- address; NULL: a root
    id         TEXT,                       -- NULL: a tombstone
    role       TEXT    NOT NULL,
    parts      TEXT    NOT NULL,           -- JSON array
    metadata   TEXT,                       -- JSON
    extra      TEXT,                       -- JSON object: fields that talktree does not know
    tokens     INTEGER NOT NULL,           -- estimate, stamped when written ..
    counter    INTEGER NOT NULL DEFAULT 0, -- .. by this: key of a token_counter
    hidden     INTEGER NOT NULL DEFAULT 0, -- 1: not shown to a model
    origin     INTEGER,                    -- address it was first written at, in a copy made by a fork
    created_at INTEGER NOT NULL,
    session    INTEGER GENERATED ALWAYS AS (address >> 32) VIRTUAL
) STRICT;

-- Serves: a message by id. The condition keeps the planner from counting tombstones with it.
CREATE UNIQUE INDEX message_id ON message (session, id) WHERE id IS NOT NULL;

-- Serves: where the run of a message starts, and what it hangs from (the greatest entry at or before it).
-- A run is a stretch of addresses in which each message hangs from the one before; only the breaks are
-- kept. SQLite takes these two only where a query repeats the condition to the letter.
CREATE INDEX run ON message (address, parent) WHERE parent IS NOT address - 1;

-- Serves: the children of a message, beside the one that may follow it in its run.
CREATE INDEX branch ON message (parent) WHERE parent IS NOT address - 1;

-- Serves: how many places of a stretch are tombstones, for the length of a path.
CREATE INDEX tombstone ON message (address) WHERE id IS NULL;

-- Serves: how many messages of a stretch a model does not see.
CREATE INDEX hidden ON message (address) WHERE hidden = 1;

-- Serves: the copies of one message in forks.
CREATE INDEX copy ON message (origin) WHERE origin IS NOT NULL;

-- What counts the tokens of messages. 0 has no row: it is talktree's own estimate.
CREATE TABLE token_counter (
    key  INTEGER PRIMARY KEY,
    name TEXT    NOT NULL UNIQUE
) STRICT;

-- A summary laid over the stretch first .. last of a path when it is read.
CREATE TABLE compaction (
    key        INTEGER PRIMARY KEY AUTOINCREMENT, -- of two with the same ends the greater shows
    session    INTEGER NOT NULL,                  -- key of the session
    id         TEXT    NOT NULL,
    first      INTEGER NOT NULL,                  -- address
    last       INTEGER NOT NULL,                  -- address
    first_id   TEXT    NOT NULL,                  -- message ids when it was made
    last_id    TEXT    NOT NULL,
    count      INTEGER NOT NULL,                  -- messages it stood for when it was made
    before     INTEGER NOT NULL,                  -- tokens that a model saw there then ..
    after      INTEGER NOT NULL,                  -- .. and those of the summary
    nested     TEXT,                              -- JSON array of the ids of the compactions in its range
    model      TEXT,                              -- what wrote the summary
    summary    TEXT    NOT NULL,
    details    TEXT,                              -- JSON
    created_at INTEGER NOT NULL,
    UNIQUE (session, id)
) STRICT;

-- Serves: the walk back along a path: the latest end at or before an address, then the furthest reach.
CREATE INDEX compaction_end ON compaction (last DESC, first, key DESC);

-- A named pointer to a message.
CREATE TABLE label (
    session INTEGER NOT NULL, -- key of the session
    name    TEXT    NOT NULL,
    address INTEGER NOT NULL,
    PRIMARY KEY (session, name)
) STRICT, WITHOUT ROWID;

-- Serves: the labels of a message that is deleted.
CREATE INDEX label_target ON label (address);

-- Where the head stood before and after its present place, for undo and redo. The present entry is
-- `session.head`; its row here is written when the head leaves it.
CREATE TABLE head_log (
    session  INTEGER NOT NULL, -- key of the session
    position INTEGER NOT NULL,
    address  INTEGER,          -- NULL: before the first message
    moved_at INTEGER NOT NULL, -- when the head left it
    PRIMARY KEY (session, position)
) STRICT, WITHOUT ROWID;

-- The records that imports have brought, so that a second import brings nothing again, also what was
-- deleted since.
CREATE TABLE imported (
    session INTEGER NOT NULL, -- key of the session
    record  TEXT    NOT NULL, -- key of the record in its source
    PRIMARY KEY (session, record)
) STRICT, WITHOUT ROWID;

-- Messages whose text is not in the index yet.
CREATE TABLE search_pending (
    address INTEGER PRIMARY KEY
) STRICT;

-- What is indexed: said text, and reasoning and tools beside it. The two functions are talktree's own:
-- they take the text from the parts and set U+200B around each character of scripts without spaces.
-- Without them MATCH and rank work on the index, and reading its columns does not.
CREATE VIEW search_source AS
    SELECT address, talktree_text(parts) AS text, talktree_tools(parts) AS tools
      FROM message
     WHERE id IS NOT NULL
       AND address NOT IN (SELECT address FROM search_pending);

-- The full-text index; its rowid is the address.
CREATE VIRTUAL TABLE search USING fts5 (
    text, tools,
    content = 'search_source', content_rowid = 'address',
    tokenize = "porter unicode61 remove_diacritics 2 categories 'L* N* Co So'"
);

-- Small leaves: a word's list is cut into more of them, so that a search in one session of a large store skips to it.
-- More is gathered before it is written, so that less is merged afterwards.
INSERT INTO search (search, rank) VALUES ('pgsz', 500), ('hashsize', 2097152);

-- A labelled place for texts, of one session or of all: what a context block is stored in.
CREATE TABLE context_block (
    key     INTEGER PRIMARY KEY AUTOINCREMENT, -- never used again: it is in the address of every text
    session INTEGER NOT NULL,                  -- key of the session; 0: shared by all
    label   TEXT    NOT NULL,
    next    INTEGER NOT NULL DEFAULT 1,        -- the number that the next text gets
    UNIQUE (session, label)
) STRICT;

-- A text of a block, at address = block key << 32 | its number in the block, from 1: so all texts of a
-- block are one range, here and in the index. What was taken away keeps its place and its count of
-- versions: content NULL.
CREATE TABLE context_entry (
    address     INTEGER PRIMARY KEY,
    block       INTEGER NOT NULL, -- key of the block; not generated: no index covers a count by such a column
    key         TEXT    NOT NULL, -- the document's name in the block; empty: the block's own text
    present     INTEGER NOT NULL, -- 0: taken away
    version     INTEGER NOT NULL, -- from 1
    searchable  INTEGER NOT NULL, -- 1: in the index
    changed_at  INTEGER NOT NULL,
    title       TEXT,
    description TEXT,
    content     TEXT,             -- last, so that a list of titles does not read it
    CHECK (block = address >> 32 AND present = (content IS NOT NULL))
) STRICT;

-- Serves: a text by its key.
CREATE UNIQUE INDEX context_key ON context_entry (block, key);

-- Serves: a block's documents in order of key, how many there are, and whether a block holds anything.
-- The condition is an equation: only then SQLite counts in the index alone.
CREATE INDEX context_present ON context_entry (block, key) WHERE present = 1;

-- What a text was before; written when a version is left, so that the present text is stored once.
CREATE TABLE context_version (
    entry       INTEGER NOT NULL, -- address of the text
    version     INTEGER NOT NULL,
    changed_at  INTEGER NOT NULL, -- when this version was put
    title       TEXT,
    description TEXT,
    content     TEXT,             -- NULL: it was taken away
    PRIMARY KEY (entry, version)
) STRICT, WITHOUT ROWID;

-- What of the texts is indexed: what they are called, and what they say.
CREATE VIEW context_source AS
    SELECT address,
           talktree_cut(key || char(10) || coalesce(title, '') || char(10) || coalesce(description, '')) AS name,
           talktree_cut(content) AS text
      FROM context_entry
     WHERE searchable = 1
       AND present = 1;

-- The full-text index of the context; its rowid is the address.
CREATE VIRTUAL TABLE context_search USING fts5 (
    name, text,
    content = 'context_source', content_rowid = 'address',
    tokenize = "porter unicode61 remove_diacritics 2 categories 'L* N* Co So'"
);

-- Small leaves, so that a search in one block skips to it.
INSERT INTO context_search (context_search, rank) VALUES ('pgsz', 500);

-- The system prompt of a session, as it was frozen.
CREATE TABLE frozen_prompt (
    session   INTEGER PRIMARY KEY, -- key of the session
    sections  TEXT    NOT NULL,    -- JSON array of {"label": .., "header": .., "content": ..}
    frozen_at INTEGER NOT NULL
) STRICT;

-- A short marker laid over the output of one tool call when a history is read.
CREATE TABLE elision (
    address INTEGER NOT NULL, -- of the message
    call    TEXT    NOT NULL, -- id of the tool call
    marker  TEXT    NOT NULL,
    PRIMARY KEY (address, call)
) STRICT, WITHOUT ROWID;

-- What the store remembers of itself.
CREATE TABLE setting (
    name  TEXT PRIMARY KEY,
    value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- For people with the sqlite3 shell: the tree with ids instead of addresses. A deleted message is passed
-- over: what hung from it shows the nearest message above.
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
