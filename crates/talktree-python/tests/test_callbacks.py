"""What a callback raises reaches the caller or the error handler as it was raised; callbacks may call back."""

from __future__ import annotations

import sys
import traceback
from pathlib import Path

import pytest
import talktree
from talktree import Block, CompactionOptions, Message, TokenCounter


class Mine(Exception):
    """An exception of the program."""


def words(count: int) -> list[Message]:
    return [Message.user("word " * 50) for _ in range(count)]


def places(error: BaseException) -> list[str]:
    return [frame.name for frame in traceback.extract_tb(error.__traceback__)]


def test_an_exception_of_a_summarizer_reaches_the_caller(store: talktree.Store) -> None:
    mine = Mine("out of credit")

    def summarizer_of_mine(prompt: str) -> str:
        raise mine

    chat = store.session("s", summarizer=summarizer_of_mine, compaction_options=CompactionOptions(keep_recent_tokens=0))
    chat.append_all(words(9))
    with pytest.raises(Mine) as caught:
        chat.compact()
    assert caught.value is mine
    assert "summarizer_of_mine" in places(mine)


def test_an_exception_of_automatic_compaction_reaches_the_handler(store: talktree.Store) -> None:
    mine = Mine("out of credit")
    heard: list[BaseException] = []

    def summarizer_of_mine(prompt: str) -> str:
        raise mine

    chat = store.session("s", summarizer=summarizer_of_mine, compact_after=300, on_error=heard.append)
    assert len(chat.append_all(words(9))) == 9
    assert heard == [mine] and "summarizer_of_mine" in places(mine)


def test_a_wrong_answer_of_a_summarizer_says_what_it_is(store: talktree.Store) -> None:
    chat = store.session("s", summarizer=lambda prompt: 5, compaction_options=CompactionOptions(keep_recent_tokens=0))  # type: ignore[arg-type,return-value]
    chat.append_all(words(9))
    with pytest.raises(TypeError, match="what the summarizer returns must be a str or a Summary, not int"):
        chat.compact()


def test_an_exception_of_a_listener_reaches_the_handler(store: talktree.Store) -> None:
    mine, heard = Mine("no"), list[BaseException]()

    def listener(event: talktree.Event) -> None:
        raise mine

    with store.subscribe(listener):
        assert store.session("s", on_error=heard.append).append(Message.user("x")).is_new
    assert heard == [mine] and "listener" in places(mine)


def test_a_listener_is_called_inside_of_seven_others_at_most(store: talktree.Store) -> None:
    heard: list[talktree.Event] = []
    errors: list[BaseException] = []
    chat = store.session("s", on_error=errors.append)

    def listener(event: talktree.Event) -> None:
        heard.append(event)
        if len(heard) < 20:
            chat.append(Message.user("again"))

    with store.subscribe(listener):
        chat.append(Message.user("first"))
    # As the documentation of `subscribe` says.
    assert (len(heard), len(chat.history())) == (8, 9)
    assert [str(error) for error in errors] == [
        "a listener failed: it was not called: 8 callbacks call each other already"
    ]


def test_without_a_handler_it_goes_to_the_hook_of_the_interpreter(
    store: talktree.Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine, seen = Mine("no"), list[object]()
    monkeypatch.setattr(sys, "unraisablehook", lambda unraisable: seen.append(unraisable.exc_value))

    def listener(event: talktree.Event) -> None:
        raise mine

    with store.subscribe(listener):
        store.session("s").append(Message.user("x"))
        assert seen == [mine]
        with store.subscribe(lambda event: None):
            pass


def test_nothing_is_printed_for_a_callback_that_raises(
    store: talktree.Store, capfd: pytest.CaptureFixture[str]
) -> None:
    def listener(event: talktree.Event) -> None:
        raise Mine

    with store.subscribe(listener):
        store.session("s", on_error=lambda error: None).append(Message.user("x"))
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit])
def test_what_ends_a_program_is_raised_by_the_call_and_the_write_stays(
    store: talktree.Store, kind: type[BaseException]
) -> None:
    def listener(event: talktree.Event) -> None:
        raise kind

    chat = store.session("s", on_error=lambda error: None)
    with store.subscribe(listener), pytest.raises(kind):
        chat.append(Message.user("x"))
    assert len(chat.history()) == 1


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit])
def test_what_ends_a_program_is_no_result_of_a_tool(chat: talktree.Session, kind: type[BaseException]) -> None:
    def raises() -> str:
        raise kind

    run: list[str] = []
    changes: list[talktree.Event] = []

    def tools(call: talktree.ToolCall) -> str:
        run.append(call.id)
        if call.id == "b" and run.count("b") == 1:
            raise kind
        return call.id

    single = Message.new("assistant", [talktree.tool_call("raises", "x", {})])
    chat.append(single)
    with chat.subscribe(changes.append), pytest.raises(kind):
        chat.tools.answer(single, {"raises": raises})
    assert changes == []
    assert [message.id for message in chat.history()] == [single.id]

    several = Message.new("assistant", [talktree.tool_call("tool", id, {}) for id in "abc"])
    chat.append(several)
    with chat.subscribe(changes.append), pytest.raises(kind):
        chat.tools.answer(several, tools)
    # At no time is there a result of a call that has none.
    assert [event.change for event in changes] == ["append"]
    assert run == ["a", "b"] and [part["toolCallId"] for part in chat.history()[-1]["parts"]] == ["a"]
    assert chat.tools.answer(several, tools) is not None
    assert run == ["a", "b", "b", "c"]
    stored = [part["output"] for message in chat.history() if message.role == "tool" for part in message["parts"]]
    assert stored == ["a", "b", "c"]


