"""Erasing and retention: what is named is gone, what is kept is named; and the data of an owner."""

from __future__ import annotations

import io
import json
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import anyio
import pytest
import talktree
from talktree import Message, RetentionRule, SessionDetails, TranscriptKey, aio

SECRET = "The vault opens with 7-1-9-4."


def owned(store: talktree.Store, id: str, owner: str, text: str = "hello") -> str:
    return store.create_session(SessionDetails(owner=owner), id=id).append(Message.user(text)).id


def test_a_message_is_erased_and_its_copies_are_named(store: talktree.Store, tmp_path: Path) -> None:
    chat = store.session("s")
    secret = chat.append(Message.user(SECRET)).id
    answer = chat.append(Message.assistant("Noted.")).id
    copy = chat.fork(secret, "copy")
    extent = store.erasure_extent(messages={"s": [secret]}, with_forks=True)
    assert (extent.messages, extent.sessions) == (2, []) and len(chat.history()) == 2

    erased = store.erase(messages={"s": [secret]})
    assert (erased.extent.messages, erased.messages) == (1, [("s", secret)])
    assert erased.extent.copies_left == [talktree.ErasureCopies(copy.id, 1, [copy.history()[0].id], [], [])] and len(copy.history()) == 1
    assert erased.is_complete and "extent=" in repr(erased) and "native" not in repr(erased)
    assert [it.id for it in chat.raw_history()] == [answer]

    proof = store.erase(branches={copy.id: [copy.history()[0].id]}).prove()
    assert proof.found == 0 and proof.occurrences == [] and proof.sequences > 0 and proof.bytes > 0
    again = chat.append(Message.user(SECRET)).id
    chat.delete(again)
    assert store.erase(deleted=True).is_rewritten
    store.close()
    assert all(SECRET.encode() not in it.read_bytes() for it in tmp_path.iterdir())


def test_summaries_sessions_owners_keys_and_transcripts(store: talktree.Store) -> None:
    chat = store.session("s")
    ids = [chat.append(Message.user(f"{SECRET} {at}")).id for at in range(4)]
    summary = chat.add_compaction("The vault has numbers.", ids[0], ids[2])
    erased = chat.erase(ids[1])
    assert erased.extent.summaries_left == [talktree.ErasureSummary("s", f"compaction_{summary.id}")]
    assert store.erase(messages={"s": [ids[2]]}, with_summaries=True).extent.summaries == 1
    assert chat.compactions() == []

    owned(store, "a", "ann")
    key = TranscriptKey("p", "t")
    store.transcripts.owned_by("ann").append(key, [{"type": "user"}])
    store.transcripts.append(TranscriptKey("p", "other"), [{"type": "user"}])
    bot = talktree.SessionManager(store)
    bound = bot.resume("telegram:1", owner="bob")
    bound.append(Message.user("hi"))
    of_ann = store.erasure_extent(owners=["ann"], keep_items=True)
    assert (of_ann.sessions, of_ann.transcripts, of_ann.entries) == (["a"], [key], 1)
    assert bot.erase_owner("ann").extent == of_ann
    assert bot.erase_key("telegram:1").extent.sessions == [bound.id]
    assert bot.erase_session("s").extent.sessions == ["s"]
    assert store.erase(transcripts=[TranscriptKey("p", "other")]).extent.entries == 1
    assert store.sessions() == [] and store.transcripts.list() == []
    assert store.finish_erasure() and not store.has_unfinished_erasure() and store.verify().damages == []


def test_an_erased_session_may_be_kept_from_coming_back(store: talktree.Store) -> None:
    chat = store.session("s")
    chat.append(Message.user("hello"))
    seen: list[tuple[int, int]] = []
    store.erase(sessions=["s"], forbid_import=True, keep_totals=True, progress=lambda *at: seen.append(at))
    assert seen and store.is_import_forbidden("s") and not store.is_import_forbidden("other")
    with pytest.raises(talktree.SessionErasedError):
        store.session("s").import_message(None, Message.user("hello"))
    with pytest.raises(talktree.SessionRemovedError):
        chat.append(Message.user("more"))


@pytest.mark.parametrize(
    ("what", "kind", "says"),
    [
        ({"sessions": ["nobody"]}, talktree.UnknownSessionError, "nobody"),
        ({"messages": {"s": ["nobody"]}}, talktree.UnknownMessageError, "nobody"),
        ({"sessions": "s"}, TypeError, "sessions must be an iterable of str, not str"),
        ({"messages": ["m"]}, TypeError, "messages must be a dict of ids by session, not list"),
        ({"messages": {"s": "m"}}, TypeError, r"messages\['s'\] must be an iterable of str"),
        ({"transcripts": ["t"]}, TypeError, "key must be a TranscriptKey, not str"),
        ({"session": "s"}, TypeError, "there is no setting 'session'"),
    ],
)
def test_what_cannot_be_erased_is_refused(
    store: talktree.Store, what: Any, kind: type[Exception], says: str
) -> None:
    store.session("s").append(Message.user("hello"))
    for call in (store.erase, store.erasure_extent):
        with pytest.raises(kind, match=says):
            call(**what)
    assert len(store.session("s").history()) == 1


