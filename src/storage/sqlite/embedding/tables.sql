-- Vectors of messages. Created when a program embeds the first time, so that other stores pay nothing for them. Stores keep
-- the text of the triggers, and a trigger with another text is one of another program: to change one takes a migration.

-- What makes vectors.
CREATE TABLE IF NOT EXISTS embedder (
    key        INTEGER PRIMARY KEY AUTOINCREMENT,
    name       TEXT    NOT NULL UNIQUE,
    dimensions INTEGER,                 -- of its vectors; NULL: it has made none
    queued     INTEGER                  -- address: every message up to it has a row in embedding; NULL: every message has
) STRICT;

-- The vector of a message: a factor and a byte for each dimension. NULL: not made yet; empty: the message has no text.
CREATE TABLE IF NOT EXISTS embedding (
    embedder INTEGER NOT NULL, -- key of the embedder
    address  INTEGER NOT NULL, -- of the message
    vector   BLOB,
    PRIMARY KEY (embedder, address)
) STRICT, WITHOUT ROWID;

-- Serves: the messages that have no vector yet.
CREATE INDEX IF NOT EXISTS embedding_pending ON embedding (embedder, address) WHERE vector IS NULL;

-- Triggers, so that every verb that writes messages keeps the vectors right. The copy that a fork makes has the vector of its
-- origin, if that still has the same content.
CREATE TRIGGER IF NOT EXISTS embedding_added AFTER INSERT ON message WHEN new.id IS NOT NULL
BEGIN
    INSERT OR IGNORE INTO embedding (embedder, address, vector)
    SELECT key, new.address, (SELECT embedding.vector
                                FROM embedding
                                JOIN message ON message.address = embedding.address
                               WHERE embedding.embedder = embedder.key
                                 AND embedding.address = new.origin
                                 AND message.parts = new.parts)
      FROM embedder;
END;

CREATE TRIGGER IF NOT EXISTS embedding_changed AFTER UPDATE OF id, parts ON message
BEGIN
    UPDATE embedding
       SET vector = NULL
     WHERE embedder IN (SELECT key FROM embedder)
       AND address = new.address
       AND new.id IS NOT NULL
       AND new.parts <> old.parts;
    DELETE FROM embedding
     WHERE embedder IN (SELECT key FROM embedder)
       AND address = new.address
       AND new.id IS NULL;
END;

CREATE TRIGGER IF NOT EXISTS embedding_removed AFTER DELETE ON message
BEGIN
    DELETE FROM embedding
     WHERE embedder IN (SELECT key FROM embedder)
       AND address = old.address;
END;
