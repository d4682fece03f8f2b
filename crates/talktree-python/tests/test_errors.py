"""Each error of the library has a class, with fields."""

from __future__ import annotations

import copy
import pickle
import re
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
import talktree
from talktree import Message, errors

#: A time of the year 0 in UTC.
TOO_EARLY = datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=5)))


def test_there_is_a_class_for_each_variant_of_the_library() -> None:
    source = Path(__file__).parents[3] / "src" / "error.rs"
    body = source.read_text().split("pub enum Error {")[1].split("\n}\n")[0]
    variants = set(re.findall(r"^    ([A-Z]\w+)(?: \{|,)", body, re.M))
    assert len(variants) > 40
    names = {"ImportFileError" if name == "Import" else f"{name}Error" for name in variants}
    classes = {name for name, it in vars(errors).items() if isinstance(it, type) and issubclass(it, errors.Error)}
    assert classes - names == {"Error", "ClosedError", "ForkedError"}
    assert names - classes == set()
    native = (Path(__file__).parents[1] / "src" / "error.rs").read_text()
    assert [name for name in variants if not re.search(rf"\b{name}\b", native)] == []
    assert all(getattr(talktree, name) is getattr(errors, name) for name in classes)


def test_the_predicates_are_those_of_the_library() -> None:
    source = (Path(__file__).parents[3] / "src" / "error.rs").read_text()
    for predicate in ("is_retryable", "is_refused", "is_unknown"):
        body = source.split(f"pub fn {predicate}(")[1].split("\n    }")[0]
        wanted = {f"{name}Error" for name in re.findall(r"Self::(\w+)", body)}
        classes = vars(errors).items()
        found = {
            name
            for name, it in classes
            if isinstance(it, type) and issubclass(it, errors.Error) and getattr(it, predicate)
        }
        assert found == wanted


def test_an_error_is_also_the_built_in_one_that_fits(chat: talktree.Session) -> None:
    with pytest.raises(KeyError) as caught:
        chat.checkout("nobody")
    assert str(caught.value) == 'session "s" has no message "nobody"'
    with pytest.raises(ValueError):
        chat.label("head", chat.append(talktree.Message.user("x")).id)


def test_an_error_can_be_pickled_and_copied() -> None:
    error = errors.UnknownMessageError("gone", session="s", id="m")
    for same in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
        assert (type(same), same.id, str(same)) == (errors.UnknownMessageError, "m", "gone")
    io = errors.IoError("no such file", path="x", errno=2)
    assert pickle.loads(pickle.dumps(io)).errno == 2


