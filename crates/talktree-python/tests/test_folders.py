"""A folder of projects, as the command of Claude Code keeps it: imported by `talktree import` and from Python, then searched.

`TALKTREE_COMMAND` is the command, `TALKTREE_DATA` the folder with real transcripts.
"""

from __future__ import annotations

import io
import json
import os
import subprocess
import warnings
from pathlib import Path
from typing import Any

import anyio
import pytest
import talktree
from generated import generated
from talktree import TranscriptKey, aio

SESSION = "4b1e7d5c-90c5-4dd7-a6f1-8f8b2f4f7a10"


def entry(uuid: str, parent: str | None, role: str, text: str, **fields: Any) -> Any:
    common = {"isSidechain": False, "cwd": "/home/ann/shop", "sessionId": SESSION, "version": "2.1.0"}
    at = f"2026-03-01T10:00:{len(uuid) % 60:02}.000Z"
    message = {"role": role, "content": [{"type": "text", "text": text}]}
    return {"type": role, "uuid": uuid, "parentUuid": parent, **common, "timestamp": at, "message": message, **fields}


#: A question that was taken back, and a compaction of the branch that went on.
ENTRIES = [
    entry("a", None, "user", "We begin with a walrus."),
    entry("b", "a", "assistant", "A walrus it is."),
    entry("c", "b", "user", "Rather an ocelot?"),
    entry("d", "c", "assistant", "The ocelot was taken back."),
    entry("e", "b", "user", "Rather a pangolin."),
    entry("f", "e", "assistant", "The pangolin stays."),
    {
        "type": "system",
        "subtype": "compact_boundary",
        "uuid": "g",
        "parentUuid": None,
        "logicalParentUuid": "f",
        "sessionId": SESSION,
        "timestamp": "2026-03-01T11:00:00.000Z",
        "content": "Conversation compacted",
        "compactMetadata": {"trigger": "auto", "preTokens": 155_000},
    },
    entry("h", "g", "user", "Earlier: they chose an animal.", isCompactSummary=True, isVisibleInTranscriptOnly=True),
    entry("i", "h", "user", "Where does it live?"),
    entry("j", "i", "assistant", "In a burrow."),
]


@pytest.fixture
def projects(tmp_path: Path) -> Path:
    """Real, generated and written sessions, with their subagents, as the command lays them out."""
    folder = tmp_path / "projects"
    with talktree.Store() as store:
        transcripts = store.transcripts
        for seed in range(12):
            for session, batches in generated(seed):
                for subpath, entries in batches:
                    # Files have no lone surrogates as such, but their escapes.
                    transcripts.append(TranscriptKey(f"-home-ann-{seed % 2}", session, subpath), entries)
        transcripts.append(TranscriptKey("-home-ann-shop", SESSION), ENTRIES)
        for listed in transcripts.list(limit=1_000):
            if listed.key.is_main:
                transcripts.export_session(listed.key.project, listed.key.session, folder)
    real = Path(os.environ.get("TALKTREE_DATA", "")) / "claude-code"
    files = sorted(real.glob("*.jsonl")) if "TALKTREE_DATA" in os.environ else []
    if not files:
        warnings.warn("TALKTREE_DATA has no claude-code: real transcripts were NOT imported", stacklevel=1)
    (folder / "-tmp").mkdir()
    for file in files:
        lines = [json.loads(line) for line in file.read_text().splitlines() if line.strip()]
        (session,) = {it["sessionId"] for it in lines if "sessionId" in it}
        (folder / "-tmp" / f"{session}.jsonl").write_bytes(file.read_bytes())
    (folder / "-tmp" / "settings.json").write_text('{"colour": "blue"}')
    return folder


def records(store: talktree.Store) -> list[str]:
    file = io.BytesIO()
    store.export_jsonl(file)
    return file.getvalue().decode().splitlines()


