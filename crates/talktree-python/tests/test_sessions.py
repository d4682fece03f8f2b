"""The verbs of a session: write, read, branch, move the head, label, delete, fork."""

from __future__ import annotations

import io
import itertools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

import anyio
import pytest
import talktree
from talktree import Message, aio


def say(chat: talktree.Session, text: str) -> str:
    return chat.append(Message.user(text)).id


def texts(messages: object) -> str:
    return " ".join(message.text for message in messages)  # type: ignore[attr-defined]


def test_the_five_lines_of_the_front_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    with talktree.Store("bot.db") as store:
        chat = store.session("telegram:4711")
        chat.append({"role": "user", "text": "Can we deploy on Friday?"})
        for hit in store.search("deploy friday", limit=5):
            print(hit.session, hit.snippet)
    assert capsys.readouterr().out == "telegram:4711 Can we **deploy** on **Friday**?\n"


def test_branches(chat: talktree.Session) -> None:
    question = say(chat, "colour?")
    red = chat.append(Message.assistant("red")).id
    cyan = chat.append_to(question, Message.assistant("cyan")).id
    assert texts(chat.branches(question)) == "red cyan"
    assert texts(chat.siblings(cyan)) == "red cyan"
    assert texts(chat.branches_page(question, after=red, limit=5)) == "cyan"
    assert sorted(chat.leaves()) == sorted([red, cyan])
    assert (chat.is_on_path(red), chat.is_ancestor(question, red)) == (False, True)
    latest = chat.latest_leaf()
    assert latest is not None and latest.id == cyan
    assert texts(chat.roots()) == "colour?"
    assert texts(chat.at(red).history()) == "colour? red"
    assert chat.at(red).leaf == red
    assert "o user" in chat.tree(ascii=True, whole=True)


#: The reads of a path.
READS: dict[str, Callable[[talktree.Path], object]] = {
    "history": lambda path: path.history(),
    "raw_history": lambda path: path.raw_history(),
    "recent": lambda path: path.recent(messages=2),
    "page": lambda path: path.page(limit=2),
    "row_stats": lambda path: path.row_stats(),
    "path_length": lambda path: path.path_length(),
    "iter": lambda path: list(path),
    "reversed": lambda path: list(reversed(path)),
    "window_usage": lambda path: path.window_usage(),
    "plan_compaction": lambda path: repr(path.plan_compaction()),
    "search": lambda path: path.search("colour red cyan secret").hits,
    "search_by_session": lambda path: path.search_by_session("colour red cyan secret").sessions,
    "search_alternatives": lambda path: path.search_alternatives("red role:user"),
    "usage": lambda path: path.usage(),
    "anthropic_request": lambda path: path.anthropic_request(),
    "openai_chat_request": lambda path: path.openai_chat_request(),
    "openai_responses_request": lambda path: path.openai_responses_request(),
    "export_markdown": lambda path: exported(path.export_markdown),
    "export_openai": lambda path: exported(path.export_openai),
}
#: Those that read the same of stored messages as of what a model sees.
OF_BOTH = {
    "raw_history",
    "row_stats",
    "path_length",
    "window_usage",
    "plan_compaction",
    "search",
    "search_by_session",
    "search_alternatives",
    "usage",
}


def exported(export: Callable[[BinaryIO], None]) -> bytes:
    file = io.BytesIO()
    export(file)
    return file.getvalue()


@pytest.mark.parametrize("name", READS)
def test_a_path_is_read_as_its_leaf_says_and_raw_or_not(name: str, chat: talktree.Session) -> None:
    read = READS[name]
    question = say(chat, "colour?")
    red = chat.append(talktree.Usage(output=5).put_in(Message.assistant("red"))).id
    chat.append_to(question, talktree.Usage(output=7).put_in(Message.assistant("cyan")))
    chat.add_compaction("They spoke.", question, say(chat, "more"))
    chat.append(Message.user("secret", hidden=True))
    head = chat.append(Message.user("go on")).id
    assert read(chat.path()) == read(chat.at(head)) != read(chat.at(red))
    assert read(chat.path().raw()) == read(chat.at(head).raw())
    assert (read(chat.path()) == read(chat.path().raw())) == (name in OF_BOTH)
    chat.checkout(red)
    assert read(chat.path()) == read(chat.at(red))


