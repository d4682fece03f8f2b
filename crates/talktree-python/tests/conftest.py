"""What the tests share: a store in a file, and a conversation in it."""

from __future__ import annotations

import os
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
import talktree

# For `generated`.
sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture
def store(tmp_path: Path) -> Iterator[talktree.Store]:
    with talktree.Store(tmp_path / "store.db") as store:
        yield store


@pytest.fixture
def url() -> str:
    """A new store on the server that `TALKTREE_TEST_POSTGRES` names: `.ci/postgres just test-python`."""
    server = os.environ.get("TALKTREE_TEST_POSTGRES")
    if not server:
        pytest.skip("there is no server")
    return f"{server}schema=t{uuid.uuid4().hex}"


@pytest.fixture
def chat(store: talktree.Store) -> talktree.Session:
    return store.session("s")