def test_an_exception_of_a_token_counter_reaches_the_handler(store: talktree.Store) -> None:
    mine, heard = Mine("no"), list[BaseException]()

    def count(text: str) -> float:
        raise mine

    chat = store.session("s", token_counter=TokenCounter("mine", count), on_error=heard.append)
    chat.append(Message.user("hello"))
    assert chat.visible_tokens() > 0  # the estimate
    assert mine in heard


def test_a_token_counter_counts(store: talktree.Store) -> None:
    chat = store.session("s", token_counter=TokenCounter("chars", len))
    chat.append(Message.user("x" * 100))
    assert 100 <= chat.visible_tokens() <= 110


def test_an_exception_of_an_executor_reaches_the_handler(store: talktree.Store) -> None:
    mine, heard = Mine("no more work"), list[BaseException]()

    def executor(job: object) -> None:
        raise mine

    chat = store.session(
        "s", summarizer=lambda prompt: "x", compact_after=300, compact_on=executor, on_error=heard.append
    )
    chat.append_all(words(9))
    assert heard == [mine]


def test_an_exception_of_a_progress_callback_ends_the_work(store: talktree.Store, tmp_path: Path) -> None:
    mine = Mine("stop")

    def progress(done: int, total: int) -> None:
        raise mine

    store.session("s").append(Message.user("x" * 2_000_000))
    for call in (store.verify, lambda progress: store.backup(tmp_path / "copy.db", progress)):
        with pytest.raises(Mine) as caught:
            call(progress)
        assert caught.value is mine and "progress" in places(mine)
    assert not (tmp_path / "copy.db").exists()
    with pytest.raises(Mine):
        store.import_bytes(b'{"role":"user","content":"x"}', format="openai", progress=progress)
    store.session("s").append(Message.user("the store goes on"))


def test_an_exception_of_a_file_ends_an_export(store: talktree.Store) -> None:
    mine = Mine("disk on fire")

    class Broken:
        def write(self, data: bytes) -> int:
            raise mine

    store.session("s").append(Message.user("x"))
    with pytest.raises(Mine) as caught:
        store.export_jsonl(Broken())  # type: ignore[arg-type]
    assert caught.value is mine


def test_an_exception_of_a_provider_reaches_the_caller(store: talktree.Store) -> None:
    mine = Mine("no memory")

    class Broken:
        def get(self) -> str:
            raise mine

        def set(self, content: str) -> None:
            raise mine

    chat = store.session("s", blocks={"memory": Block.write(Broken())})
    with pytest.raises(Mine) as caught:
        chat.prompt()
    assert caught.value is mine
    with pytest.raises(Mine):
        chat.context.set("memory", "x")


def test_a_block_that_returns_no_text_says_so(store: talktree.Store) -> None:
    chat = store.session("s", blocks={"clock": Block.read(lambda: 5)})  # type: ignore[arg-type,return-value]
    with pytest.raises(TypeError, match=r"what get\(\) returns must be a str, not int"):
        chat.prompt()


def test_callbacks_may_call_back_into_their_session(store: talktree.Store) -> None:
    seen: list[int] = []

    def summarizer(prompt: str) -> str:
        seen.append(len(chat.history()))
        chat.append(Message.assistant("I am summarizing."))
        return "They said words."

    def listener(event: talktree.Event) -> None:
        if event.change == "compact":
            chat.label("compacted", chat.history()[0].id)

    chat = store.session("s", summarizer=summarizer, compaction_options=CompactionOptions(keep_recent_tokens=0))
    with store.subscribe(listener):
        chat.append_all(words(9))
        assert chat.compact()
    assert seen == [9] and chat.labelled("compacted") is not None
    assert chat.raw_history()[-1].text == "I am summarizing."


def test_a_listener_that_writes_does_not_overflow_the_stack(store: talktree.Store) -> None:
    chat = store.session("s", on_error=lambda error: None)
    with store.subscribe(lambda event: chat.append(Message.user("again"))):
        chat.append(Message.user("first"))
    assert 2 <= len(chat.history()) < 100


def test_an_error_handler_that_raises_is_reported_to_the_hook(
    store: talktree.Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = list[object]()
    monkeypatch.setattr(sys, "unraisablehook", lambda unraisable: seen.append(type(unraisable.exc_value)))

    def handler(error: BaseException) -> None:
        raise Mine

    def summarizer(prompt: str) -> str:
        raise ValueError

    chat = store.session("s", summarizer=summarizer, compact_after=300, on_error=handler)
    chat.append_all(words(9))
    assert seen == [Mine]