def test_the_head_moves_and_comes_back(chat: talktree.Session) -> None:
    question = say(chat, "colour?")
    red = say(chat, "red")
    chat.checkout(question)
    assert (chat.undo_head(), chat.head()) == (True, red)
    assert (chat.redo_head(), chat.head()) == (True, question)
    chat.checkout_start()
    assert chat.head() is None
    assert [entry.id for entry in chat.head_log()][-1] is None
    with pytest.raises(talktree.HeadMovedError) as caught:
        chat.append_if_head(red, Message.user("late"))
    assert (caught.value.expected, caught.value.found) == (red, None)
    assert caught.value.is_retryable
    assert chat.append_if_head(None, Message.user("second tree")).is_new
    assert len(chat.roots()) == 2


def test_chains(chat: talktree.Session) -> None:
    ids = [it.id for it in chat.append_all([Message.user("a"), Message.user("b"), Message.user("c")])]
    chat.append_all_to(ids[0], [Message.user("x"), Message.user("y")])
    assert texts(chat) == "a x y"
    chat.append_all_to(None, [Message.user("r")])
    assert texts(chat.history()) == "r"
    head = chat.head()
    chat.append_all_if_head(head, [Message.user("s")])
    assert chat.append_root(Message.user("t")).is_new
    assert texts(chat.all_messages()) == "a b c x y r s t"


def test_retry_and_edit(chat: talktree.Session) -> None:
    question = say(chat, "colour?")
    chat.append(Message.assistant("red"))
    assert (chat.question(), chat.retry()) == (question, question)
    chat.append(Message.assistant("cyan"))
    assert texts(chat.branches(question)) == "red cyan"
    chat.edit(question, Message.user("animal?"))
    assert texts(chat) == "animal?"


def events(*pieces: str) -> list[str]:
    """Returns the lines of a streamed answer."""
    said: list[dict[str, Any]] = [{"choices": [{"delta": {"content": piece}}]} for piece in pieces]
    said.append({"choices": [{"delta": {}, "finish_reason": "stop"}]})
    said.append({"choices": [], "usage": {"completion_tokens": 4}})
    return [*(line for event in said for line in (f"data: {json.dumps({'id': '1', **event})}", "")), "data: [DONE]"]


def test_a_reply_that_a_dead_process_left_is_in_no_request(tmp_path: Path) -> None:
    with talktree.Store(tmp_path / "store.db") as store:
        chat = store.session("s")
        chat.append(Message.user("Count."))
        left = chat.stream("openai_chat")
        assert left.push(events("One, " + "word " * 1_000)[0]) == left.text and not left.is_complete
    with pytest.raises(talktree.ClosedError):
        left.push("")
    with talktree.Store(tmp_path / "store.db") as store:
        chat = store.session("s")
        (fragment,) = chat.unfinished()
        assert fragment.is_unfinished and fragment.id == left.id and fragment.text == left.text
        assert (len(chat.history()), len(chat.raw_history())) == (1, 2)
        assert "One, " not in str(chat.openai_chat_request())

        reply = chat.stream("openai_chat")  # answers the same question
        assert "".join(reply.push(line) or "" for line in events("1, ", "2.")) == "1, 2."
        assert reply.is_complete
        answer = reply.finish()
        assert (answer.id, answer.text, reply.text) == (reply.id, "1, 2.", "1, 2.")
        stored = chat.message(answer.id)
        assert stored is not None and stored.parent == fragment.parent and not stored.is_unfinished
        used = talktree.Usage.of(stored)
        assert used is not None and used.output == 4 and chat.usage().answers == 1
        chat.discard(fragment.id)
        assert chat.unfinished() == [] and len(list(chat.all_messages())) == 2


def test_an_unfinished_message_is_settled_once(chat: talktree.Session) -> None:
    reply = chat.stream("anthropic")
    chat.finish(Message.assistant("4", id=reply.id))
    with pytest.raises(talktree.FinishedError) as caught:
        reply.discard()
    assert (caught.value.session, caught.value.id) == ("s", reply.id)
    for late in (chat.save, chat.finish):
        with pytest.raises(talktree.FinishedError):
            late(Message.assistant("5", id=reply.id))
    with pytest.raises(talktree.UnknownMessageError):
        chat.discard("nobody")
    with pytest.raises(ValueError, match="provider must be one of anthropic, openai_chat, openai_responses, not 'pi'"):
        chat.stream("pi")  # type: ignore[arg-type]


def test_a_stream_that_is_cut_stays_with_its_text(chat: talktree.Session) -> None:
    reply = chat.stream("openai_chat")
    for line in events("gre", "en")[:2]:
        reply.push(line)
    for _ in range(2):
        with pytest.raises(talktree.NoAnswerError):
            reply.finish()
    assert [message.text for message in chat.unfinished()] == [reply.text] == ["gre"]
    reply.discard()
    assert chat.unfinished() == [] and chat.head() is None
    whole = chat.stream("openai_chat")
    for line in events("gre", "en"):
        whole.push(line)
    assert whole.finish().text == "green"
    for again in (whole.finish, lambda: whole.push("")):
        with pytest.raises(ValueError, match="the reply was finished"):
            again()


