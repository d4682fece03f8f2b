"""Summaries replace old messages in what a model sees, by hand, with a plan, or by themselves."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import talktree
from talktree import (
    CompactionOptions,
    CompactionWindow,
    Message,
    Nothing,
    RangeSummary,
    Summary,
)

ALL = CompactionOptions(keep_recent_tokens=0)


def words(count: int) -> list[Message]:
    return [Message.user("word " * 50) for _ in range(count)]


def test_what_is_missing_is_named_as_an_argument_here(store: talktree.Store, chat: talktree.Session) -> None:
    with pytest.raises(talktree.NoSummarizerError) as caught:
        store.session("s", compact_after=1_000)
    assert "`summarizer`" in str(caught.value) and "`compaction_policy`" in str(caught.value)
    chat.append_all(words(2))
    chat.compact_and_split("They said words.")
    errors: list[talktree.Error] = [caught.value]
    for call in (
        lambda: talktree.SessionManager(store, compact_after=1_000),
        lambda: chat.compact_and_split("Again."),
        lambda: talktree.Store(":memory:"),
        lambda: store.search("words", on_path=True),
    ):
        with pytest.raises(talktree.Error) as refused:
            call()
        errors.append(refused.value)
    assert [str(error) for error in errors if "::" in str(error) or "builder" in str(error)] == []


def test_by_hand(chat: talktree.Session) -> None:
    first, _, last = (it.id for it in chat.append_all(words(3)))
    chat.append(Message.user("now"))
    added = chat.add_compaction("They said words.", first, last, details={"by": "hand"})
    assert added.is_shown
    assert [message.text for message in chat.history()] == ["They said words.", "now"]
    assert len(chat.raw_history()) == 4
    (one,) = chat.compactions()
    assert (one.first, one.last, one.count, one.details, one.nested) == (first, last, 3, {"by": "hand"}, [])
    assert chat.compaction(one.id) == one
    assert len(chat.expand(one.id)) == len(chat.expand_raw(one.id)) == 3
    outer = chat.add_compaction("Words and now.", first, str(chat.head()))
    assert chat.compaction_status(one.id) == talktree.CompactionStatus("under", outer.id)
    chat.checkout(first)
    assert chat.compaction_status(outer.id).status == "off_path"
    chat.remove_compaction(outer.id)
    with pytest.raises(talktree.UnknownCompactionError):
        chat.compaction(outer.id)
    with pytest.raises(talktree.SummaryRefusedError):
        chat.add_compaction(" ", first, last)


def test_with_a_plan(chat: talktree.Session) -> None:
    nothing = chat.plan_compaction(ALL)
    assert isinstance(nothing, Nothing) and not nothing and "0 messages" in str(nothing)
    chat.append_all(words(9))
    plan = chat.plan_compaction(ALL)
    assert isinstance(plan, talktree.CompactionPlan)
    assert (plan.messages, plan.summaries) == (4, []) and "word" in plan.prompt
    assert plan.usage.total == chat.window_usage().total
    assert plan.expected_total < chat.window_usage().total
    done = chat.commit(plan, Summary("They said words.", model="small", details=[1]))
    assert done.is_shown and done.tokens_after < done.tokens_before
    assert chat.compaction(done.id).model == "small"
    with pytest.raises(talktree.StaleError):
        chat.commit(plan, "again")
    assert chat.path().plan_compaction(ALL) is not None


def test_by_the_summarizer(store: talktree.Store) -> None:
    chat = store.session("s", summarizer=lambda prompt: "They said words.", compaction_options=ALL)
    assert not chat.compact()
    chat.append_all(words(9))
    done = chat.compact()
    assert isinstance(done, talktree.Compacted) and done.messages == 4
    with pytest.raises(talktree.NoSummarizerError):
        store.session("other").compact()


def test_by_an_async_summarizer(store: talktree.Store) -> None:
    async def summarizer(prompt: str) -> str:
        return "They said words."

    chat = store.session("s", summarizer=summarizer, compaction_options=ALL)
    chat.append_all(words(9))
    assert chat.compact()


def test_a_summarizer_may_decline(store: talktree.Store) -> None:
    chat = store.session("s", summarizer=lambda prompt: None, compaction_options=ALL)
    chat.append_all(words(9))
    assert isinstance(chat.compact(), Nothing)


def test_automatically(store: talktree.Store) -> None:
    chat = store.session(
        "s", summarizer=lambda prompt: "They said words.", compact_after_history=1_000
    )
    events: list[str] = []
    with chat.subscribe(lambda event: events.append(event.change)):
        for message in words(40):
            chat.append(message)
    assert chat.visible_tokens() <= 1_000 and "compact" in events
    assert chat.request_tokens().total == chat.visible_tokens()


def test_on_an_executor(store: talktree.Store) -> None:
    inside, go_on = threading.Event(), threading.Event()

    def summarizer(prompt: str) -> str:
        inside.set()
        go_on.wait(10)
        return "They said words."

    with ThreadPoolExecutor(1) as pool:
        chat = store.session("s", summarizer=summarizer, compact_after=500, compact_on=pool)
        chat.append_all(words(20))
        assert inside.wait(10)
        chat.append(Message.user("not held up"))
        assert len(chat.history()) == 21
        go_on.set()
    assert chat.visible_tokens() <= 500 + 20


def test_on_a_callable(store: talktree.Store) -> None:
    jobs: list[Callable[[], None]] = []
    chat = store.session("s", summarizer=lambda prompt: "x", compact_after=500, compact_on=jobs.append)
    chat.append_all(words(20))
    (job,) = jobs
    assert len(chat.history()) == 20
    job()
    assert chat.visible_tokens() <= 500
    job()  # once


def test_a_job_that_is_dropped_is_told_to_the_handler(store: talktree.Store) -> None:
    heard: list[BaseException] = []
    chat = store.session(
        "s", summarizer=lambda prompt: "x", compact_after=500, compact_on=lambda job: None, on_error=heard.append
    )
    chat.append_all(words(20))
    (error,) = heard
    assert isinstance(error, talktree.CallbackError) and "dropped a compaction" in error.why


def test_a_job_after_the_store_was_closed_does_nothing(tmp_path: Path) -> None:
    jobs: list[Callable[[], None]] = []
    with talktree.Store(tmp_path / "store.db") as store:
        chat = store.session("s", summarizer=lambda prompt: "x", compact_after=500, compact_on=jobs.append)
        chat.append_all(words(20))
    assert not talktree.Store.is_open_file(tmp_path / "store.db")
    jobs[0]()


def test_by_a_policy(store: talktree.Store) -> None:
    def policy(window: CompactionWindow) -> RangeSummary | None:
        assert len(window.messages) == len(window.tokens) and window.usage.total == sum(window.tokens)
        assert window.suggested is not None and window.prompt is not None and window.threshold is None
        return RangeSummary(window.messages[0].id, window.messages[4].id, Summary("Five.", model="mine"))

    chat = store.session("s", compaction_policy=policy)
    chat.append_all([Message.user("word " * 5_000) for _ in range(12)])
    assert chat.compact()
    assert chat.history()[0].text == "Five."


def test_branch_summaries_and_splits(store: talktree.Store) -> None:
    chat = store.session("s", summarizer=lambda prompt: "They tried red.")
    start = chat.append(Message.user("colour?")).id
    chat.append_all(words(3))
    plan = chat.plan_branch_summary(start)
    assert plan is not None and plan.messages == 3 and plan.to_id == start and plan.prompt and plan.tokens > 0
    chat.checkout_with_summary(plan, "They said words.")
    assert chat.history()[-1].text == "They said words."
    chat.append_all(words(3))
    summary = chat.checkout_summarized(start)
    assert summary is not None and chat.head() == summary
    next = chat.compact_and_split("All of it.", id="next")
    assert next.id == "next" and next.history()[0].text == "All of it."
    unnamed = next.compact_and_split("All of that.")
    assert unnamed.id not in ("s", "next") and unnamed.history()[0].text == "All of that."


def test_a_program_may_end_with_jobs_that_wait_and_one_that_runs(tmp_path: Path) -> None:
    program = f"""
import talktree, time, threading
from concurrent.futures import ThreadPoolExecutor
store = talktree.Store({str(tmp_path / "store.db")!r})
pool = ThreadPoolExecutor(1)
def summarizer(prompt):
    time.sleep(0.3)
    return "They said words."
def daemon(job):
    threading.Thread(target=job, daemon=True).start()
chats = [store.session(f"s{{n}}", summarizer=summarizer, compact_after=500, compact_on=on) for n, on in enumerate([pool, pool, daemon])]
for chat in chats:
    chat.append_all([talktree.Message.user("word " * 50) for _ in range(20)])
print("end")
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.stderr, done.returncode) == ("end\n", "", 0)
    with talktree.Store(tmp_path / "store.db") as store:
        assert store.verify().damages == []
        assert len(store.session("s0").compactions()) >= 1  # the pool finished its work
