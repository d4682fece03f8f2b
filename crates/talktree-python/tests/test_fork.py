"""A child of a fork neither uses nor closes what its parent opened."""

from __future__ import annotations

import gc
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import talktree
from talktree import Message

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork"),
    pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning"),
]


def in_child(work: Callable[[], str], *, exits: Callable[[int], object] = os._exit) -> str:
    """Returns what work returns in a child."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        try:
            said = work()
        except BaseException as error:
            said = f"{type(error).__name__}: {error}"
        os.write(writer, said.encode())
        os.close(writer)
        exits(0)
    os.close(writer)
    with os.fdopen(reader) as pipe:
        said = pipe.read()
    assert os.waitpid(child, 0)[1] == 0
    return said


def descriptors(path: Path) -> int:
    """Returns how many descriptors of a file this process has open; 0 where the system does not say."""
    folder = Path("/proc/self/fd")
    if not folder.exists():
        return 0
    count = 0
    for link in folder.iterdir():
        try:
            count += os.readlink(link) == os.fspath(path.resolve())
        except FileNotFoundError:  # the descriptor of the folder itself
            pass
    return count


def test_the_child_gets_a_clear_error(store: talktree.Store, chat: talktree.Session) -> None:
    chat.append(Message.user("hello"))
    stream = iter(chat)
    for call in (chat.history, store.sessions, lambda: next(stream), lambda: store.search("x"), lambda: store.verify()):
        said = in_child(lambda call=call: str(call()))  # type: ignore[misc]
        assert said == "ForkedError: the store was opened before this process was forked; open it in the child"


def test_the_child_closes_nothing_of_the_parent(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    store = talktree.Store(path)
    chat = store.session("s", on_error=lambda error: None)
    keep = store.subscribe(lambda event: None)
    chat.append(Message.user("before"))
    wal = path.with_name("store.db-wal")
    size = wal.stat().st_size
    assert size > 0
    objects = [store, chat, keep, iter(chat), talktree.SessionManager(store)]

    def drop_all() -> str:
        nonlocal store, chat, keep
        store.close()
        objects.clear()
        del store, chat, keep
        gc.collect()
        return f"{descriptors(path)} open"

    opened = descriptors(path)
    assert in_child(drop_all) == f"{opened} open"
    assert wal.stat().st_size == size  # no checkpoint by the child
    chat.append(Message.user("after"))
    with talktree.Store(path) as second:
        assert len(second.session("s").history()) == 2
        assert second.verify().damages == []
    store.close()


def test_the_child_may_end_as_any_program(tmp_path: Path) -> None:
    """Also with the finalizers of the interpreter, which drop everything."""
    path = tmp_path / "store.db"
    program = f"""
import os, sys, talktree
store = talktree.Store({str(path)!r})
chat = store.session("s")
chat.append({{"role": "user", "text": "one"}})
child = os.fork()
if child == 0:
    sys.exit(7)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
chat.append({{"role": "user", "text": "two"}})
assert store.verify().damages == []
print(len(chat.history()))
"""
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", program], capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.stderr) == ("2\n", "")


def test_the_child_cannot_open_the_file_of_the_parent(tmp_path: Path) -> None:
    path = tmp_path / "store.db"

    def open_again() -> str:
        with talktree.Store(path) as store:
            return f"{len(store.sessions())} sessions"

    with talktree.Store(path) as store:
        store.session("s").append(Message.user("hello"))
        assert "was open when this process was forked" in in_child(open_again)
        assert in_child(lambda: repr(talktree.Store())) == "<Store in memory>"
    assert in_child(open_again) == "1 sessions"  # closed before the fork


def test_the_child_may_open_other_files_and_the_parent_goes_on(tmp_path: Path) -> None:
    with talktree.Store(tmp_path / "parent.db") as store:
        chat = store.session("s")
        stop = threading.Event()

        def write() -> None:
            while not stop.is_set():
                chat.append(Message.user("hello"))

        writer = threading.Thread(target=write)
        writer.start()

        def other() -> str:
            with talktree.Store(tmp_path / "child.db") as mine:
                mine.session("s").append(Message.user("mine"))
                return str(len(mine.session("s").history()))

        try:
            # Forked between two calls of this thread, while another one writes.
            assert in_child(other) == "1"
        finally:
            stop.set()
            writer.join()
        assert store.verify().damages == []


def test_a_child_never_hangs_whatever_other_threads_did_at_the_fork(tmp_path: Path) -> None:
    """Each child inherited the lock of SQLite's allocator, locked, with a probability of about a tenth."""
    program = f"""
import os, threading
from talktree import Message, Store
folder = {os.fspath(tmp_path)!r}
store, stop = Store(folder + "/parent.db"), threading.Event()

def work(at):
    chat = store.session(str(at))
    while not stop.is_set():
        chat.append(Message.user("hello there " * 20))
        store.search("hello")
        with Store(f"{{folder}}/{{at}}.db") as other:
            other.session("s").append(Message.user("hello"))

threads = [threading.Thread(target=work, args=(at,)) for at in range(4)]
for thread in threads:
    thread.start()
for at in range(60):
    if (child := os.fork()) == 0:
        with Store(f"{{folder}}/child {{at}}.db") as mine:
            mine.session("s").append(Message.user("mine"))
            os._exit(len(mine.search("mine").hits))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 1
stop.set()
for thread in threads:
    thread.join()
print(len(store.verify().damages))
"""
    assert said_by(program) == ("0\n", "")