def test_a_listener_may_ask_the_reply_that_it_hears_of(chat: talktree.Session) -> None:
    heard: list[str] = []

    def listener(event: talktree.Event) -> None:
        with pytest.raises(ValueError, match="another call is using it"):
            reply.push("")
        heard.append(reply.text)

    reply = chat.stream("openai_chat")
    keep = chat.subscribe(listener)
    for line in events("word " * 1_000)[:2]:
        reply.push(line)
    keep.close()
    assert heard == [""]


def test_update_and_upsert(chat: talktree.Session) -> None:
    assert chat.upsert(Message.assistant("4", id="m")).is_new
    assert chat.upsert(Message.assistant("The answer", id="m")) == talktree.Updated(False, True, [])
    assert chat.update(Message.assistant("The answer", id="m")).is_changed is False
    assert texts(chat) == "The answer"


def test_labels(chat: talktree.Session) -> None:
    first = say(chat, "draft")
    chat.label("best", first)
    assert chat.labelled("best") == first
    assert chat.labels() == [talktree.Label("best", first)]
    chat.unlabel("best")
    assert chat.labelled("best") is None


def test_deleting(chat: talktree.Session) -> None:
    a, b = say(chat, "a"), say(chat, "b")
    compaction = chat.add_compaction("a and b", a, b).id
    deleted = chat.delete(a)
    assert (deleted.messages, deleted.covered_by) == ([a], [compaction])
    assert texts(chat.raw_history()) == "b"
    with pytest.raises(talktree.UnknownMessageError):
        chat.delete(b, "nobody")
    chat.delete_branch(b)
    chat.clear()
    assert chat.raw_history() == []


def test_reads(chat: talktree.Session) -> None:
    chat.append_all([Message.user(str(n)) for n in range(250)])
    assert texts(itertools.islice(reversed(chat), 2)) == "249 248"
    assert len(list(chat)) == 250
    assert chat.path_length() == 250
    recent = chat.recent(messages=10)
    assert (len(recent.messages), recent.left_out) == (10, 240)
    assert len(chat.recent(tokens=50).messages) < 50 and len(chat.recent(bytes=100).messages) >= 1
    page = chat.page(limit=4)
    assert texts(page.messages) == "246 247 248 249" and page.after is None
    assert texts(chat.page(before=page.before, limit=2).messages) == "244 245"
    assert chat.row_stats()[0].role == "user"
    found = chat.message(page.messages[0].id)
    assert found is not None and found.text == "246"
    assert chat.message("nobody") is None
    with pytest.raises(TypeError, match="one of tokens, bytes and messages"):
        chat.recent()


def test_hidden_messages_are_only_in_the_raw_history(chat: talktree.Session) -> None:
    say(chat, "a")
    chat.append(Message.system("b", hidden=True))
    assert texts(chat.history()) == "a"
    assert texts(chat.path().raw().history()) == "a b"
    assert texts(chat.path().raw_history()) == "a b"
    assert texts(chat.path().raw()) == "a b"


def test_forks_have_details(store: talktree.Store, chat: talktree.Session) -> None:
    question = say(chat, "shall we?")
    say(chat, "no")
    fork = chat.fork(question, "what if", id="f")
    fork.append(Message.assistant("yes"))
    info = fork.info()
    assert info is not None
    assert (info.id, info.name, info.fork_point, info.parent_session) == ("f", "what if", question, "s")
    assert info.created_at.tzinfo is not None
    chat.set_details(talktree.SessionDetails(name="talk", tags=["a"], metadata={"n": 2**70}))
    details = chat.info()
    assert details is not None
    assert (details.name, details.tags, details.metadata) == ("talk", ["a"], {"n": 2**70})
    assert {it.id for it in store} == {"s", "f"}


def test_sessions_of_a_store(store: talktree.Store) -> None:
    created = store.create_session("first", id="one")
    with pytest.raises(talktree.SessionExistsError):
        store.create_session(talktree.SessionDetails(owner="ada"), id="one")
    store.rename("one", "renamed")
    (info,) = store.sessions()
    assert info.name == "renamed"
    store.remove("one")
    with pytest.raises(talktree.SessionRemovedError) as caught:
        created.append(Message.user("late"))
    assert caught.value.id == "one"
    assert store.session("new").info() is None


