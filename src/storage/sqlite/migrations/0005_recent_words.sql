-- Version 4 to 5: new words are collected before they are written to the vocabulary.

-- Words of the vocabulary that are moved there when they are many: each would change another page of it.
CREATE TABLE recent_words (
    number    INTEGER PRIMARY KEY, -- from 1 again when they were moved
    word      TEXT    NOT NULL,
    languages INTEGER NOT NULL     -- as above
) STRICT;
