"""Import, export, backup: what leaves a store can come back."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, BinaryIO, cast

import pytest
import talktree
from talktree import Message


@pytest.fixture
def full(store: talktree.Store) -> talktree.Store:
    chat = store.session("s")
    question = chat.append(Message.user("Name a colour")).id
    chat.append_to(question, Message.assistant("red"))
    chat.append_to(question, Message.assistant("cyan"))
    chat.label("start", question)
    return store


def test_a_round_trip(full: talktree.Store, tmp_path: Path) -> None:
    path = tmp_path / "all.jsonl"
    assert full.export_jsonl(path) == []
    seen: list[tuple[int, int]] = []
    with talktree.Store() as copy:
        report = copy.import_file(path, progress=lambda done, total: seen.append((done, total)))
        assert (report.added, report.dropped, report.sessions, report.format) == (3, 0, ["s"], "talktree")
        assert copy.content_hash() == full.content_hash()
        assert copy.session("s").content_hash() == full.session("s").content_hash()
        assert copy.import_bytes(path.read_bytes()).added == 0
        assert seen and seen[-1][0] <= seen[-1][1]
    file = io.BytesIO()
    full.session("s").export_jsonl(file)
    assert file.getvalue().count(b"\n") >= 3
    assert full.export_jsonl(io.BytesIO(), readable_only=True) == []


def test_pages_and_openai(full: talktree.Store, tmp_path: Path) -> None:
    page, chat = io.BytesIO(), io.BytesIO()
    full.session("s").export_markdown(page)
    full.session("s").at(full.session("s").leaves()[0]).export_openai(chat)
    assert "cyan" in page.getvalue().decode()
    assert json.loads(chat.getvalue())["messages"][0]["content"] == "Name a colour"


def test_files_of_other_programs(store: talktree.Store, tmp_path: Path) -> None:
    path = tmp_path / "chat.json"
    path.write_text(
        json.dumps({"messages": [{"role": "user", "content": "hello"}, {"role": "assistant", "content": "hi"}]})
    )
    assert store.import_file(path, dry_run=True).added == 2 and store.sessions() == []
    report = store.import_file(path, session="mine")
    assert report.sessions == ["mine"] and report.format == "openai"
    with pytest.raises(talktree.InvalidValueError):
        store.import_file(path, format="word")
    with pytest.raises((talktree.IoError, talktree.ImportFileError)):
        store.import_file(tmp_path / "missing.json")
    with pytest.raises(talktree.ImportFileError) as caught:
        store.import_bytes(
            b'{"role":"user","content":"a"}\n{"role":\n', name="broken.jsonl", format="openai", strict=True
        )
    assert caught.value.line == 2


def test_an_export_never_writes_over_an_open_store(full: talktree.Store, tmp_path: Path) -> None:
    with pytest.raises(talktree.InvalidValueError, match="the file of an open store"):
        full.export_jsonl(tmp_path / "store.db")
    assert full.verify().damages == []


def test_a_failed_export_leaves_the_file_as_it_was(full: talktree.Store, tmp_path: Path) -> None:
    folder = tmp_path / "exports"
    folder.mkdir()
    kept = folder / "all.jsonl"
    full.export_jsonl(kept)
    before = kept.read_bytes()
    with pytest.raises(talktree.UnknownSessionError):
        full.session("typo").export_jsonl(kept)
    full.close()
    for path in (kept, folder / "new.jsonl"):
        with pytest.raises(talktree.ClosedError):
            full.export_owner("ann", path)
    assert list(folder.iterdir()) == [kept] and kept.read_bytes() == before


@pytest.mark.parametrize(("last", "left"), [("fsync", []), ("replace", ["all.jsonl"])])
def test_a_signal_at_the_end_of_an_export_is_raised_as_it_is(
    last: str, left: list[str], full: talktree.Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "exports"
    folder.mkdir()
    done = getattr(os, last)

    def interrupted(*arguments: Any) -> None:
        done(*arguments)
        raise KeyboardInterrupt

    monkeypatch.setattr(os, last, interrupted)
    with pytest.raises(KeyboardInterrupt):
        full.export_jsonl(folder / "all.jsonl")
    assert [path.name for path in folder.iterdir()] == left


@pytest.mark.skipif(not hasattr(os, "O_TMPFILE"), reason="every new file has a name here")
def test_a_killed_export_leaves_no_file(full: talktree.Store, tmp_path: Path) -> None:
    folder = tmp_path / "exports"
    folder.mkdir()
    (folder / "all.jsonl").write_bytes(b"old")
    script = """if True:
        import os, signal, sys
        import talktree
        # Before it gets its name, when all is written.
        os.fsync = lambda file: os.kill(os.getpid(), signal.SIGKILL)
        with talktree.Store(sys.argv[1]) as store:
            store.session("s").append(talktree.Message.user("secret"))
            store.export_jsonl(sys.argv[2])
    """
    for name in ("all.jsonl", "new.jsonl"):
        command = [sys.executable, "-c", script, str(tmp_path / "other.db"), str(folder / name)]
        assert subprocess.run(command, check=False).returncode == -signal.SIGKILL
        assert [(path.name, path.read_bytes()) for path in folder.iterdir()] == [("all.jsonl", b"old")]


@pytest.mark.skipif(os.name != "posix", reason="permissions and links of Unix")
def test_an_export_keeps_the_permissions_and_the_link_of_a_file(full: talktree.Store, tmp_path: Path) -> None:
    path, link = tmp_path / "all.jsonl", tmp_path / "link.jsonl"
    path.write_bytes(b"old")
    path.chmod(0o640)
    link.symlink_to(path)
    full.export_jsonl(link)
    assert link.is_symlink() and b"cyan" in path.read_bytes()
    assert path.stat().st_mode & 0o777 == 0o640


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes with a name")
def test_an_export_to_a_pipe_writes_to_it(full: talktree.Store, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        full.export_jsonl(pipe)
        assert b"cyan" in os.read(reader, 1 << 16) and pipe.is_fifo()
    finally:
        os.close(reader)


@pytest.mark.skipif(not os.path.exists("/dev/stdout"), reason="there is no /dev/stdout")
def test_an_export_to_the_standard_output_does_not_replace_its_file(tmp_path: Path) -> None:
    program = """
