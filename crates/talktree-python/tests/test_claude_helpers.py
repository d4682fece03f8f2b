"""The SDK's helpers return the same on our store and on its own one in memory, for real and for generated transcripts.

`TALKTREE_CASES` sets how many transcripts are generated, `TALKTREE_DATA` the folder with real ones.
"""

from __future__ import annotations

import asyncio
import dataclasses
import itertools
import json
import os
import random
import uuid
import warnings
from collections.abc import Awaitable, Callable, Iterator
from datetime import datetime, tzinfo
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("claude_agent_sdk")

import claude_agent_sdk as sdk
from generated import DIRECTORY, Batch, generated
from talktree.claude import SessionStore

CASES = int(os.environ.get("TALKTREE_CASES", "60"))

PROJECT = sdk.project_key_for_directory(DIRECTORY)


def plain(value: Any) -> Any:
    """Returns a value without what the clock decides."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        value = {it.name: getattr(value, it.name) for it in dataclasses.fields(value)}
        value.pop("last_modified", None)
    if isinstance(value, dict):
        return {name: plain(it) for name, it in value.items() if name != "mtime"}
    return [plain(it) for it in value] if isinstance(value, list) else value


async def outcome(call: Awaitable[Any]) -> Any:
    try:
        return plain(await call)
    except Exception as error:
        return type(error).__name__, str(error)


async def compare(ours: SessionStore, sessions: list[tuple[str, list[Batch]]], seed: int) -> None:
    theirs = sdk.InMemorySessionStore()
    generator = random.Random(seed)
    for session, batches in sessions:
        for subpath, entries in batches:
            key: Any = {"project_key": PROJECT, "session_id": session} | ({"subpath": subpath} if subpath else {})
            await theirs.append(key, entries)
            await ours.append(key, entries)
            if all("uuid" in it for it in entries) and generator.random() < 0.3:
                await ours.append(key, entries)  # the SDK repeats an append that failed

    async def same(what: str, call: Callable[[Any], Awaitable[Any]]) -> Any:
        first, second = await outcome(call(ours)), await outcome(call(theirs))
        if isinstance(first, list) and what == "subagents":
            first, second = sorted(first), sorted(second)
        assert first == second, (seed, what)
        return first

    async def same_lists() -> None:
        for limit, offset in [(None, 0), (2, 0), (1, 1)]:
            await same(
                "list", lambda it: sdk.list_sessions_from_store(it, directory=DIRECTORY, limit=limit, offset=offset)
            )

    await same_lists()
    transcripts = await ours.transcripts()
    for session, batches in sessions:
        key = {"project_key": PROJECT, "session_id": session}
        await same("load", lambda it: it.load(key))
        await same("info", lambda it: sdk.get_session_info_from_store(it, session, directory=DIRECTORY))
        shown = await same("read", lambda it: sdk.get_session_messages_from_store(it, session, directory=DIRECTORY))
        natively = await transcripts.messages(PROJECT, session)
        assert [(it.role, it.uuid, it.message) for it in natively] == [
            (it["type"], it["uuid"], it["message"]) for it in shown
        ]
        await same(
            "page", lambda it: sdk.get_session_messages_from_store(it, session, directory=DIRECTORY, limit=3, offset=1)
        )
        agents = await same("subagents", lambda it: sdk.list_subagents_from_store(it, session, directory=DIRECTORY))
        assert sorted(await transcripts.subagents(PROJECT, session)) == agents
        for agent in [*agents, "nobody"]:
            read = await same(
                "subagent",
                lambda it: sdk.get_subagent_messages_from_store(it, session, agent, directory=DIRECTORY),
            )
            assert [it.uuid for it in await transcripts.subagent_messages(PROJECT, session, agent)] == [
                it["uuid"] for it in read
            ]

        last = generator.choice([it.get("uuid") for _, entries in batches for it in entries] or [None])
        state = generator.getrandbits(64)

        async def fork(it: Any) -> Any:
            UUIDS.seed(state)
            forked = await sdk.fork_session_via_store(it, session, directory=DIRECTORY, up_to_message_id=last)
            return await it.load({"project_key": PROJECT, "session_id": forked.session_id})

        await same("fork", fork)

        async def change(it: Any) -> Any:
            UUIDS.seed(state + 1)
            await sdk.rename_session_via_store(it, session, " A title ", directory=DIRECTORY)
            await sdk.tag_session_via_store(it, session, "ci", directory=DIRECTORY)
            return await it.load(key)

        await same("change", change)
    await same_lists()
    for session, _ in sessions[:1]:
        await same("delete", lambda it: sdk.delete_session_via_store(it, session, directory=DIRECTORY))
        await same("gone", lambda it: it.list_subkeys({"project_key": PROJECT, "session_id": session}))
    await same_lists()


#: What makes the uuids, so that both stores get the same ones.
UUIDS = random.Random()


class Noon(datetime):
    """A clock that always shows the same time: copies and titles have the present time."""

    @classmethod
    def now(cls, tz: tzinfo | None = None) -> Noon:
        return cls(2026, 4, 1, 12, tzinfo=tz)


@pytest.fixture(autouse=True)
def _same_uuids_and_times(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr("claude_agent_sdk._internal.session_mutations.datetime", Noon)
    monkeypatch.setattr(uuid, "uuid4", lambda: uuid.UUID(int=UUIDS.getrandbits(128), version=4))
    yield


@pytest.mark.parametrize("first", range(0, CASES, 20))
def test_generated_transcripts(first: int) -> None:
    async def main() -> None:
        for seed in range(first, min(first + 20, CASES)):
            async with SessionStore() as store:
                await compare(store, generated(seed), seed)

    asyncio.run(main())


def test_the_generator_makes_what_it_says() -> None:
    entries = [
        it for seed in range(20) for _, batches in generated(seed) for _, entries in batches for it in entries
    ]
    assert any(it.get("subtype") == "compact_boundary" for it in entries)
    assert any(it.get("isSidechain") for it in entries) and any(it["type"] == "agent_metadata" for it in entries)
    parents = [it["parentUuid"] for it in entries if it.get("parentUuid")]
    assert len(parents) > len(set(parents))  # rewinds
    of_one_answer = itertools.groupby(it["message"]["id"] for it in entries if it["type"] == "assistant" and "id" in it["message"])
    assert any(len(list(parts)) > 2 for _, parts in of_one_answer)


def test_real_transcripts() -> None:
    folder = Path(os.environ.get("TALKTREE_DATA", "")) / "claude-code"
    files = sorted(folder.glob("*.jsonl")) if "TALKTREE_DATA" in os.environ else []
    if not files:
        warnings.warn("TALKTREE_DATA has no claude-code: real transcripts were NOT compared", stacklevel=1)
        pytest.skip("TALKTREE_DATA has no claude-code")
    sessions = []
    for at, file in enumerate(files):
        entries = [json.loads(line) for line in file.read_text().splitlines() if line.strip()]
        sessions.append((str(uuid.UUID(int=at)), [("", [it]) for it in entries if isinstance(it, dict)]))

    async def main() -> None:
        async with SessionStore() as store:
            await compare(store, sessions, 0)

    asyncio.run(main())