def test_the_command_and_python_make_the_same_store(projects: Path, tmp_path: Path) -> None:
    command = os.environ.get("TALKTREE_COMMAND")
    if command is None:
        warnings.warn("TALKTREE_COMMAND is not set: the command was NOT compared", stacklevel=1)
        pytest.skip("TALKTREE_COMMAND is not set")
    by_command = ["--store", os.fspath(tmp_path / "command.db"), "import", os.fspath(projects)]
    done = subprocess.run([command, *by_command], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    with talktree.Store(tmp_path / "command.db") as theirs, talktree.Store(tmp_path / "python.db") as ours:
        imported = ours.import_folder(projects)
        # An agent without a word is skipped, too: its file says too little to be known as one.
        skipped = [os.path.relpath(path, projects) for path, why in imported.skipped]
        assert "-tmp/settings.json" in skipped and all("/subagents/" in it for it in skipped if it != "-tmp/settings.json")
        assert [note.why for it in imported.reports for note in it.notes if "another conversation" in note.why] == []
        assert len(ours.sessions()) > 5 and ours.stats().messages > 100
        assert ours.content_hash() == theirs.content_hash()
        assert records(ours) == records(theirs)
        assert sum(it.added for it in ours.import_folder(projects).reports) == 0
        # And the other way round.
        again = subprocess.run(
            [command, "--json", *by_command[:1], os.fspath(tmp_path / "python.db"), *by_command[2:]],
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert again.returncode == 0 and all(json.loads(it)["added"] == 0 for it in again.stdout.splitlines())
        assert ours.verify().damages == [] and theirs.verify().damages == []


def test_search_finds_what_was_taken_back_and_what_is_under_a_summary(projects: Path) -> None:
    with talktree.Store() as store:
        store.import_folder(projects / "-home-ann-shop")
        [back] = store.search("ocelot taken back", limit=1)
        assert (back.session, back.on_path, back.under) == (SESSION, False, None)
        [under] = store.search("pangolin stays", limit=1)
        assert under.on_path and under.under is not None
        assert store.session(SESSION).compaction(under.under).summary.startswith("Earlier: they chose")
        [shown] = store.search("burrow")
        assert shown.on_path and shown.under is None
        texts = [message.text for message in store.session(SESSION).history()]
        assert texts[-2:] == ["Where does it live?", "In a burrow."] and not any("pangolin" in it for it in texts)


def test_folders_that_cannot_be_read_and_files_that_cannot_be_imported(tmp_path: Path, store: talktree.Store) -> None:
    with pytest.raises(talktree.IoError):
        store.import_folder(tmp_path / "missing")
    folder = tmp_path / "chats"
    folder.mkdir()
    assert store.import_folder(folder) == talktree.FolderImport([], [])
    (folder / "a.json").write_text('[{"role": "user", "content": "hi"}]')
    (folder / "b.jsonl").write_text('{"role": "user", "content": "hi"}\n{"role":\n')
    (folder / "c.zip").write_bytes(b"PK")
    with talktree.Store(folder / "d.json") as other:  # the file of a store that is open
        other.session("s")
        seen: list[tuple[int, int]] = []
        imported = store.import_folder(folder, strict=True, progress=lambda *at: seen.append(at))
    assert seen == [(at, 4) for at in range(5)]
    assert [report.added for report in imported.reports] == [1]
    whys = [(os.path.basename(path), why) for path, why in imported.skipped]
    assert [name for name, _ in whys] == ["b.jsonl", "c.zip", "d.json"]
    assert "only the command" in whys[1][1] and "has open" in whys[2][1]
    with pytest.raises(TypeError, match="there is no setting 'session'"):
        store.import_folder(folder, session="s")  # type: ignore[call-arg]


def test_the_async_face(projects: Path) -> None:
    async def main() -> None:
        async with aio.Store() as store:
            imported = await store.import_folder(projects / "-home-ann-shop")
            assert [report.sessions for report in imported.reports] == [[SESSION]]

    anyio.run(main)
