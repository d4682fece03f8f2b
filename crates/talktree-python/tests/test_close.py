"""A closed store says so, also to a call that runs, and its file is free."""

from __future__ import annotations

import gc
import threading
import time
import weakref
from pathlib import Path

import pytest
import talktree
from talktree import Message


def test_everything_of_a_closed_store_says_so(tmp_path: Path) -> None:
    store = talktree.Store(tmp_path / "store.db")
    chat = store.session("s", summarizer=lambda prompt: "x")
    chat.append(Message.user("hello"))
    manager = talktree.SessionManager(store)
    stream = iter(chat)
    path = chat.path()
    subscription = store.subscribe(lambda event: None)
    store.close()
    store.close()
    assert store.closed and "(closed)" in repr(store)
    for call in (
        chat.history,
        chat.info,
        store.sessions,
        path.history,
        lambda: next(stream),
        lambda: manager.session("s"),
        lambda: store.search("x"),
        lambda: chat.append(Message.user("x")),
    ):
        with pytest.raises(talktree.ClosedError, match="the store is closed"):
            call()
    subscription.close()
    assert chat.id == "s"


def test_a_closed_file_can_be_used_by_others(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    with talktree.Store(path) as store:
        kept = store.session("s")
        kept.append(Message.user("hello"))
    assert not talktree.Store.is_open_file(path)
    assert not path.with_name("store.db-wal").exists()
    path.rename(tmp_path / "moved.db")


def test_without_close_the_last_handle_closes_the_file(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    chat = talktree.Store(path).session("s")
    chat.append(Message.user("hello"))  # the session keeps the store open
    assert talktree.Store.is_open_file(path)
    del chat
    gc.collect()
    assert not talktree.Store.is_open_file(path)


def test_closing_waits_for_a_call_that_runs(tmp_path: Path) -> None:
    inside, go_on, done = threading.Event(), threading.Event(), threading.Event()

    def listener(event: talktree.Event) -> None:
        inside.set()
        go_on.wait(10)

    store = talktree.Store(tmp_path / "store.db")
    keep = store.subscribe(listener)
    writer = threading.Thread(target=store.session("s").append, args=(Message.user("hello"),))
    writer.start()
    inside.wait(10)

    def close() -> None:
        store.close()
        done.set()

    closer = threading.Thread(target=close)
    closer.start()
    assert not done.wait(0.1)
    with pytest.raises(talktree.ClosedError):
        store.sessions()
    go_on.set()
    assert done.wait(10)
    writer.join()
    closer.join()
    keep.close()
    with talktree.Store(tmp_path / "store.db") as again:
        assert len(again.session("s").history()) == 1


def test_closing_ends_long_work_with_a_clear_error(tmp_path: Path) -> None:
    store = talktree.Store(tmp_path / "store.db")
    store.session("s").append(Message.user("x" * 2_000_000))
    raised: list[BaseException] = []
    begun = threading.Event()

    def progress(done: int, total: int) -> None:
        begun.set()
        time.sleep(0.2)

    def back_up() -> None:
        try:
            store.backup(tmp_path / "copy.db", progress)
        except BaseException as error:
            raised.append(error)

    thread = threading.Thread(target=back_up)
    thread.start()
    assert begun.wait(10)
    store.close()
    thread.join()
    assert [type(error) for error in raised] == [talktree.ClosedError]
    assert not (tmp_path / "copy.db").exists()


def test_a_callback_may_close_the_store(tmp_path: Path) -> None:
    store = talktree.Store(tmp_path / "store.db")
    chat = store.session("s")
    keep = store.subscribe(lambda event: store.close())
    assert chat.append(Message.user("hello")).is_new  # the write was committed
    with pytest.raises(talktree.ClosedError):
        chat.append(Message.user("more"))
    keep.close()


def test_a_callback_of_a_long_call_may_close_the_store(tmp_path: Path) -> None:
    store = talktree.Store(tmp_path / "store.db")
    store.session("s").append(Message.user("x" * 2_000_000))
    with pytest.raises(talktree.ClosedError):
        store.backup(tmp_path / "copy.db", lambda done, total: store.close())


def test_closing_frees_callbacks_that_refer_to_their_session(store: talktree.Store) -> None:
    class Bot:
        def __init__(self) -> None:
            self.chat = store.session("s", on_error=self.failed)

        def failed(self, error: BaseException) -> None: ...

    bot = Bot()
    gone = weakref.ref(bot)
    del bot
    store.close()
    gc.collect()
    assert gone() is None
