"""The session store for the Claude Agent SDK beside one that is written with `sqlite3`, in one run.

    just bench-python

`python benches/claude_store.py` does the same with an installed package; `maturin develop` builds one without optimization.

Both promise the same: a commit that survives a power failure, no entry of a known `uuid` twice, order of the calls, times that
increase, summaries in the transaction of the append. Prints milliseconds, the best of three runs, and the ratio.
"""

from __future__ import annotations

import asyncio
import json
import sqlite3
import tempfile
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from claude_agent_sdk import fold_session_summary
from talktree.claude import SessionStore

RUNS = 3

SCHEMA = """
CREATE TABLE entry (project TEXT, session TEXT, subpath TEXT, seq INTEGER, uuid TEXT, body TEXT,
  PRIMARY KEY (project, session, subpath, seq)) WITHOUT ROWID;
CREATE UNIQUE INDEX entry_uuid ON entry (project, session, subpath, uuid) WHERE uuid IS NOT NULL;
CREATE TABLE summary (project TEXT, session TEXT, mtime INTEGER, data TEXT, PRIMARY KEY (project, session)) WITHOUT ROWID;
CREATE TABLE clock (last INTEGER);
INSERT INTO clock VALUES (0);
"""


class Plain:
    """What a program would write itself: one connection, in one thread."""

    def __init__(self, path: Path) -> None:
        self._thread = ThreadPoolExecutor(1)
        self._db = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
        self._db.execute("PRAGMA journal_mode = WAL")
        self._db.execute("PRAGMA synchronous = FULL")
        self._db.executescript(SCHEMA)

    async def _run(self, call: Callable[..., Any], *args: Any) -> Any:
        return await asyncio.get_running_loop().run_in_executor(self._thread, call, *args)

    async def append(self, key: Any, entries: list[Any]) -> None:
        await self._run(self._append, key, entries)

    def _append(self, key: Any, entries: list[Any]) -> None:
        name = (key["project_key"], key["session_id"], key.get("subpath") or "")
        self._db.execute("BEGIN IMMEDIATE")
        try:
            last = "SELECT coalesce(max(seq), 0) FROM entry WHERE project = ? AND session = ? AND subpath = ?"
            (seq,) = self._db.execute(last, name).fetchone()
            added = []
            for entry in entries:
                row = (*name, seq + 1, entry.get("uuid"), json.dumps(entry))
                done = self._db.execute("INSERT INTO entry VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING", row)
                if done.rowcount:
                    seq += 1
                    added.append(entry)
            if added and not name[2]:
                tick = "UPDATE clock SET last = max(last + 1, ?) RETURNING last"
                (now,) = self._db.execute(tick, (int(time.time() * 1_000),)).fetchone()
                found = self._db.execute("SELECT data FROM summary WHERE project = ? AND session = ?", name[:2]).fetchone()
                before: Any = found and {"session_id": name[1], "mtime": 0, "data": json.loads(found[0])}
                data = fold_session_summary(before, key, added)["data"]
                self._db.execute("REPLACE INTO summary VALUES (?, ?, ?, ?)", (*name[:2], now, json.dumps(data)))
            self._db.execute("COMMIT")
        except BaseException:
            self._db.execute("ROLLBACK")
            raise

    async def load(self, key: Any) -> list[Any] | None:
        def load() -> list[Any] | None:
            rows = "SELECT body FROM entry WHERE project = ? AND session = ? AND subpath = ? ORDER BY seq"
            name = (key["project_key"], key["session_id"], key.get("subpath") or "")
            return [json.loads(body) for (body,) in self._db.execute(rows, name)] or None

        found: list[Any] | None = await self._run(load)
        return found

    async def list_session_summaries(self, project_key: str) -> list[Any]:
        def summaries() -> list[Any]:
            rows = self._db.execute("SELECT session, mtime, data FROM summary WHERE project = ?", (project_key,))
            return [{"session_id": id, "mtime": mtime, "data": json.loads(data)} for id, mtime, data in rows]

        found: list[Any] = await self._run(summaries)
        return found

    async def close(self) -> None:
        await self._run(self._db.close)
        self._thread.shutdown()