import talktree
store = talktree.Store()
store.session("s").append({"role": "user", "text": "hello"})
store.export_jsonl("/dev/stdout")
"""
    path = tmp_path / "output"
    with path.open("wb") as output:
        file = path.stat().st_ino
        subprocess.run([sys.executable, "-c", program], stdout=output, check=True, timeout=60)
    assert b"hello" in path.read_bytes() and path.stat().st_ino == file


def test_a_file_that_writes_little_at_once_gets_all(full: talktree.Store) -> None:
    class Raw(io.RawIOBase):
        def __init__(self, takes: int | None) -> None:
            self.takes, self.taken = takes, b""

        def write(self, data: Any) -> int | None:
            self.taken += data[: self.takes or 0]
            return self.takes and min(self.takes, len(data))

    whole, raw = io.BytesIO(), Raw(10)
    full.export_jsonl(whole)
    full.export_jsonl(cast("BinaryIO", raw))
    assert raw.taken == whole.getvalue()
    for takes in (0, None):
        with pytest.raises(BlockingIOError):
            full.export_jsonl(cast("BinaryIO", Raw(takes)))


def test_a_backup_is_a_store(full: talktree.Store, tmp_path: Path) -> None:
    seen: list[int] = []
    full.backup(tmp_path / "copy.db", lambda done, total: seen.append(done))
    with talktree.Store(tmp_path / "copy.db", read_only=True) as copy:
        assert copy.content_hash() == full.content_hash()
    with pytest.raises(talktree.Error):
        full.backup(tmp_path / "copy.db")
    full.rebuild_search()
    full.recount_tokens()
    assert full.stats().messages == 3 and full.stats().branching_messages == 1


def test_messages_from_elsewhere(store: talktree.Store) -> None:
    then = datetime(2020, 5, 1, tzinfo=timezone.utc)
    first = (None, Message.user("hello", id="m1", created_at=then))
    answer: talktree.MessageFields = {"id": "m2", "role": "assistant", "text": "hi", "metadata": {"n": 2**70}}
    second = ("m1", answer)
    chat = store.session("s")
    assert chat.import_messages([first, second]) == ["added", "added"]
    assert chat.branches("m1")[0].metadata == {"n": 2**70} and chat.history()[0].created_at == then
    more = ("m1", Message.user("more", id="m4"))
    assert chat.import_messages([first, second, more]) == ["known", "known", "added"]
    assert chat.is_imported("m4") and chat.branches("m1")[-1].text == "more"
    summary = chat.add_compaction("A greeting.", "m1", "m4")
    other = store.session("other")
    other.import_messages([first, more])
    other.import_compaction(chat.compaction(summary.id))
    assert other.compaction(summary.id) == chat.compaction(summary.id)
    with pytest.raises(TypeError, match=r"messages\[1\] must be a dict"):
        chat.import_messages([more, (None, "text")])  # type: ignore[list-item]
