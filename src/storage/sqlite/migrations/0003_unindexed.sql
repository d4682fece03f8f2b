-- Version 2 to 3: a session has a number from which on its messages are not in the search index, instead of a row for
-- each of them.

ALTER TABLE session ADD COLUMN unindexed INTEGER;

UPDATE session
   SET unindexed = (SELECT min(address) & 4294967295
                      FROM search_pending
                     WHERE address BETWEEN key << 32 AND (key << 32) + 4294967295);

-- What is indexed after that number is removed from the index.
INSERT INTO search (search, rowid, text, tools)
SELECT 'delete', address, text, tools
  FROM session
 CROSS JOIN search_source ON address BETWEEN (key << 32) + unindexed AND (key << 32) + 4294967295
 WHERE unindexed IS NOT NULL;

CREATE INDEX session_unindexed ON session (key) WHERE unindexed IS NOT NULL;

DROP VIEW search_source;
DROP TABLE search_pending;
CREATE VIEW search_source AS
    SELECT address, talktree_text(parts) AS text, talktree_tools(parts) AS tools
      FROM message
     CROSS JOIN session ON session.key = message.session
     WHERE message.id IS NOT NULL
       AND (unindexed IS NULL OR address < (key << 32) + unindexed);

-- talktree merges segments itself, a little at a time.
INSERT INTO search (search, rank) VALUES ('automerge', 0), ('usermerge', 8), ('crisismerge', 64);