def test_a_file_that_is_no_store(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("not a store " * 100)
    with pytest.raises(talktree.NotAStoreError) as caught:
        talktree.Store(path)
    assert caught.value.path.endswith("notes.txt")
    with pytest.raises((OSError, talktree.Error)):
        talktree.Store(tmp_path / "missing" / "store.db")


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda store: talktree.Store(5), "path must be a str or a path, not int"),  # type: ignore[arg-type]
        (lambda store: store.session(5), "id must be a str, not int"),
        (lambda store: store.session("s", compact_after="many"), "compact_after must be of type int, not str"),
        (lambda store: store.session("s", compact_after=True), "compact_after must be of type int, not bool"),
        (lambda store: store.session("s", unknown=1), "there is no setting 'unknown'"),
        (lambda store: store.session("s", blocks=["soul"]), "blocks must be a dict of blocks by label, not list"),
        (lambda store: store.session("s", blocks={"soul": 5}), r"blocks\['soul'\] must be a Block or a str, not int"),
        (lambda store: store.session("s", summarizer="text"), "summarizer must be callable, not str"),
        (lambda store: store.session("s", on_error=5), "on_error must be callable, not int"),
        (lambda store: store.session("s", token_counter=len), "token_counter must be a TokenCounter"),
        (lambda store: store.session("s", compact_on=5), "compact_on must be an executor or callable, not int"),
        (lambda store: store.search(5), "text must be a str, not int"),
        (lambda store: store.search("x", limits=5), "there is no setting 'limits'"),
        (lambda store: store.search("x", sessions="abc"), "sessions must be an iterable of str, not str"),
        (lambda store: store.search("x", by_meaning="model"), r"by_meaning must have a name, which is a str, and a method embed"),
        (lambda store: store.embed(len), "embedder must have a name"),
        (lambda store: store.remove_embedding(5), "name must be a str, not int"),
        (lambda store: store.search("x", now="today"), "now must be a datetime, not str"),
        (lambda store: store.session("s").checkout(None), "id must be a str, not NoneType"),
        (lambda store: store.session("s").at(5), "leaf must be a str, not int"),
        (lambda store: store.session("s").commit("plan", "x"), "plan must be a CompactionPlan, not str"),
        (lambda store: store.subscribe(5), "listener must be callable, not int"),
        (lambda store: store.import_bytes("text"), "data must be bytes, not str"),
        (lambda store: store.create_session(5), "details must be SessionDetails or a str, not int"),
        (lambda store: talktree.SessionManager("store"), "store must be a talktree.Store, not str"),  # type: ignore[arg-type]
        (lambda store: talktree.Block.write(object()), r"provider must have a method get\(\)"),  # type: ignore[arg-type]
    ],
)
def test_a_wrong_type_is_a_type_error_that_names_the_argument(store: talktree.Store, call: object, says: str) -> None:
    with pytest.raises(TypeError, match=says):
        call(store)  # type: ignore[operator]


def test_wrong_choices_are_value_errors(store: talktree.Store) -> None:
    with pytest.raises(ValueError, match="durability must be"):
        talktree.Store(durability="some")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="session_search must be one of all, owner"):
        store.session("s", session_search="some")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="busy_timeout"):
        talktree.Store(busy_timeout=-1)


@pytest.mark.parametrize(
    ("call", "kind", "says"),
    [
        (lambda store, chat: chat.message(5), TypeError, "id must be a str, not int"),
        (lambda store, chat: chat.label("start", 5), TypeError, "id must be a str, not int"),
        (lambda store, chat: chat.page(before=5), TypeError, "before must be a str, not int"),
        (lambda store, chat: store.rename("s", 5), TypeError, "name must be a str, not int"),
        (lambda store, chat: chat.set_details("x"), TypeError, "details must be SessionDetails, not str"),
        (lambda store, chat: store.search("\ud800"), ValueError, "surrogates not allowed in text"),
        (lambda store, chat: store.search("x", owner="\ud800"), ValueError, "surrogates not allowed in owner"),
        (lambda store, chat: store.session("\ud800"), ValueError, "surrogates not allowed in id"),
        (lambda store, chat: store.search("x", limit=-1), ValueError, "limit must be between 0 and"),
        (lambda store, chat: store.search("x", offset="1"), TypeError, "offset must be an int, not str"),
        (lambda store, chat: chat.recent(messages=-1), ValueError, "messages must be between 0 and"),
        (lambda store, chat: chat.recent(tokens=2**64), ValueError, "tokens must be between 0 and"),
        (lambda store, chat: chat.page(limit=-1), ValueError, "limit must be between 0 and"),
        (lambda store, chat: chat.branches_page(None, limit=-1), ValueError, "limit must be between 0 and"),
        (lambda store, chat: talktree.SessionManager(store).list(limit=-1), ValueError, "limit must be between 0 and"),
        (lambda store, chat: store.search("x", now=TOO_EARLY), ValueError, "now: .* is out of range in UTC"),
        (lambda store, chat: Message.user("x", created_at=TOO_EARLY), ValueError, "created_at: .* is out of range in UTC"),
        (lambda store, chat: chat.append({"role": "user", "text": "x", "created_at": TOO_EARLY}), ValueError, "message: "),
    ],
)
def test_a_wrong_argument_is_named(
    store: talktree.Store, chat: talktree.Session, call: Any, kind: type[Exception], says: str
) -> None:
    with pytest.raises(kind, match=says):
        call(store, chat)