def test_a_child_of_a_fork_during_a_long_call_gets_a_clear_error(tmp_path: Path) -> None:
    """A fork does not wait for a call that waits for another process, and what the call had locked is not known."""
    path = tmp_path / "parent.db"
    holder = f"""
import sqlite3, sys
connection = sqlite3.connect({os.fspath(path)!r})
connection.execute("BEGIN IMMEDIATE")
print("locked", flush=True)
sys.stdin.read()
"""

    def opens() -> str:
        return repr(talktree.Store(tmp_path / "child.db"))

    with talktree.Store(path, busy_timeout=60) as store:
        chat = store.session("s")
        chat.append(Message.user("before"))
        with subprocess.Popen([sys.executable, "-c", holder], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
            assert other.stdout is not None and other.stdin is not None and other.stdout.readline() == b"locked\n"
            writer = threading.Thread(target=chat.append, args=(Message.user("after"),))
            writer.start()
            time.sleep(0.5)
            said = in_child(opens)
            assert said.startswith("ForkedError: another thread was in a long call of talktree when this process was forked")
            assert in_child(lambda: str(talktree.Store.is_open_file(path))).startswith("ForkedError: another thread")
            other.stdin.close()
        writer.join()
        assert len(chat.history()) == 2
        assert in_child(opens) == f"<Store {os.fspath(tmp_path / 'child.db')!r}>"


def test_a_fork_that_waits_for_a_lock_of_the_program_does_not_hang(tmp_path: Path) -> None:
    """A thread held the lock, and its call waited for the fork, which waited for the lock."""
    program = f"""
import os, threading
lock, stop = threading.Lock(), threading.Event()
os.register_at_fork(before=lock.acquire, after_in_parent=lock.release)
from talktree import Message, Store
chat = Store({os.fspath(tmp_path / "store.db")!r}).session("s")

def work():
    while not stop.is_set():
        with lock:
            for _ in range(50):
                chat.append(Message.user("hello"))
        stop.wait(0.001)  # Python's locks are not fair: the fork would wait for its turn for any time

thread = threading.Thread(target=work)
thread.start()
if (child := os.fork()) == 0:
    os._exit(7)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
stop.set()
thread.join()
"""
    assert said_by(program) == ("7\n", "")


def test_a_callback_may_fork(tmp_path: Path) -> None:
    """The thread that forks is inside of a call, and the fork does not wait for it."""
    said: list[str] = []

    def opens() -> str:
        with talktree.Store(tmp_path / "child.db") as mine:
            return mine.session("s").append(Message.user("mine")).id

    with talktree.Store(tmp_path / "parent.db") as store:
        chat = store.session("s")
        with chat.subscribe(lambda event: said.append(in_child(opens))):
            chat.append(Message.user("hello"))
        assert "Error" not in said[0]
        # The call after the callback has entered the library again, and a fork waits for no other.
        chat.append(Message.user("hello"))
        (tmp_path / "child.db").unlink()
        assert "Error" not in in_child(opens)


FACES = {
    "a session": """
async def begin():
    store = await aio.Store.open(path)
    chat = await store.session("s")
    await chat.append(Message.user("hello"))
    return chat.history, store.close
""",
    "a store": """
async def begin():
    store = await aio.Store.open(path)
    return store.sessions, store.close
""",
    "a session of the OpenAI SDK": """
from talktree import openai
async def begin():
    session = openai.Session("s", path)
    await session.add_items([{"role": "user", "content": "hello"}])
    return session.get_items, session.close
""",
    "a session of the OpenAI SDK over an open store": """
from talktree import openai
async def begin():
    session = openai.Session("s", Store(path))
    await session.add_items([{"role": "user", "content": "hello"}])
    return session.get_items, session.close
""",
}


@pytest.mark.parametrize("face", FACES)
def test_an_async_call_in_the_child_is_refused_at_once(face: str, tmp_path: Path) -> None:
    if "openai" in FACES[face]:
        pytest.importorskip("agents")
    program = f"""
import asyncio, os
from talktree import ForkedError, Message, Store, aio
path = {os.fspath(tmp_path / "store.db")!r}
{FACES[face]}
call, close = asyncio.run(begin())
if (child := os.fork()) == 0:
    try:
        asyncio.run(call())
    except ForkedError:
        asyncio.run(close())
        os._exit(7)
    os._exit(1)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
asyncio.run(call())
"""
    said, errors = said_by(program)
    assert (said, errors) == ("7\n", "")


def said_by(program: str) -> tuple[str, str]:
    """Returns what a program prints. It is ended with its children if it hangs."""
    with subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", program],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as running:
        try:
            return running.communicate(timeout=30)
        except subprocess.TimeoutExpired:
            os.killpg(running.pid, signal.SIGKILL)
            raise


def _in_pool(path: str) -> int:
    with talktree.Store(path) as store:
        return len(store.session("s").history())


def test_a_pool_of_spawned_processes_opens_the_file(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    with talktree.Store(path) as store:
        store.session("s").append(Message.user("hello"))
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            assert pool.apply(_in_pool, (str(path),)) == 1
