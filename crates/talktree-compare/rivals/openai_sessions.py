"""SQLiteSession and AdvancedSQLiteSession of openai-agents.

They set WAL on their connections and keep SQLite's default for `synchronous`, which is FULL; a
subclass sets it on each connection as the task needs.
"""

import sqlite3
import sys
from importlib.metadata import version

from agents import SQLiteSession
from agents.extensions.memory import AdvancedSQLiteSession

from tasks import Rival, run


def item(entry):
    return {"role": entry["role"], "content": entry["text"]}


class Plain:
    def __init__(self, folder, is_full):
        synchronous = "FULL" if is_full else "NORMAL"
        self.session = self.make(folder / "store.db", synchronous)

    def make(self, path, synchronous):
        class Session(SQLiteSession):
            _configure_connection = configured(SQLiteSession, synchronous)

        return Session("chat", path)

    def append(self, entry):
        return self.session.add_items([item(entry)])

    def fill(self, entries):
        return self.session.add_items([item(one) for one in entries])

    def history(self):
        return self.session.get_items()

    def last(self, count):
        return self.session.get_items(limit=count)

    def close(self):
        self.session.close()


class Advanced(Plain):
    forks = 0

    def make(self, path, synchronous):
        class Session(AdvancedSQLiteSession):
            _configure_connection = configured(AdvancedSQLiteSession, synchronous)

        return Session(session_id="chat", db_path=path, create_tables=True)

    def ids(self):
        return range(10**9)

    async def branch(self, at, entry):
        # A branch ends before a user's turn, so it is created from the following turn.
        self.forks += 1
        await self.session.switch_to_branch("main")
        await self.session.create_branch_from_turn(at // 2 + 2, f"branch-{self.forks}")
        await self.session.add_items([item(entry)])

    async def fork(self, at):
        self.forks += 1
        await self.session.switch_to_branch("main")
        return await self.session.create_branch_from_turn(at // 2 + 1, f"fork-{self.forks}")

    async def fork_length(self, branch):
        return len(await self.session.get_items(branch_id=branch))

    async def search(self, word, limit):
        turns = await self.session.find_turns_by_content(word)
        return [turn["full_content"] for turn in turns]


def configured(base, synchronous):
    @staticmethod
    def configure(conn):
        base._configure_connection(conn)
        conn.execute(f"PRAGMA synchronous = {synchronous}")

    return configure


class OpenAI(Rival):
    versions = f"openai-agents {version('openai-agents')}, Python {sys.version.split()[0]}, SQLite {sqlite3.sqlite_version}"

    def __init__(self, kind):
        self.kind = kind
        self.lacks = {
            "compacted": "compacting replaces the stored items by the response of the provider's API",
            "search-first": "has no index",
        }
        if kind is Plain:
            self.lacks |= {"branch": "has no tree"} | dict.fromkeys(
                ["fork-small", "fork", "search", "search-huge", "search-common"], "not supported"
            )
        else:
            self.notes = (
                dict.fromkeys(
                    ["branch", "fork-small", "fork"],
                    "writes one row per message that points to it; cannot fork off the last turn, so it is left out",
                )
                | dict.fromkeys(
                    ["search", "search-huge", "search-common"], "LIKE over the user's messages, without a limit"
                )
                | {"append-deep": "has no index to update"}
            )
            # The last turn is missing from a fork.
            self.fork_more = -2

    def text(self, one):
        return one["content"]

    def findable(self, count):
        # Every second matching message is the user's.
        return count // 2

    def open(self, folder, is_full):
        return self.kind(folder, is_full)


run(OpenAI({"plain": Plain, "advanced": Advanced}[sys.argv[2]]))
