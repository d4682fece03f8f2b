"""The logs database of llm: LogStore, with threads of messages that are addressed by their content.

Messages are appended as `LogStore.log()` does it, in one transaction. `log()` itself records a turn
with the whole conversation before it, so its cost grows with the conversation; the search index
covers turns, not messages. So the searched store holds conversations of ten turns, each logged from
the response of a model that returns a given text.
"""

import sqlite3
import sys
from importlib.metadata import version

import llm
import sqlite_utils
from llm.logs import LogStore, log_rows
from llm.parts import TextPart

from tasks import Rival, run

NAME = "chat"
TURNS = 10


def message(entry):
    return llm.Message(role=entry["role"], parts=[TextPart(text=entry["text"])])


class Echo(llm.Model):
    model_id = "echo"
    reply = ""

    def execute(self, prompt, stream, response, conversation):
        yield self.reply


class Chat:
    def __init__(self, folder, is_full):
        self.db = sqlite_utils.Database(folder / "store.db")
        self.db.execute("PRAGMA journal_mode = WAL").fetchall()
        self.db.execute(f"PRAGMA synchronous = {'FULL' if is_full else 'NORMAL'}")
        self.store = LogStore(self.db)
        self.thread = self.store.ensure_thread(NAME)

    def append(self, entry):
        with self.db.atomic():
            self.store.append(self.thread, [message(entry)])

    def fill(self, entries):
        with self.db.atomic():
            self.store.append(self.thread, [message(one) for one in entries])

    def log(self, entries):
        model = Echo()
        with self.db.atomic():
            for start in range(0, len(entries) - 1, 2 * TURNS):
                conversation = model.conversation()
                turns = entries[start : start + 2 * TURNS]
                for question, answer in zip(turns[::2], turns[1::2]):
                    model.reply = answer["text"]
                    response = conversation.prompt(question["text"])
                    response.text()
                    self.store.log(response)

    def history(self):
        return self.store.thread_messages(self.thread)

    def last(self, count):
        return self.history()[-count:]

    def ids(self):
        hashes, tip = [], self.store.thread_tip(self.thread)
        while tip is not None:
            hashes.append(tip)
            tip = next(self.db.query("SELECT parent_hash FROM messages WHERE hash = ?", [tip]))["parent_hash"]
        return hashes[::-1]

    def branch(self, at, entry):
        with self.db.atomic():
            self.thread = self.store.fork(at, forked_from=NAME)
            self.store.append(self.thread, [message(entry)])

    def fork(self, at):
        return self.store.fork(at, forked_from=NAME)

    def fork_length(self, thread):
        return len(self.store.thread_messages(thread))

    def search(self, word, limit):
        rows = log_rows(self.store, query=word, count=limit)
        return [f"{row['prompt']} {row['response']}" for row in rows]

    def close(self):
        self.db.close()


class Llm(Rival):
    versions = (
        f"llm {version('llm')}, sqlite-utils {version('sqlite-utils')}, Python {sys.version.split()[0]}, "
        f"SQLite {sqlite3.sqlite_version}"
    )
    lacks = {
        "compacted": "has no summaries",
        "search-first": "updates its index on every write",
    } | dict.fromkeys(["search-huge", "search-common"], "takes minutes to fill")
    notes = {
        "append-deep": "indexes nothing: its index covers only turns that log() records",
        "last": "reads the whole thread",
        "last-cold": "reads the whole thread",
        "search": "finds turns, in conversations of ten; reads prompts and responses completely",
    } | dict.fromkeys(["branch", "fork-small", "fork"], "writes a pointer and copies nothing")

    def text(self, one):
        return one.parts[0].text

    def searchable(self, large, tasks):
        folder = tasks.new("search")
        chat = Chat(folder, False)
        chat.log(tasks.messages[: tasks.plan["large"]])
        chat.close()
        return folder

    def open(self, folder, is_full):
        return Chat(folder, is_full)


run(Llm())
