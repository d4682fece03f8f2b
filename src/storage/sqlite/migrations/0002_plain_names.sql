-- Version 1 to 2: columns get the words that the API uses.

-- SQLite rewrites the views' use of a renamed column, not its alias: the view is made again.
DROP VIEW message_tree;

ALTER TABLE message RENAME COLUMN aside TO hidden;
DROP INDEX aside;
CREATE INDEX hidden ON message (address) WHERE hidden = 1;

ALTER TABLE compaction RENAME COLUMN folds TO nested;

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
