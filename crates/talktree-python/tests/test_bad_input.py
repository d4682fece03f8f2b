"""Bad input to transcripts and the session stores: a clear exception or the right answer, and nothing half-written.

`TALKTREE_LARGE=1` adds a batch of 100 MB. Other bad input is tested where it belongs: forks in `test_fork`, subinterpreters in
`test_documents`, stores that are closed during a call in `test_close`, cancelled awaits in `test_claude` and `test_aio`.
"""

from __future__ import annotations

import asyncio
import os
import threading
from pathlib import Path
from typing import Any

import pytest
import talktree
from talktree import TranscriptKey, aio

pytest.importorskip("claude_agent_sdk")

import claude_agent_sdk as sdk
from talktree.claude import SessionStore

KEY: sdk.SessionKey = {"project_key": "p", "session_id": "s"}


def user(uuid: str, parent: str | None = None) -> Any:
    return {"type": "user", "uuid": uuid, "parentUuid": parent, "message": {"role": "user", "content": uuid}}


@pytest.mark.parametrize(
    "keys",
    [
        # What a separator would make the same.
        [("a/b", "c", ""), ("a", "b/c", ""), ("a", "b", "c"), ("a", "b/c", "d"), ("a/b", "c", "d")],
        [("a:b", "c", ""), ("a", "b:c", ""), ("a:b:c", "", "")],
        [("a\0b", "c", ""), ("a", "b\0c", ""), ("a", "b", "\0c")],
        # No UUIDs, nothing, what SQL and paths would take for something else; nothing is folded.
        [("p", "", ""), ("", "s", ""), ("p", "é", ""), ("p", "e\u0301", ""), ("p", "É", ""), ("p", "%", ""), ("p", "_", "")],
        [("p", "../s", ""), ("p", "s", "../x"), ("p", "s'; DROP TABLE transcript", ""), ("p", "S", ""), ("p", "s", "")],
    ],
)
def test_any_text_is_a_key_and_no_two_keys_are_the_same(store: talktree.Store, keys: list[tuple[str, str, str]]) -> None:
    async def main() -> None:
        sessions = SessionStore(store)
        parts = [{"project_key": it[0], "session_id": it[1], "subpath": it[2]} for it in keys]
        for at, key in enumerate(parts):
            await sessions.append(key, [user(str(at))])  # type: ignore[arg-type]
        for at, key in enumerate(parts):
            assert await sessions.load(key) == [user(str(at))]  # type: ignore[arg-type]
        for project, session, subpath in keys:
            listed = await sessions.list_subkeys({"project_key": project, "session_id": session})
            assert sorted(listed) == sorted(it[2] for it in keys if it[:2] == (project, session) and it[2])
        await sessions.delete(parts[0])  # type: ignore[arg-type]
        left = [await sessions.load(key) for key in parts[1:]]  # type: ignore[arg-type]
        gone = [it[:2] == keys[0][:2] and not keys[0][2] for it in keys[1:]]
        assert [it is None for it in left] == gone

    asyncio.run(main())


@pytest.mark.parametrize(
    ("key", "kind", "says"),
    [
        ({"project_key": "p"}, KeyError, "session_id"),
        ({"project_key": "p", "session_id": 5}, TypeError, "session must be a str, not int"),
        ({"project_key": b"p", "session_id": "s"}, TypeError, "project must be a str, not bytes"),
        ({"project_key": "p", "session_id": "s", "subpath": ["x"]}, TypeError, "subpath must be a str, not list"),
        ({"project_key": "p", "session_id": "\ud800"}, ValueError, "surrogates not allowed"),
        ("key", TypeError, "indices"),
    ],
)
def test_what_is_no_key(store: talktree.Store, key: Any, kind: type[Exception], says: str) -> None:
    async def main() -> None:
        sessions = SessionStore(store)
        with pytest.raises(kind, match=says):
            await sessions.append(key, [user("1")])
        with pytest.raises(kind, match=says):
            await sessions.load(key)
        with pytest.raises(kind, match=says):
            await sessions.delete(key)

    asyncio.run(main())
    assert store.transcripts.list() == []


def test_a_key_that_is_too_long_is_refused_and_names_nothing(store: talktree.Store) -> None:
    long: Any = {"project_key": "p", "session_id": "s" * 70_000}

    async def main() -> None:
        sessions = SessionStore(store)
        with pytest.raises(talktree.InvalidValueError, match="session"):
            await sessions.append(long, [user("1")])
        assert await sessions.load(long) is None

    asyncio.run(main())