def test_a_store_in_memory_proves_nothing_and_a_closed_one_neither(tmp_path: Path) -> None:
    memory = talktree.Store()
    memory.session("s").append(Message.user(SECRET))
    with pytest.raises(talktree.UnsupportedError):
        memory.erase(sessions=["s"]).prove()
    store = talktree.Store(tmp_path / "store.db")
    store.session("s").append(Message.user(SECRET))
    erased = store.erase(sessions=["s"])
    store.close()
    with pytest.raises(talktree.ClosedError):
        erased.prove()


def test_rules_discard_what_meets_them(store: talktree.Store) -> None:
    for at in range(4):
        owned(store, f"s{at}", "ann" if at % 2 else "bob")
    bot = talktree.SessionManager(store)
    bot.pin("s0")
    rules = [
        RetentionRule("newest", owner="bob", keep_sessions=1, action="remove"),
        RetentionRule("of ann", owner="ann", action="erase"),
        RetentionRule("idle", idle_for=timedelta(days=90)),
    ]
    assert store.retention([rules[2]]).sessions == []
    later = datetime.now(timezone.utc) + timedelta(days=91)
    expected = store.retention(rules[:2], dry_run=True)
    assert [(it.rule, it.action, it.sessions) for it in expected.rules] == [("newest", "remove", 0), ("of ann", "erase", 2)]
    assert store.retention([rules[2]], dry_run=True, allow_all=True, as_of=later).rules[0].sessions == 3
    seen: list[tuple[int, int]] = []
    report = bot.retention(rules[:2], progress=lambda *at: seen.append(at))
    assert seen and [it.id for it in report.sessions] == [it.id for it in expected.sessions] == ["s3", "s1"]
    assert report.sessions[0].owner == "ann" and report.sessions[0].last_message_at is not None
    assert sorted(it.id for it in store) == ["s0", "s2"]
    bot.delete("s2")
    trash = store.retention(empty_trash_after=timedelta(days=1), as_of=later)
    assert [(it.rule, it.sessions) for it in trash.rules] == [("trash", 1)] and len(store.sessions()) == 1


@pytest.mark.parametrize(
    ("rules", "kind", "says"),
    [
        ([RetentionRule("all", idle_for=0)], talktree.RuleMeetsAllError, "all"),
        ([RetentionRule("empty")], talktree.InvalidValueError, "it has no condition"),
        ([], talktree.InvalidValueError, "there is no rule"),
        ([RetentionRule("x", idle_for=-1)], ValueError, "idle_for"),
        ([RetentionRule("x", keep_sessions=1, keep_bytes=1)], ValueError, "a rule has one total"),
        ([RetentionRule("x", model="m", action="burn")], ValueError, "action must be trash, remove or erase"),  # type: ignore[arg-type]
        (RetentionRule("x", model="m"), TypeError, "rules must be an iterable"),
        (["x"], TypeError, r"rules\[0\] must be a RetentionRule, not str"),
    ],
)
def test_rules_that_may_be_a_mistake_are_refused(
    store: talktree.Store, rules: Any, kind: type[Exception], says: str
) -> None:
    store.session("s").append(Message.user("hello"))
    with pytest.raises(kind, match=says):
        store.retention(rules)
    with pytest.raises(TypeError, match="there is no setting 'dry'"):
        store.retention(rules, dry=True)  # type: ignore[call-arg]
    assert len(store.sessions()) == 1


def test_the_data_of_an_owner(store: talktree.Store, tmp_path: Path) -> None:
    owned(store, "a", "ann", "I am Ann.")
    owned(store, "b", "bob", "I am Bob.")
    store.transcripts.owned_by("ann").append(TranscriptKey("p", "t"), [{"type": "user", "uuid": "1"}])
    written = store.export_owner("ann", tmp_path / "ann.jsonl")
    assert (written.sessions, written.messages, written.transcripts, written.entries) == (1, 1, 1, 1)
    lines = [json.loads(line) for line in (tmp_path / "ann.jsonl").read_text().splitlines()]
    assert lines[0]["format"] == "talktree-owner" and lines[-1]["type"] == "end"
    assert "I am Ann." in str(lines) and "Bob" not in str(lines)
    page = io.BytesIO()
    store.export_owner("bob", page, format="markdown")
    assert "# Data of bob" in page.getvalue().decode()
    with pytest.raises(ValueError, match="format must be"):
        store.export_owner("bob", page, format="html")  # type: ignore[arg-type]
    with pytest.raises(talktree.InvalidValueError, match="the file of an open store"):
        store.export_owner("ann", tmp_path / "store.db")


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_the_async_face(backend: str, tmp_path: Path) -> None:
    async def main() -> None:
        async with aio.Store(tmp_path / "store.db") as store:
            chat = await store.session("s")
            secret = (await chat.append(Message.user(SECRET))).id
            assert (await store.erasure_extent(sessions=["s"])).messages == 1
            erased = await chat.erase(secret)
            assert erased.messages == [("s", secret)] and (await erased.prove()).found == 0
            assert (await erased.scan()).texts == (await erased.prove()).texts
            bot = aio.SessionManager(store)
            assert (await bot.erase_owner("nobody")).extent.sessions == []
            assert (await bot.erase_session("s")).extent.sessions == ["s"]
            assert (await store.retention([RetentionRule("r", tag="x")], dry_run=True)).sessions == []
            assert (await store.export_owner("nobody", io.BytesIO())).sessions == 0
            assert await store.finish_erasure()

    anyio.run(main, backend=backend)
