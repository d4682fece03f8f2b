"""Runs the session tests of the OpenAI Agents SDK with `talktree.openai.Session` in the place of its `SQLiteSession`.

    pip download --no-deps --no-binary :all: openai-agents==0.24.0 && tar xzf openai_agents-*.tar.gz
    pip install pytest-asyncio pytest-mock inline-snapshot httpx
    python tests/run_openai_sdk_tests.py openai_agents-0.24.0 [arguments of pytest]

Tests of what is only inside `SQLiteSession` (its connections, its tables, its files) are left out, by name.
"""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import Any

import agents
import agents.memory
import agents.memory.sqlite_session
import pytest
from talktree import openai

#: Files that use `SQLiteSession` as a session; the others test sessions of other kinds.
FILES = [
    "memory/test_session.py",
    "memory/test_session_limit.py",
    "memory/test_session_persistence_sanitize.py",
    "memory/test_compaction_model_visibility.py",
    "memory/test_openai_responses_compaction_session.py",
    "test_agent_runner.py",
    "test_agent_runner_streamed.py",
    "test_max_turns.py",
    "test_native_tool_failure_history.py",
    "test_programmatic_tool_calling.py",
    "test_run_impl_resume_paths.py",
    "test_soft_cancel.py",
    "test_tool_batch_failure_history.py",
    "test_tool_failure_boundaries.py",
]

#: What tests do to the inside of `SQLiteSession`: its connections and threads, its tables, its helper for mutations.
INSIDE = re.compile(
    r"worker_threads?|connection|corrupt|await_mutation|file_lock|releases_write_lock|rolls_back|post_commit|closed_rejects"
    r"|settled_(pop|clear)_failure|after_cancelled_compaction_commits"
)


class Session(openai.Session):
    """A session with the arguments of `SQLiteSession`."""

    def __init__(
        self, session_id: str, db_path: str | Path = ":memory:", *tables: str, session_settings: Any = None, **rest: Any
    ) -> None:
        path = None if str(db_path) == ":memory:" else os.fspath(db_path)
        super().__init__(session_id, path, session_settings=session_settings)

    def close(self) -> None:  # type: ignore[override]
        """Closes the store, as `SQLiteSession` does: not in a coroutine."""
        if self._store._opened is not None:
            self._store._opened.close()


class LeaveOut:
    """Leaves out the tests of the inside."""

    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        left_out = [item for item in items if INSIDE.search(item.name)]
        items[:] = [item for item in items if item not in left_out]
        config.hook.pytest_deselected(items=left_out)
        for item in left_out:
            print("left out:", item.name)


def main(checkout: Path, arguments: list[str]) -> int:
    """Runs the tests of a folder with the source of the SDK; returns the exit code of pytest."""
    for module in (agents, agents.memory, agents.memory.sqlite_session):
        setattr(module, "SQLiteSession", Session)
    os.environ.setdefault("OPENAI_API_KEY", "none")
    os.chdir(checkout)
    sys.path.insert(0, os.fspath(checkout))
    files = [str(Path("tests", file)) for file in FILES if Path("tests", file).exists()]
    return int(pytest.main([*files, "-q", "-p", "no:cacheprovider", *arguments], plugins=[LeaveOut()]))


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]).resolve(), sys.argv[2:]))
