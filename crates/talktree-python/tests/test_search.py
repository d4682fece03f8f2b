"""Search finds what was said, and says how."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest
import talktree
from talktree import Message


@pytest.fixture
def full(store: talktree.Store) -> talktree.Store:
    a = store.create_session(talktree.SessionDetails(name="Deployment", owner="ada"), id="a")
    a.append_all([Message.user("Can we deploy on Friday?"), Message.assistant("After the 备份, yes. Straße.")])
    b = store.create_session(talktree.SessionDetails(owner="bob"), id="b")
    b.append(Message.user("The red button deploys.", created_at=datetime(2020, 5, 1, tzinfo=timezone.utc)))
    return store


def test_hits_are_a_sequence(full: talktree.Store) -> None:
    found = full.search("deploy", limit=1)
    assert len(found) == 1 and found[0].session in ("a", "b") and found[:1] == found.hits
    hit = full.search("friday")[0]
    assert (hit.session, hit.role, hit.matched, hit.on_path, hit.under) == ("a", "user", "all", True, None)
    assert hit.created_at.tzinfo is not None
    start, end = hit.snippet.marks[0]
    assert hit.snippet.text[start:end] == "Friday"
    assert hit.snippet.marked("<b>", "</b>").endswith("<b>Friday</b>?")
    assert f"{hit.snippet}".endswith("**Friday**?")


def test_marks_count_characters(full: talktree.Store) -> None:
    hit = full.search("备份")[0]
    (start, end) = hit.snippet.marks[0]
    assert hit.snippet.text[start:end] == "备份"


def test_settings_narrow_a_search(full: talktree.Store) -> None:
    assert {hit.session for hit in full.search("deploy", sessions=["b"])} == {"b"}
    assert {hit.session for hit in full.search("deploy", owner="ada")} == {"a"}
    assert len(full.search("deploy", offset=1)) == len(full.search("deploy")) - 1
    now = datetime(2020, 5, 2, tzinfo=timezone.utc)
    assert [hit.session for hit in full.search("deploys yesterday", now=now)][0] == "b"
    assert [hit.session for hit in full.search("red after:2019-01-01 before:2021-01-01")] == ["b"]
    assert full.search("deploy", timeout=timedelta(seconds=30)).is_partial is False
    assert full.search('"deploy" -friday role:user', plain=True).hits is not None
    assert [hit.session for hit in full.search("deploy", exact=["on Fri", "?"])] == ["a"]


def test_paths_and_sessions_have_their_own_search(full: talktree.Store) -> None:
    chat = full.session("a")
    question = chat.history()[0].id
    chat.append_to(question, Message.assistant("Rather on Monday."))
    assert len(chat.search("backup straße 备份")) == 1
    for path in (chat.path(), chat.at(chat.head() or "")):
        assert (path.search("备份").hits, path.search_by_session("备份").sessions) == ([], [])
        assert [hit.on_path for hit in path.search("monday friday")] == [True, True]
        assert path.search_alternatives("备份 role:user") == []
    assert len(chat.search("备份", on_path=True)) == 0
    assert len(chat.at(question).search("friday")) == 1
    chat.append(Message.system("The backup is slow.", hidden=True))
    assert (len(chat.search("slow")), len(chat.search("slow", without_hidden=True))) == (1, 0)
    with pytest.raises(talktree.UnsupportedError):
        full.search("x", on_path=True)


def test_whole_sessions(full: talktree.Store) -> None:
    found = full.search_by_session("deploy friday")
    assert (found[0].session, found[0].name) == ("a", "Deployment")
    assert found[0].hits[0].session == "a"
    assert len(full.session("a").search_by_session("friday")) == 1


def test_alternatives(full: talktree.Store) -> None:
    assert full.search("deploy role:system").hits == []
    assert "for any role" in [it.widening for it in full.search_alternatives("deploy role:system")]


def test_steps_are_named(full: talktree.Store) -> None:
    assert full.search("fridya").steps == [{"written": "fridya", "searched": "friday", "hits": 1}]
    assert full.search("friday").steps == []


def test_the_index_is_brought_up_to_date_with_progress() -> None:
    # In a file, any of the first 16 appends indexes.
    with talktree.Store() as store:
        store.session("b").append(Message.user("A late owl."))
        seen: list[tuple[int, int]] = []
        store.index(lambda done, total: seen.append((done, total)))
        assert seen == [(0, 1), (1, 1)]
        assert len(store.search("owl")) == 1


def test_any_text_is_a_query(store: talktree.Store) -> None:
    for text in ["", '"', "(", "a AND", "-", "*", "role:", "\x00", "NEAR(", "😀"]:
        assert store.search(text).hits == []


def test_a_search_over_a_read_only_store(full: talktree.Store, tmp_path: Path) -> None:
    with talktree.Store(tmp_path / "store.db", read_only=True) as reader:
        assert len(reader.search("friday")) == 1
