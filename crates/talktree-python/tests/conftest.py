"""What the tests share: a store in a file, and a conversation in it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import talktree


@pytest.fixture
def store(tmp_path: Path) -> Iterator[talktree.Store]:
    with talktree.Store(tmp_path / "store.db") as store:
        yield store


@pytest.fixture
def chat(store: talktree.Store) -> talktree.Session:
    return store.session("s")
