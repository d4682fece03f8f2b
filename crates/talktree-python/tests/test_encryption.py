"""Encrypted stores, where the package was built with its feature `sqlcipher`; elsewhere a key is a clear error."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
import talktree
from talktree import Message, aio

KEY, OTHER = bytes(range(32)), bytes(32)


def can_encrypt() -> bool:
    try:
        talktree.Store(key=KEY).close()
    except talktree.UnsupportedError:
        return False
    return True


ENCRYPTS = can_encrypt()


@pytest.mark.skipif(ENCRYPTS, reason="this build can encrypt")
def test_a_build_without_the_feature_says_so(tmp_path: Path, store: talktree.Store) -> None:
    with pytest.raises(talktree.UnsupportedError, match="built without its feature sqlcipher"):
        talktree.Store(tmp_path / "secret.db", key=KEY)
    assert not (tmp_path / "secret.db").exists()
    with pytest.raises(talktree.UnsupportedError, match="built without its feature sqlcipher"):
        store.rekey(KEY)


@pytest.mark.skipif(not ENCRYPTS, reason="this build cannot encrypt: `just test-python --sqlcipher` makes one that can")
def test_a_store_with_a_key(tmp_path: Path) -> None:
    path, calls = tmp_path / "secret.db", []

    def read_key() -> bytes:
        calls.append("read")
        return KEY

    with talktree.Store(path, key=read_key) as store:
        store.session("s").append(Message.user("The vault opens with 7-1-9-4."))
    assert calls == ["read"] and b"vault" not in path.read_bytes()
    for wrong in ({}, {"key": OTHER}):
        with pytest.raises(talktree.WrongKeyError):
            talktree.Store(path, **wrong)  # type: ignore[arg-type]
    with talktree.Store(path, key=KEY) as store:
        store.rekey(OTHER)
        assert len(store.session("s").history()) == 1

    async def main() -> None:
        async with aio.Store(path, key=OTHER) as again:
            await again.rekey(lambda: KEY)

    asyncio.run(main())
    with talktree.Store(path, key=KEY, read_only=True) as store:
        assert len(store.session("s").history()) == 1
    with talktree.Store(tmp_path / "plain.db") as plain, pytest.raises(talktree.UnsupportedError):
        plain.rekey(KEY)


def fails() -> bytes:
    raise LookupError("no key in the key store")


@pytest.mark.parametrize(
    ("key", "kind", "says"),
    [
        (b"short", ValueError, "key must have 32 bytes, not 5"),
        ("text" * 8, TypeError, "key must be bytes or a function that returns bytes, not str"),
        (lambda: None, TypeError, "key must be bytes or a function that returns bytes, not NoneType"),
        (fails, LookupError, "no key in the key store"),
    ],
)
def test_what_is_no_key(tmp_path: Path, key: Any, kind: type[Exception], says: str) -> None:
    with pytest.raises(kind, match=says):
        talktree.Store(tmp_path / "secret.db", key=key)
    assert not (tmp_path / "secret.db").exists()
