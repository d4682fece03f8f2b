"""Transcripts of agent sessions: all verbs, plain and async."""

from __future__ import annotations

import asyncio
import json
import threading
from pathlib import Path
from typing import Any

import pytest
import talktree
from talktree import TranscriptKey, aio
from talktree import claude as talktree_claude

KEY = TranscriptKey("-home-ann-shop", "4b1e7d5c-90c5-4dd7-a6f1-8f8b2f4f7a10")
AGENT = TranscriptKey(KEY.project, KEY.session, "subagents/agent-7f")

QUESTION = {"type": "user", "uuid": "1", "message": {"role": "user", "content": "Fix the login."}}
ANSWER = {"type": "assistant", "uuid": "2", "parentUuid": "1", "message": {"role": "assistant", "content": "Done."}}


@pytest.fixture
def transcripts(store: talktree.Store) -> talktree.Transcripts:
    transcripts = store.transcripts
    transcripts.append(KEY, [QUESTION, ANSWER])
    transcripts.append(AGENT, [{**QUESTION, "isSidechain": True}, {"type": "agent_metadata", "toolUseId": "call"}])
    return transcripts


def test_what_is_known_is_not_added_again(transcripts: talktree.Transcripts) -> None:
    other = {**ANSWER, "parentUuid": None}
    assert transcripts.append(KEY, [QUESTION, other, {"type": "x"}]) == talktree.AppendedEntries(1, 2, 1)
    assert transcripts.append(KEY, iter([])) == talktree.AppendedEntries(0, 0, 0)
    assert transcripts.load(KEY) == [QUESTION, ANSWER, {"type": "x"}]
    assert transcripts.load(TranscriptKey("p", "unknown")) is None


@pytest.mark.parametrize(
    ("key", "entries", "kind", "what"),
    [
        (KEY, [QUESTION, {"n": float("inf")}], ValueError, r"entries\[1\]: Out of range"),
        (KEY, [{"n": object()}], TypeError, r"entries\[0\]: object cannot"),
        (KEY, QUESTION, TypeError, "entries must be an iterable of dicts, not dict"),
        (KEY, [3], talktree.InvalidValueError, "object"),
        (("p", "s"), [QUESTION], TypeError, "key must be a TranscriptKey, not tuple"),
        (TranscriptKey("p" * 70_000, "s"), [QUESTION], talktree.InvalidValueError, "project"),
    ],
)
def test_what_is_refused(
    transcripts: talktree.Transcripts, key: Any, entries: Any, kind: type[Exception], what: str
) -> None:
    with pytest.raises(kind, match=what):
        transcripts.append(key, entries)
    assert len(transcripts.list()) == 2


def test_lists_and_summaries(transcripts: talktree.Transcripts) -> None:
    (listed,), (summary,) = transcripts.list_sessions(KEY.project), transcripts.list_session_summaries(KEY.project)
    assert (listed.session, listed.mtime) == (summary.session, summary.mtime)
    assert summary.data == talktree.fold_transcript_summary(None, [QUESTION, ANSWER])
    assert transcripts.list_subkeys(KEY.project, KEY.session) == ["subagents/agent-7f"]
    transcripts.rename(KEY.project, KEY.session, " Login ")
    transcripts.tag(KEY.project, KEY.session, "ci")
    info = transcripts.info(KEY.project, KEY.session)
    assert info is not None and (info.summary, info.first_prompt, info.tag) == ("Login", "Fix the login.", "ci")
    assert transcripts.infos(KEY.project) == [info]
    transcripts.tag(KEY.project, KEY.session, None)
    assert transcripts.infos(KEY.project)[0].tag is None
    assert transcripts.info(KEY.project, "unknown") is None and transcripts.infos("unknown") == []


def test_conversations_and_copies(transcripts: talktree.Transcripts) -> None:
    copy = transcripts.fork(KEY.project, KEY.session, last="1", title="Copy")
    (message,) = transcripts.messages(KEY.project, copy)
    assert (message.role, message.session, message.message) == ("user", copy, QUESTION["message"])
    assert [it.uuid for it in transcripts.messages(KEY.project, KEY.session)] == ["1", "2"]
    assert transcripts.subagents(KEY.project, KEY.session) == ["7f"]
    (message,) = transcripts.subagent_messages(KEY.project, KEY.session, "7f")
    assert (message.parent_call, message.parent_agent) == ("call", None)
    with pytest.raises(talktree.UnknownMessageError):
        transcripts.fork(KEY.project, KEY.session, last="unknown")
    with pytest.raises(talktree.UnknownSessionError):
        transcripts.fork(KEY.project, "unknown")


def test_owners_and_pages(transcripts: talktree.Transcripts) -> None:
    owned = transcripts.owned_by("user:42")
    for at in range(5):
        owned.append(TranscriptKey("p", str(at)), [QUESTION])
    (first, second), rest = transcripts.list(owner="user:42", limit=2), transcripts.list(project="p")
    assert (first.key, first.owner, first.entries) == (TranscriptKey("p", "0"), "user:42", 1)
    assert transcripts.list(project="p", after=second.number) == rest[2:]
    assert transcripts.list(written_before=first.mtime, project="p") == []
    assert [it.key.session for it in transcripts.list(written_before=second.mtime, project="p")] == ["0"]
    assert transcripts.delete_of_owner("user:42") == 5
    assert transcripts.delete(AGENT) == 1 and transcripts.delete(KEY) == 1 and transcripts.delete(KEY) == 0
    assert transcripts.list() == []