@pytest.mark.parametrize("bad", [5, None, "text", ["a list"], True, object(), {1: object()}, {"x": {1, 2}}, {"x": b"bytes"}])
def test_an_entry_that_is_no_object_refuses_the_batch(store: talktree.Store, bad: Any) -> None:
    async def main() -> None:
        with pytest.raises((TypeError, ValueError), match=r"entries\[1\]|object"):
            await SessionStore(store).append(KEY, [user("1"), bad, user("2")])
        with pytest.raises((TypeError, ValueError)):
            await SessionStore(store).append(KEY, bad)
        assert await SessionStore(store).load(KEY) is None

    asyncio.run(main())


@pytest.mark.parametrize(
    ("entries", "shown"),
    [
        ([user("a", "a")], ["a"]),  # its own parent
        ([user("a", "c"), user("b", "a"), user("c", "b")], ["a", "b", "c"]),
        ([user("a", "gone"), user("b", "a")], ["a", "b"]),
        ([user("b", "a"), user("a")], ["a", "b"]),  # before its parent
        ([user("a"), {"type": "user", "uuid": "b", "parentUuid": 7, "message": None}], ["a", "b"]),
    ],
)
def test_cyclic_missing_and_odd_parents_lose_no_entry(store: talktree.Store, entries: Any, shown: list[str]) -> None:
    transcripts = store.transcripts
    transcripts.append(TranscriptKey("p", "s"), entries)
    assert transcripts.load(TranscriptKey("p", "s")) == entries
    assert {it.uuid for it in transcripts.messages("p", "s")} <= set(shown)
    transcripts.fork("p", "s")
    assert transcripts.infos("p") and store.verify().damages == []


def test_two_stores_on_one_file_see_and_know_the_same(tmp_path: Path) -> None:
    async def main() -> None:
        path = tmp_path / "store.db"
        async with SessionStore(path) as one, SessionStore(path) as two, aio.Store(path) as third:
            await asyncio.gather(*(it.append(KEY, [user(str(at))]) for at in range(40) for it in (one, two)))
            loaded = await one.load(KEY)
            assert loaded == await two.load(KEY)
            assert sorted(it["uuid"] for it in loaded or []) == sorted(str(at) for at in range(40))
            times = [it["mtime"] for it in await one.list_sessions("p") + await two.list_sessions("p")]
            await two.append({"project_key": "p", "session_id": "t"}, [user("1")])
            [new] = [it["mtime"] for it in await one.list_sessions("p") if it["session_id"] == "t"]
            assert new > max(times)
            assert (await third.verify()).damages == []

    asyncio.run(main())


def test_a_store_that_is_closed_while_appends_run(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    stored = 0

    async def main() -> None:
        nonlocal stored
        store = talktree.Store(path)
        sessions = SessionStore(store)
        appends = [
            asyncio.ensure_future(sessions.append({"project_key": "p", "session_id": str(at % 4)}, [user(str(at)), user(f"{at}b")]))
            for at in range(80)
        ]
        await appends[3]
        threading.Thread(target=store.close).start()
        for outcome in await asyncio.gather(*appends, return_exceptions=True):
            assert outcome is None or isinstance(outcome, talktree.ClosedError), outcome
            stored += outcome is None

    asyncio.run(main())
    with talktree.Store(path) as store:
        assert sum(it.entries for it in store.transcripts.list()) == 2 * stored > 0
        assert store.verify().damages == []


@pytest.mark.skipif("TALKTREE_LARGE" not in os.environ, reason="takes seconds and a gigabyte: TALKTREE_LARGE=1 runs it")
def test_a_batch_of_100_mb(tmp_path: Path) -> None:
    entries = [{"type": "user", "uuid": str(at), "text": "x" * 1_000_000} for at in range(100)]
    too_large = {"type": "user", "uuid": "large", "text": "x" * (65 << 20)}

    async def main() -> None:
        async with SessionStore(tmp_path / "store.db") as sessions:
            with pytest.raises(talktree.TooLargeError):
                await sessions.append(KEY, [*entries, too_large])  # type: ignore[list-item]
            assert await sessions.load(KEY) is None
            await sessions.append(KEY, entries)  # type: ignore[arg-type]
            assert await sessions.load(KEY) == entries

    asyncio.run(main())