def test_importing_single_messages(chat: talktree.Session) -> None:
    assert chat.import_message(None, Message.user("a", id="a")) == "added"
    assert chat.import_message("a", Message.user("b", id="b")) == "added"
    assert chat.import_message("a", Message.user("b", id="b")) == "known"


def test_events(store: talktree.Store, chat: talktree.Session) -> None:
    heard: list[talktree.Event] = []
    with store.subscribe(heard.append), chat.subscribe(lambda event: heard.append(event)):
        id = say(chat, "hello")
    say(chat, "unheard")
    assert heard == [talktree.Event("s", "append", {"ids": [id]})] * 2


def test_a_store_opens_again_with_all_in_it(tmp_path: Path) -> None:
    path = tmp_path / "bot.db"
    with talktree.Store(path, durability="normal", busy_timeout=1.5, cache_kib=512, idle_readers=2) as store:
        say(store.session("s"), "hello")
        assert talktree.Store.is_open_file(path)
        with talktree.Store(path) as second:  # two stores on one file
            say(second.session("s"), "again")
        assert texts(store.session("s")) == "hello again"
    assert not talktree.Store.is_open_file(path)
    with talktree.Store(str(path), read_only=True) as store:
        assert texts(store.session("s")) == "hello again"
        with pytest.raises(talktree.ReadOnlyError):
            say(store.session("s"), "no")
    with talktree.Store(max_message_bytes=100) as small, pytest.raises(talktree.MessageTooLargeError) as caught:
        say(small.session("s"), "x" * 200)
    assert caught.value.max == 100


def test_tags_and_authors_of_messages(store: talktree.Store) -> None:
    group = store.session("group")
    ids = []
    for author in ("ann", "bob", "ann"):
        said = Message.user(f"{author} likes soup", metadata={"author": {"id": author}})
        ids.append(group.append(said).id)
    answer = Message.assistant("Soup it is.", metadata={"usage": {"input_tokens": 1, "output_tokens": 7}})
    group.append(answer)
    group.tag(ids[0], "spam")
    group.tag(ids[0], "seen")
    group.tag(ids[1], "spam")
    group.untag(ids[0], "seen")
    assert group.tags(ids[0]) == ["spam"] and [it.message for it in group.all_tags()] == ids[:2]
    assert [it.message.id for it in store.list_messages(tag="spam")] == ids[:2]
    first = store.list_messages(author="ann", limit=1)
    assert first.after is not None and [it.tags for it in first] == [["spam"]]
    rest = store.list_messages(author="ann", limit=1, after=first.after)
    assert [it.message.id for it in rest] == ids[2:] and rest.after is None
    assert [it.id for it in group.page(author="ann").messages] == [ids[0], ids[2]]
    assert [it.id for it in group.page(tag="spam", author="bob").messages] == [ids[1]]
    assert [it.id for it in store.search("soup", author="ann", tags=["spam"]).hits] == [ids[0]]
    assert [it.id for it in store.search("soup author:bob tag:spam").hits] == [ids[1]]
    bot = talktree.SessionManager(store)
    assert [it.id for it in bot.list(author="bob")] == ["group"] and list(bot.list(author="eve")) == []
    assert store.usage(author="ann").output == 7 and store.usage(author="bob").output == 0
    assert [it.group for it in store.usage(by="author")] == ["ann"]
    file = io.BytesIO()
    assert store.export_author("ann", file).messages == 2 and b"bob likes" not in file.getvalue()
    assert store.erase(authors=["ann"]).extent.messages == 2
    assert store.list_messages(author="ann").messages == []
    with pytest.raises(talktree.UnknownMessageError):
        group.tag("nothing", "spam")
    with pytest.raises(TypeError, match="tag must be"):
        store.list_messages(tag=1)  # type: ignore[arg-type]


def test_tags_and_authors_in_the_async_face() -> None:
    async def main() -> None:
        async with aio.Store() as store:
            group = await store.session("group")
            id = (await group.append(Message.user("soup", metadata={"author": {"id": "ann"}}))).id
            await group.tag(id, "spam")
            await group.tag(id, "seen")
            await group.untag(id, "seen")
            assert await group.tags(id) == ["spam"] and (await group.all_tags())[0].tag == "spam"
            assert len((await group.page(author="ann", tag="spam")).messages) == 1
            assert len((await store.list_messages(author="ann", tag="spam")).messages) == 1
            assert (await store.export_author("ann", io.BytesIO())).messages == 1
            assert (await store.usage(author="ann")).output == 0
            assert len((await aio.SessionManager(store).list(author="ann")).sessions) == 1
            assert (await store.erase(authors=["ann"])).extent.messages == 1

    anyio.run(main)
