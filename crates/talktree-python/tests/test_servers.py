"""Stores on a PostgreSQL server, where `TALKTREE_TEST_POSTGRES` names one: `.ci/postgres just test-python`."""

from __future__ import annotations

import asyncio
import multiprocessing
from pathlib import Path

import pytest
import talktree
from talktree import Message, aio


def test_a_server_that_cannot_be_reached_is_an_error_without_the_password() -> None:
    url = "postgresql://bot:s3cret@127.0.0.1:1/chats"
    with pytest.raises(talktree.StorageError, match="error connecting to server") as raised:
        talktree.Store.connect(url)
    assert "s3cret" not in str(raised.value)

    async def main() -> None:
        with pytest.raises(talktree.StorageError, match="error connecting to server"):
            await aio.Store.connect(url)

    asyncio.run(main())


def test_what_is_no_url_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="must begin with postgresql://"):
        talktree.Store.connect(str(tmp_path / "bot.db"))
    with pytest.raises(ValueError, match="no read_only and no key"):
        talktree.Store.connect("postgresql://h/db", read_only=True)
    with pytest.raises(TypeError, match="url must be a str"):
        talktree.Store.connect(tmp_path)  # type: ignore[arg-type]
    assert not list(tmp_path.iterdir())
    with pytest.raises(ValueError, match="a URL, which `connect` takes") as raised:
        talktree.Store("postgresql://bot:s3cret@h/db")
    assert "s3cret" not in str(raised.value)


def test_both_faces_use_one_store(url: str) -> None:
    with talktree.Store.connect(url) as store:
        store.session("s").append(Message.user("Can we deploy on Friday?"))
        assert "postgresql" in repr(store)

    async def main() -> list[str]:
        async with await aio.Store.connect(url) as store:
            chat = await store.session("s")
            await chat.append(Message.user("Yes."))
            return [message.text for message in await chat.history()]

    assert asyncio.run(main()) == ["Can we deploy on Friday?", "Yes."]
    with talktree.Store.connect(url) as store:
        assert len(store.session("s").history()) == 2


def append_there(url: str) -> None:
    with talktree.Store.connect(url) as store:
        store.session("s").append(Message.user("from the child"))


def test_a_forked_child_connects_again(url: str) -> None:
    with talktree.Store.connect(url) as store:
        store.session("s").append(Message.user("from the parent"))
        child = multiprocessing.get_context("fork").Process(target=append_there, args=(url,))
        child.start()
        child.join(30)
        assert child.exitcode == 0
        assert len(store.session("s").history()) == 2
