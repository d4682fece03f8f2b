-- Version 6 to 7: the index of words holds terms without a text; every message is indexed again.

DROP VIEW search_source;
DROP TABLE search;
DROP TABLE search_filter;
DROP TABLE vocabulary;
DROP TABLE recent_words;
DROP VIEW context_source;
DROP TABLE context_search;
DELETE FROM setting WHERE name LIKE 'vocabulary_%' OR name = 'index_version';
UPDATE session SET unindexed = 1 WHERE next > 1;

CREATE VIRTUAL TABLE search USING fts5 (
    text, tools, labels,
    content = '', contentless_delete = 1, tokenize = 'ascii'
);

CREATE TABLE term (
    term      TEXT    PRIMARY KEY,
    languages INTEGER NOT NULL DEFAULT 0 -- the languages of the messages with the term, a bit each;

CREATE VIRTUAL TABLE context_search USING fts5 (
    text, tools, labels,
    content = '', contentless_delete = 1, tokenize = 'ascii'
);