def entry(at: int) -> Any:
    """An entry of about a kilobyte."""
    return {
        "parentUuid": f"{at - 1:036}",
        "isSidechain": False,
        "cwd": "/home/ann/shop",
        "sessionId": "4b1e7d5c-90c5-4dd7-a6f1-8f8b2f4f7a10",
        "type": "assistant" if at % 2 else "user",
        "uuid": f"{at:036}",
        "timestamp": "2026-03-01T10:00:00.000Z",
        "message": {"role": "assistant", "content": [{"type": "text", "text": "The words of an answer. " * 30}]},
    }


def key(session: object) -> Any:
    return {"project_key": "p", "session_id": str(session)}


async def one_by_one(store: Any) -> None:
    for at in range(300):
        await store.append(key("one"), [entry(at)])


async def in_batches(store: Any) -> None:
    for at in range(0, 5_000, 50):
        await store.append(key("batches"), [entry(it) for it in range(at, at + 50)])


async def sixteen_tasks(store: Any) -> None:
    async def task(session: int) -> None:
        for at in range(30):
            await store.append(key(session), [entry(at)])

    await asyncio.gather(*(task(session) for session in range(16)))


async def list_sessions(store: Any) -> None:
    assert len(await store.list_session_summaries("listed")) == 1_000


async def load(store: Any) -> None:
    assert len(await store.load(key("long"))) == 10_000


async def nothing(store: Any) -> None:
    pass


async def fill_list(store: Any) -> None:
    for session in range(1_000):
        await store.append({"project_key": "listed", "session_id": str(session)}, [entry(0)])


async def fill_long(store: Any) -> None:
    for at in range(0, 10_000, 500):
        await store.append(key("long"), [entry(it) for it in range(at, at + 500)])


Step = Callable[[Any], Awaitable[None]]

CASES: list[tuple[str, Step, Step]] = [
    ("300 appends, one by one", nothing, one_by_one),
    ("5 000 entries in batches of 50", nothing, in_batches),
    ("480 appends of 16 tasks at once", nothing, sixteen_tasks),
    ("list 1 000 sessions", fill_list, list_sessions),
    ("load 10 000 entries", fill_long, load),
]


async def longest_gap(step: Awaitable[None]) -> float:
    """Returns how long the event loop stood still at most, in milliseconds."""
    longest = 0.0
    task = asyncio.ensure_future(step)
    while not task.done():
        before = time.perf_counter()
        await asyncio.sleep(0.001)
        longest = max(longest, time.perf_counter() - before)
    await task
    return longest * 1_000


async def measured(open: Callable[[Path], Any], fill: Step, step: Step) -> tuple[float, float]:
    with tempfile.TemporaryDirectory() as folder:
        store = open(Path(folder) / "store.db")
        # talktree opens its connections with the first write and the first read.
        await store.append(key("first"), [entry(0)])
        await store.load(key("first"))
        await fill(store)
        before = time.perf_counter()
        gap = await longest_gap(step(store))
        took = time.perf_counter() - before
        await store.close()
        return took * 1_000, gap


async def main() -> None:
    print(f"{'':34}{'talktree':>10}{'sqlite3':>10}{'ratio':>8}   longest gap of the loop, talktree and sqlite3")
    for name, fill, step in CASES:
        ours, theirs = [], []
        for _ in range(RUNS):
            ours.append(await measured(SessionStore, fill, step))
            theirs.append(await measured(Plain, fill, step))
        best = min(ours)[0], min(theirs)[0]
        gaps = min(gap for _, gap in ours), min(gap for _, gap in theirs)
        print(f"{name:34}{best[0]:>10.1f}{best[1]:>10.1f}{best[0] / best[1]:>8.2f}   {gaps[0]:.0f} ms, {gaps[1]:.0f} ms")


asyncio.run(main())
