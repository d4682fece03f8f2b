"""The bot for many chats: written as the SDK writes, resumed by the SDK's own code, without the home of its command."""

from __future__ import annotations

import asyncio
import json
import shutil
import sys
import uuid
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import talktree

pytest.importorskip("claude_agent_sdk")

from claude_agent_sdk import ClaudeAgentOptions, SessionKey, project_key_for_directory
from claude_agent_sdk._internal.session_resume import build_mirror_batcher, materialize_resume_session
from claude_agent_sdk._internal.session_store_validation import validate_session_store_options

sys.path.insert(0, str(Path(__file__).parents[1] / "examples"))

from many_chats import Chats


class Command:
    """A stand-in for the command of the SDK: it writes files to its home, and the SDK mirrors them to the store."""

    def __init__(self, folder: Path) -> None:
        self.home = folder / "home"
        self.errors: list[str] = []
        #: The lines that each run found in its home.
        self.resumed: list[list[Any]] = []

    async def __call__(self, options: ClaudeAgentOptions, text: str) -> str:
        validate_session_store_options(options)
        assert options.session_store is not None and options.cwd is not None
        materialized = await materialize_resume_session(options)
        home = self.home if materialized is None else materialized.config_dir
        session = options.session_id if materialized is None else materialized.resume_session_id
        assert session is not None
        file = home / "projects" / project_key_for_directory(options.cwd) / f"{session}.jsonl"
        lines = [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []
        self.resumed.append(lines)

        async def on_error(key: SessionKey | None, error: str) -> None:
            self.errors.append(error)

        env = {"CLAUDE_CONFIG_DIR": str(self.home)}
        batcher = build_mirror_batcher(options.session_store, materialized, env, on_error)
        parent = lines[-1]["uuid"] if lines else None
        file.parent.mkdir(parents=True, exist_ok=True)
        for role in ("user", "assistant"):
            id = str(uuid.uuid4())
            entry: Any = {"type": role, "uuid": id, "parentUuid": parent, "sessionId": session}
            entry["message"] = {"role": role, "content": text}
            with file.open("a") as written:
                written.write(json.dumps(entry) + "\n")
            batcher.enqueue(str(file), [entry])
            agent = file.parent / session / "subagents" / f"agent-{id}.jsonl"
            of_agent: Any = {**entry, "isSidechain": True}
            batcher.enqueue(str(agent), [of_agent])
            parent = id
        await batcher.close()
        if materialized is not None:
            await materialized.cleanup()
        return f"{len(lines) // 2}: {text}"

    def texts(self) -> list[list[str]]:
        return [[line["message"]["content"] for line in lines] for lines in self.resumed]


@pytest.fixture
def command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Command:
    command = Command(tmp_path)
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(command.home))
    monkeypatch.setenv("ANTHROPIC_API_KEY", "none")
    return command


def test_a_chat_is_resumed_without_its_home(command: Command, tmp_path: Path) -> None:
    path = tmp_path / "chats.db"
    with talktree.Store(path) as store:
        chats = Chats(store, command, tmp_path)
        assert asyncio.run(chats.answer("1", "ann", "a")) == "0: a"
        session = chats.session("1", "ann")[0].id
        (written,) = command.home.rglob(f"{session}.jsonl")
        lines = [json.loads(line) for line in written.read_text().splitlines()]
    shutil.rmtree(command.home)
    with talktree.Store(path) as store:
        chats = Chats(store, command, tmp_path)
        assert asyncio.run(chats.answer("1", "ann", "b")) == "1: b"
        assert command.resumed == [[], lines]
        project = project_key_for_directory(tmp_path)
        assert len(store.transcripts.subagents(project, session)) == 4
        assert [it.message["content"] for it in store.transcripts.messages(project, session)] == ["a", "a", "b", "b"]
        assert [it.text for it in chats.session("1", "ann")[0].history()] == ["a", "0: a", "b", "1: b"]
    assert command.errors == []


def test_chats_are_never_mixed(command: Command, tmp_path: Path) -> None:
    async def main(chats: Chats) -> None:
        for turn in range(3):
            await asyncio.gather(*(chats.answer(str(chat), f"user {chat}", f"{chat}.{turn}") for chat in range(8)))
            shutil.rmtree(command.home, ignore_errors=True)

    with talktree.Store(tmp_path / "chats.db") as store:
        asyncio.run(main(Chats(store, command, tmp_path)))
        owners = {it.key.session: it.owner for it in store.transcripts.list(limit=1_000)}
        for session, owner in owners.items():
            shown = store.transcripts.messages(project_key_for_directory(tmp_path), session)
            assert {f"user {it.message['content'].split('.')[0]}" for it in shown} == {owner}
    assert len(owners) == 8
    for texts in command.texts():
        assert len({text.split(".")[0] for text in texts}) <= 1
    assert sorted(map(len, command.texts())) == [0] * 8 + [2] * 8 + [4] * 8
    assert command.errors == []


def test_a_session_that_expired_was_deleted_or_is_of_another_user_starts_anew(command: Command, tmp_path: Path) -> None:
    with talktree.Store(tmp_path / "chats.db") as store:
        chats = Chats(store, command, tmp_path)

        def turn(chats: Chats, user: str = "ann") -> tuple[str, str]:
            reply = asyncio.run(chats.answer("1", user, "x"))
            return reply, chats.session("1", user)[0].id

        assert turn(chats)[0] == "0: x"
        reply, first = turn(chats)
        assert reply == "1: x"
        # Its transcript was deleted by somebody.
        store.transcripts.delete(talktree.TranscriptKey(project_key_for_directory(tmp_path), first))
        reply, second = turn(chats)
        assert reply == "0: x" and second != first
        # The chat was forgotten, with all that was stored of it.
        chats.forget("1")
        assert store.transcripts.list() == []
        reply, third = turn(chats)
        assert reply == "0: x" and third != second
        # Somebody else writes in the chat.
        reply, fourth = turn(chats, "bob")
        assert reply == "0: x" and fourth != third
        # It was idle for too long.
        assert turn(chats, "bob")[0] == "1: x"
        late = Chats(store, command, tmp_path, expire_after=timedelta(microseconds=1))
        assert asyncio.run(late.answer("1", "bob", "x")) == "0: x"
        ends = [it.end for it in talktree.SessionManager(store).bindings("1")]
        assert {"expired", "other_owner", "ended"} <= set(ends)
    assert command.errors == []
