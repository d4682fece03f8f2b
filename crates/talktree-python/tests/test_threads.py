"""Threads share a store; no call holds the interpreter's lock, and a signal ends a long one."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import talktree
from talktree import Message


def test_threads_write_at_once(store: talktree.Store) -> None:
    def write(worker: int) -> None:
        chat = store.session(f"s{worker % 3}")
        for n in range(30):
            chat.append(Message.user(f"{worker} {n}"))

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(write, range(6)))
    assert sum(info.messages for info in store) == 180
    assert store.verify().damages == []


def test_a_write_that_waits_lets_other_threads_run(tmp_path: Path) -> None:
    import sqlite3

    path = tmp_path / "store.db"
    with talktree.Store(path, busy_timeout=0.4) as store:
        chat = store.session("s")
        chat.append(Message.user("hello"))
        # In a process of its own: this one must not open the file of a store.
        program = f"""
import sqlite3, sys, time
db = sqlite3.connect({str(path)!r}, isolation_level=None)
db.execute("BEGIN IMMEDIATE")
print("locked", flush=True)
sys.stdin.readline()
"""
        assert sqlite3.sqlite_version
        locker = subprocess.Popen(
            [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert locker.stdout is not None and locker.stdout.readline() == "locked\n"
        steps = 0
        raised: list[BaseException] = []

        def write() -> None:
            try:
                chat.append(Message.user("waits"))
            except BaseException as error:
                raised.append(error)

        writer = threading.Thread(target=write)
        writer.start()
        while writer.is_alive():
            steps += 1
            time.sleep(0.001)
        locker.communicate("\n")
        assert steps > 10
        (error,) = raised
        assert isinstance(error, talktree.BusyError) and isinstance(error, TimeoutError)
        assert error.waited_ms >= 400 and error.is_retryable


def interrupted(tmp_path: Path, call: str) -> subprocess.CompletedProcess[str]:
    """Runs a call in a program of its own, which gets a SIGINT after the call has begun."""
    program = f"""
import os, signal, threading, time, talktree
store = talktree.Store({str(tmp_path / "store.db")!r})
def later():
    time.sleep(0.5)
    os.kill(os.getpid(), signal.SIGINT)
threading.Thread(target=later, daemon=True).start()
begun = time.monotonic()
try:
    while time.monotonic() - begun < 30:
        {call}
    print("never")
except KeyboardInterrupt:
    print("interrupted")
print(len(store.session("s").recent(messages=3).messages))
store.close()
"""
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGINT for a process of its own")
@pytest.mark.parametrize(
    "call",
    [
        "store.search('word other -none')",
        "store.rebuild_search()",
        # A call whose callback runs in another thread.
        "store.verify(lambda done, total: time.sleep(0.2))",
    ],
)
def test_ctrl_c_ends_long_work_and_the_store_goes_on(tmp_path: Path, call: str) -> None:
    with talktree.Store(tmp_path / "store.db", durability="normal") as store:
        for _ in range(10):
            store.session("s").append_all([Message.user("word other " * 40) for _ in range(400)])
    done = interrupted(tmp_path, call)
    assert (done.stdout, done.stderr) == ("interrupted\n3\n", "")


def test_an_interrupt_handle_ends_work_in_another_thread(store: talktree.Store, tmp_path: Path) -> None:
    store.session("s").append(Message.user("x" * 2_000_000))
    with pytest.raises(talktree.InterruptedError) as caught:
        store.backup(tmp_path / "copy.db", lambda done, total: store.interrupt())
    assert caught.value.is_retryable
    assert not (tmp_path / "copy.db").exists()
    assert store.verify().damages == []


def test_a_signal_handler_that_raises_ends_a_long_call(store: talktree.Store) -> None:
    if sys.platform == "win32":
        pytest.skip("there is no SIGALRM")

    class Alarm(Exception):
        pass

    def ring(number: int, frame: object) -> None:
        raise Alarm

    store.session("s").append_all([Message.user("word " * 50) for _ in range(2_000)])
    before = signal.signal(signal.SIGALRM, ring)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.2)
        with pytest.raises(Alarm):
            while True:
                store.verify()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert store.verify().damages == []
