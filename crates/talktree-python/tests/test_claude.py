"""The session store for the Claude Agent SDK: its own conformance suite, order, cancelled calls, and the event loop."""

from __future__ import annotations

import asyncio
import json
import logging
import multiprocessing
import os
import subprocess
import sys
import threading
import uuid
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import pytest
import talktree
from talktree import aio

pytest.importorskip("claude_agent_sdk")

import claude_agent_sdk as sdk
from claude_agent_sdk.testing import run_session_store_conformance
from talktree.claude import SessionStore, StoreBusyError

KEY: sdk.SessionKey = {"project_key": "p", "session_id": "s"}

BACKENDS = ["asyncio", "trio"]


def entry(uuid: str, **fields: Any) -> Any:
    return {"type": "user", "uuid": uuid, **fields}


def run(backend: str, main: Callable[[], Awaitable[None]]) -> None:
    anyio.run(main, backend=backend)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("kind", ["memory", "path", "store", "aio", "server"])
def test_the_conformance_suite_of_the_sdk_passes_with_all_methods(
    backend: str, kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    made: list[SessionStore] = []
    url = request.getfixturevalue("url") if kind == "server" else ""

    def make() -> sdk.SessionStore:
        path = tmp_path / f"{len(made)}.db"
        of_kind: dict[str, Callable[[], Any]] = {
            "memory": lambda: None,
            "path": lambda: path,
            "store": lambda: talktree.Store(path),
            "aio": lambda: aio.Store(path),
            "server": lambda: talktree.Store.connect(f"{url}_{len(made)}"),
        }
        store = SessionStore(of_kind[kind]())
        made.append(store)
        return store

    async def main() -> None:
        await run_session_store_conformance(make)
        for store in made:
            await store.close()

    run(backend, main)
    # One for each check, and the first one, which is asked for its methods.
    assert len(made) == 15


def opened(address: str) -> talktree.Store:
    return talktree.Store.connect(address) if address.startswith("postgresql:") else talktree.Store(address)


@pytest.fixture(params=["file", "server"])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The path of a store, or the URL of one."""
    return str(tmp_path / "store.db" if request.param == "file" else request.getfixturevalue("url"))


def _conforms(address: str, backend: str) -> None:
    """Runs the suite in a process; each check has a project prefix of its own, so that one store serves all."""

    class Scoped:
        def __init__(self, inner: SessionStore, scope: str) -> None:
            self._inner, self._scope = inner, scope

        def _of(self, key: Any) -> Any:
            return {**key, "project_key": self._scope + key["project_key"]}

        async def append(self, key: Any, entries: Any) -> None:
            await self._inner.append(self._of(key), entries)

        async def load(self, key: Any) -> Any:
            return await self._inner.load(self._of(key))

        async def list_sessions(self, project_key: str) -> Any:
            return await self._inner.list_sessions(self._scope + project_key)

        async def list_session_summaries(self, project_key: str) -> Any:
            return await self._inner.list_session_summaries(self._scope + project_key)

        async def delete(self, key: Any) -> None:
            await self._inner.delete(self._of(key))

        async def list_subkeys(self, key: Any) -> Any:
            return await self._inner.list_subkeys(self._of(key))

    async def main() -> None:
        count = 0
        async with SessionStore(opened(address)) as store:

            def make() -> sdk.SessionStore:
                nonlocal count
                count += 1
                return Scoped(store, f"{os.getpid()} {count} ")

            for _ in range(3):
                await run_session_store_conformance(make)

    run(backend, main)


def test_the_suite_passes_in_two_processes_on_one_store(address: str) -> None:
    spawn = multiprocessing.get_context("spawn")
    processes = [spawn.Process(target=_conforms, args=(address, it)) for it in BACKENDS]
    for process in processes:
        process.start()
    for process in processes:
        process.join(120)
    assert [process.exitcode for process in processes] == [0, 0]


def _write_by_the_sdk(address: str, folder: str, session: str) -> None:
    """What the SDK does on the host where the agent runs: it mirrors the lines that are written there."""
    from claude_agent_sdk._internal.transcript_mirror_batcher import TranscriptMirrorBatcher

    async def fail(key: sdk.SessionKey | None, error: str) -> None:
        raise AssertionError(error)

    async def main() -> None:
        async with SessionStore(opened(address)) as store:
            project = Path(folder, "projects", sdk.project_key_for_directory(folder))
            batcher = TranscriptMirrorBatcher(store, os.fspath(project.parent), fail)
            for at in range(50):
                batcher.enqueue(os.fspath(project / f"{session}.jsonl"), [entry(str(at), text="\x00 ü")])
            batcher.enqueue(os.fspath(project / session / "subagents" / "agent-1.jsonl"), [entry("of another")])
            await batcher.flush()

    anyio.run(main)


@pytest.mark.parametrize("backend", BACKENDS)
def test_what_one_host_wrote_another_resumes_from_an_empty_home(
    backend: str, address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from claude_agent_sdk._internal.session_resume import materialize_resume_session

    folder, session = os.fspath(tmp_path), str(uuid.uuid4())
    other = multiprocessing.get_context("spawn").Process(target=_write_by_the_sdk, args=(address, folder, session))
    other.start()
    other.join(60)
    assert other.exitcode == 0
    (tmp_path / "home").mkdir()
    monkeypatch.setenv("HOME", os.fspath(tmp_path / "home"))

    async def main() -> None:
        async with SessionStore(opened(address)) as store:
            for wish in ({"resume": session}, {"continue_conversation": True}):
                options = sdk.ClaudeAgentOptions(session_store=store, cwd=folder, **wish)
                resumed = await materialize_resume_session(options)
                assert resumed is not None and resumed.resume_session_id == session
                project = resumed.config_dir / "projects" / sdk.project_key_for_directory(folder)
                lines = (project / f"{session}.jsonl").read_text().splitlines()
                assert [json.loads(line) for line in lines] == [entry(str(at), text="\x00 ü") for at in range(50)]
                assert (project / session / "subagents" / "agent-1.jsonl").read_text().count("of another") == 1
                await resumed.cleanup()

    run(backend, main)


@pytest.mark.parametrize("backend", BACKENDS)
def test_appends_that_overlap_land_in_the_order_of_the_calls(backend: str) -> None:
    async def main() -> None:
        async with SessionStore() as store, anyio.create_task_group() as tasks:
            for at in range(60):
                tasks.start_soon(store.append, KEY, [entry(str(at))])
            # A read that is called later sees them all.
            tasks.start_soon(check, store)

    async def check(store: SessionStore) -> None:
        loaded = await store.load(KEY)
        assert loaded is not None and [it["uuid"] for it in loaded] == [str(at) for at in range(60)]

    run(backend, main)


@pytest.mark.parametrize("backend", BACKENDS)
def test_an_append_that_was_cancelled_keeps_its_place(backend: str, tmp_path: Path) -> None:
    other = talktree.Store(tmp_path / "store.db")

    async def main() -> None:
        async with SessionStore(tmp_path / "store.db") as store:
            await store.append(KEY, [entry("0")])
            line = store._store._transcript_line("p", "s")
            with _held(line):
                for at in ("1", "2"):
                    with anyio.move_on_after(0.01) as scope:
                        await store.append(KEY, [entry(at)])
                    assert scope.cancelled_caught
                with anyio.move_on_after(0.01):
                    await store.load(KEY)
                last = store.append(KEY, [entry("3")])
            await last

    run(backend, main)
    loaded = other.transcripts.load(talktree.TranscriptKey("p", "s"))
    assert loaded is not None and [it["uuid"] for it in loaded] == ["0", "1", "2", "3"]
    other.close()


class _held:
    """Keeps the calls of a session waiting, as a slow disk does."""

    def __init__(self, line: Any) -> None:
        self._begun, self._end = threading.Event(), threading.Event()
        line.enqueue(self)

    def run(self) -> None:
        self._begun.set()
        self._end.wait(30)

    def refuse(self) -> None:
        pass

    def __enter__(self) -> None:
        assert self._begun.wait(30)

    def __exit__(self, *_: object) -> None:
        self._end.set()


def test_an_abandoned_append_that_fails_is_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        async with SessionStore() as store:
            await store.append(KEY, [entry("0")])
            with _held(store._store._transcript_line("p", "s")):
                with anyio.move_on_after(0.01):
                    await store.append(KEY, [entry("1", value=float("nan"))])

    with caplog.at_level(logging.ERROR, "talktree.claude"):
        anyio.run(main)
    assert "a write that nobody waited for failed: entries[0]" in caplog.text


def test_close_waits_for_the_appends_that_were_called(tmp_path: Path) -> None:
    async def main() -> None:
        async with SessionStore(tmp_path / "store.db") as store:
            for at in range(20):
                with anyio.move_on_after(0):
                    await store.append(KEY, [entry(str(at))])

    anyio.run(main)
    with talktree.Store(tmp_path / "store.db") as store:
        assert len(store.transcripts.load(talktree.TranscriptKey("p", "s")) or []) == 20


def test_a_busy_store_is_no_timeout_so_that_the_sdk_tries_again(tmp_path: Path) -> None:
    from claude_agent_sdk._internal.transcript_mirror_batcher import TranscriptMirrorBatcher

    path = tmp_path / "store.db"
    errors: list[str] = []

    async def on_error(key: sdk.SessionKey | None, error: str) -> None:
        errors.append(error)

    async def main() -> None:
        with talktree.Store(path, busy_timeout=0.05) as opened:
            store = SessionStore(opened)
            # Another process: SQLite's locks do not keep two copies of SQLite in one process apart.
            program = "import sqlite3, sys; db = sqlite3.connect(sys.argv[1], isolation_level=None); "
            program += "db.execute('BEGIN IMMEDIATE'); print('locked', flush=True); sys.stdin.read()"
            blocker = subprocess.Popen(
                [sys.executable, "-c", program, os.fspath(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
            )
            assert blocker.stdout is not None and blocker.stdout.readline() == b"locked\n"
            with pytest.raises(StoreBusyError) as caught:
                await store.append(KEY, [entry("1")])
            assert not isinstance(caught.value, TimeoutError) and caught.value.is_retryable

            batcher = TranscriptMirrorBatcher(store, str(tmp_path / "projects"), on_error)
            batcher.enqueue(str(tmp_path / "projects" / "p" / "s.jsonl"), [entry("2")])
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(batcher.flush)
                await anyio.sleep(0.15)  # the first attempt has failed
                await anyio.to_thread.run_sync(blocker.communicate)
            assert await store.load(KEY) == [entry("2")]

    anyio.run(main)
    assert errors == []


def big(count: int) -> list[Any]:
    text = "A tool result of some length, with words in it. " * 40
    return [
        {
            "type": "user",
            "uuid": str(at),
            "parentUuid": str(at - 1),
            "message": {"role": "user", "content": [{"type": "tool_result", "tool_use_id": str(at), "content": text}]},
            "toolUseResult": {"stdout": text, "lines": [{"n": n, "is": None} for n in range(10)]},
        }
        for at in range(count)
    ]


def test_entries_come_in_many_lists_so_that_an_event_loop_runs_between_them() -> None:
    with talktree.Store() as store:
        key = ("p", "s", "")
        entries = big(2_000)
        store.transcripts.append(talktree.TranscriptKey("p", "s"), entries)
        lists = store.transcripts._native.load(key)
        assert lists is not None and len(lists) >= 30
        # Longer by an entry at most.
        assert max(map(len, lists)) < (1 << 18) + 10_000
        assert store.transcripts.load(talktree.TranscriptKey("p", "s")) == entries


def test_what_json_does_not_have_is_refused_and_what_it_has_comes_back() -> None:
    exact = [
        entry("1", text="\ud83d alone", nul="\x00", big=10**30, less=-0.0, deep=[[[]]], none=None),
        {"type": "x", "ü": "é"},
    ]

    async def main() -> None:
        store = SessionStore()
        for bad in (float("nan"), float("inf"), -float("inf")):
            with pytest.raises(ValueError, match=r"entries\[1\]"):
                await store.append(KEY, [entry("1"), entry("2", value=bad)])
        with pytest.raises(talktree.InvalidValueError):
            await store.append(KEY, [entry("1"), ["no object"]])  # type: ignore[list-item]
        assert await store.load(KEY) is None
        await store.append(KEY, [])
        assert await store.load(KEY) is None and await store.list_sessions("p") == []
        await store.append(KEY, exact)
        assert await store.load(KEY) == exact
        assert await store.load({**KEY, "subpath": ""}) == exact

    asyncio.run(main())


def test_an_owner_keeps_what_is_his() -> None:
    async def main() -> None:
        async with SessionStore() as store:
            ann, bob = store.owned_by("ann"), store.owned_by("bob")
            await ann.append(KEY, [entry("1")])
            with pytest.raises(talktree.InvalidValueError, match="another owner"):
                await bob.append(KEY, [entry("2")])
            await bob.append({**KEY, "session_id": "b"}, [entry("2")])
            transcripts = await store.transcripts()
            assert [it.owner for it in await transcripts.list()] == ["ann", "bob"]
            assert await transcripts.delete_of_owner("ann") == 1
            assert [it["session_id"] for it in await ann.list_sessions("p")] == ["b"]

    asyncio.run(main())


def test_a_closed_store_says_so(tmp_path: Path) -> None:
    async def main() -> None:
        store = SessionStore(tmp_path / "store.db")
        await store.append(KEY, [entry("1")])
        await store.close()
        with pytest.raises(talktree.ClosedError):
            await store.load(KEY)
        with pytest.raises(talktree.ClosedError):
            await store.list_sessions("p")

    asyncio.run(main())


def test_a_store_that_was_made_before_a_fork_is_used_after_it(tmp_path: Path) -> None:
    program = f"""
import asyncio, os, sys
from talktree import ForkedError
from talktree.claude import SessionStore
store = SessionStore({str(tmp_path / "store.db")!r})
key = {{"project_key": "p", "session_id": "s"}}
if (child := os.fork()) == 0:
    asyncio.run(store.append(key, [{{"type": "user", "uuid": "1"}}]))
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
async def main():
    assert len(await store.load(key)) == 1
    if (child := os.fork()) == 0:
        try:
            await store.load(key)
        except ForkedError:
            os._exit(7)
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
asyncio.run(main())
"""
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", program], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.fixture(autouse=True)
def _no_config(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "config"))
    yield
