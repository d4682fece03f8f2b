-- Version 5 to 6: the authors of messages, their usage, and the tags of messages.

ALTER TABLE message ADD COLUMN author TEXT GENERATED ALWAYS AS (
                   CASE
                   WHEN instr(metadata, '"author"') AND json_valid(metadata) THEN coalesce(
                       CASE WHEN json_type(metadata, '$.author.id') IN ('text', 'integer')
                            THEN nullif(trim(metadata ->> '$.author.id', char(9, 10, 12, 13, 32)), '') END,
                       CASE WHEN json_type(metadata, '$.author.name') IN ('text', 'integer')
                            THEN nullif(trim(metadata ->> '$.author.name', char(9, 10, 12, 13, 32)), '') END,
                       CASE WHEN json_type(metadata, '$.author') = 'text'
                            THEN nullif(trim(metadata ->> '$.author', char(9, 10, 12, 13, 32)), '') END)
                   END) VIRTUAL;

-- Serves: the messages of an author.
CREATE INDEX message_author ON message (author) WHERE author IS NOT NULL;

-- Serves: the nearest author above an answer.
CREATE INDEX message_authored ON message (address, author) WHERE author IS NOT NULL;

-- The tags of messages.
CREATE TABLE message_tag (
    address INTEGER NOT NULL, -- of the message
    tag     TEXT    NOT NULL,
    PRIMARY KEY (address, tag)
) STRICT, WITHOUT ROWID;

-- Serves: the messages with a tag.
CREATE INDEX message_tagged ON message_tag (tag, address);

ALTER TABLE usage ADD COLUMN author TEXT;

-- Serves: the usage of an author.
CREATE INDEX usage_author ON usage (author, used_at) WHERE author IS NOT NULL;