def test_files_of_the_command(transcripts: talktree.Transcripts, tmp_path: Path) -> None:
    transcripts.append(TranscriptKey(KEY.project, KEY.session, "../../x"), [QUESTION])
    written = transcripts.export_session(KEY.project, KEY.session, tmp_path / "projects")
    assert written.refused == ["../../x"] and written.entries == 4
    file = tmp_path / "projects" / KEY.project / f"{KEY.session}.jsonl"
    assert [json.loads(line) for line in file.read_text().splitlines()] == [QUESTION, ANSWER]
    file.write_text(file.read_text() + '{"type":\n')
    with talktree.Store() as other:
        read = other.transcripts.import_session(file.parent, KEY.session)
        assert (read.entries, read.known, [it.line for it in read.unread]) == (4, 0, [3])
        assert other.transcripts.load(AGENT) == transcripts.load(AGENT)
        assert other.transcripts.import_session(file.parent, KEY.session).known == 3


def test_appends_of_several_threads_are_all_there(transcripts: talktree.Transcripts) -> None:
    keys = [TranscriptKey("threads", str(at)) for at in range(4)]
    threads = [
        threading.Thread(target=lambda key=key: [transcripts.append(key, [{**QUESTION, "uuid": n}]) for n in "abcdef"])
        for key in keys
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [[it["uuid"] for it in transcripts.load(key) or []] for key in keys] == [[*"abcdef"]] * 4


def test_they_are_closed_with_their_store(store: talktree.Store, transcripts: talktree.Transcripts) -> None:
    store.close()
    with pytest.raises(talktree.ClosedError):
        transcripts.load(KEY)


def test_the_same_from_async_code(tmp_path: Path) -> None:
    async def main() -> None:
        async with aio.Store(tmp_path / "store.db") as store:
            transcripts = store.transcripts.owned_by("user:42")
            await asyncio.gather(*(transcripts.append(KEY, [{**QUESTION, "uuid": str(at)}]) for at in range(40)))
            loaded = await store.transcripts.load(KEY)
            assert loaded is not None and [it["uuid"] for it in loaded] == [str(at) for at in range(40)]
            assert [it.owner for it in await transcripts.list()] == ["user:42"]
            copy = await transcripts.fork(KEY.project, KEY.session)
            assert len(await transcripts.messages(KEY.project, copy)) == len(
                await transcripts.messages(KEY.project, KEY.session)
            )
            assert await transcripts.delete(KEY) == 1

    asyncio.run(main())


def test_projected_transcripts_are_sessions(store: talktree.Store) -> None:
    transcripts = store.transcripts
    transcripts.append(KEY, [QUESTION])
    assert transcripts.projection(KEY) is None and store.sessions() == []

    transcripts.projecting().append(KEY, [ANSWER, {**ANSWER, "uuid": "4", "parentUuid": "3"}])
    shown = transcripts.projection(KEY)
    assert shown is not None and (shown.session, shown.entries, shown.waiting) == (KEY.session, 3, 0)
    assert shown.missing_parents == [talktree.MissingParent("4", "3")]
    assert [it.text for it in store.session(KEY.session).history()] == ["Fix the login.", "Done.", "Done."]
    assert [hit.session for hit in store.search("login").hits] == [KEY.session]

    transcripts.append(KEY, [{**QUESTION, "uuid": "3", "parentUuid": "2"}])
    repaired = transcripts.project(KEY)
    assert repaired is not None and repaired.missing_parents == []
    transcripts.append(TranscriptKey(KEY.project, "other"), [{"type": "custom-title", "customTitle": "x"}])
    assert transcripts.project_all(project=KEY.project) == talktree.ProjectionReport(1, 1, 0, 0)

    transcripts.delete(KEY)
    assert store.sessions() == [] and store.verify().damages == []


def test_an_async_store_and_the_adapter_project(tmp_path: Path) -> None:
    async def main() -> None:
        async with aio.Store(tmp_path / "bot.db") as store:
            await store.transcripts.projecting().owned_by("ann").append(KEY, [QUESTION])
            sessions = talktree_claude.SessionStore(store, projecting=True)
            question: Any = QUESTION
            await sessions.append({"project_key": KEY.project, "session_id": "second"}, [question])
            await (await sessions.transcripts()).append(TranscriptKey(KEY.project, "third"), [QUESTION])
            shown = await store.transcripts.projection(KEY)
            assert shown == await store.transcripts.project(KEY) and shown is not None
            assert (await store.transcripts.project_all()).sessions == 3
            owners = {it.id: it.owner for it in await store.sessions()}
            assert owners == {KEY.session: "ann", "second": None, "third": None}

    asyncio.run(main())
