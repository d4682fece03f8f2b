"""The async face, under asyncio and under trio: order, cancellation, callbacks that call back."""

from __future__ import annotations

import asyncio
import inspect
import subprocess
import sys
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio
import pytest
import talktree
from talktree import Block, CompactionOptions, Message, aio

pytestmark = pytest.mark.anyio


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


def words(count: int) -> list[Message]:
    return [Message.user("word " * 50) for _ in range(count)]


async def test_the_same_verbs(tmp_path: Path) -> None:
    async with aio.Store(tmp_path / "store.db") as store:
        chat = await store.session("s", blocks={"memory": Block.stored()})
        question = (await chat.append({"role": "user", "text": "Name a colour"})).id
        red = (await chat.append(Message.assistant("red"))).id
        await chat.append_to(question, Message.assistant("cyan"))
        assert [message.text async for message in chat] == ["Name a colour", "cyan"]
        assert [message.text async for message in chat.iter_rev()] == ["cyan", "Name a colour"]
        assert [message.text async for message in chat.all_messages()] == ["Name a colour", "red", "cyan"]
        assert [message.text for message in await chat.at(red).history()] == ["Name a colour", "red"]
        assert [message.id async for message in chat.at(red).raw()] == [question, red]
        await chat.checkout(red)
        await chat.context.set("memory", "Likes tea.")
        assert "Likes tea." in await chat.prompt()
        assert await chat.tools.names() == ["set_context"]
        assert [hit.id for hit in await store.search("red")] == [red]
        assert (await store.verify()).damages == []
        assert (await store.usage()).answers == 0 and await store.usage(by="model") == []
        fork = await chat.fork(question, "what if")
        assert isinstance(fork, aio.Session) and await fork.path_length() == 1
        with pytest.raises(talktree.UnknownMessageError):
            await chat.checkout("nobody")
        bot = aio.SessionManager(store)
        resumed = await bot.resumed("telegram:1", owner="ada")
        assert resumed.is_new and isinstance(resumed.session, aio.Session)
        assert (await bot.resume("telegram:1", owner="ada")).id == resumed.session.id
        assert len(await bot.list(owner="ada")) == 1
    assert store.closed and not talktree.Store.is_open_file(tmp_path / "store.db")
    with pytest.raises(talktree.ClosedError):
        await chat.history()


async def test_a_reply_that_streams_in() -> None:
    async with aio.Store() as store:
        chat = await store.session("s")
        reply = await chat.stream("openai_chat")
        for line in ('data: {"id":"1","choices":[{"delta":{"content":"4"},"finish_reason":"stop"}]}', "", "data: [DONE]"):
            await reply.push(line)
        assert (await chat.unfinished())[0].id == reply.id and await chat.history() == []
        assert (await reply.finish()).text == reply.text == "4" and reply.is_complete
        with pytest.raises(talktree.FinishedError):
            await reply.discard()
        other = (await chat.begin(Message.assistant(""))).id
        await chat.save(Message.assistant("fi", id=other))
        await chat.finish(Message.assistant("five", id=other))
        await (await chat.stream("anthropic")).discard()
        await chat.discard((await chat.begin(Message.assistant(""))).id)
        assert [message.text for message in await chat.history()] == ["4", "five"] and await chat.unfinished() == []


async def test_a_stream_reads_all(tmp_path: Path) -> None:
    async with aio.Store() as store:
        chat = await store.session("s")
        await chat.append_all([Message.user(str(n)) for n in range(250)])
        assert [message.text async for message in chat] == [str(n) for n in range(250)]


async def test_calls_of_a_session_keep_their_order() -> None:
    async with aio.Store() as store:
        first = await store.session("s")
        second = await store.session("s")  # another handle of the same session
        async with anyio.create_task_group() as tasks:
            # Tasks of trio begin in any order, so each call is begun before the next task is.
            for n in range(200):
                begun = anyio.Event()

                async def append(n: int = n, begun: anyio.Event = begun) -> None:
                    call = (first if n % 2 else second).append(Message.user(str(n)))
                    await _begin(call, begun)

                tasks.start_soon(append)
                await begun.wait()
        assert [message.text for message in await first.history()] == [str(n) for n in range(200)]


class _begin:
    """Awaits something, and says when it waits for the first time."""

    def __init__(self, awaitable: Awaitable[Any], begun: anyio.Event) -> None:
        self._awaitable = awaitable
        self._begun = begun

    def __await__(self) -> Any:
        steps = self._awaitable.__await__()
        try:
            step = next(steps)
            self._begun.set()
            while True:
                step = steps.send((yield step))
        except StopIteration as end:
            return end.value


def blocked(store: aio.Store) -> tuple[threading.Event, threading.Event, talktree.Subscription]:
    """Returns events of the next write: it is inside, it may go on."""
    inside, go_on = threading.Event(), threading.Event()

    def listener(event: talktree.Event) -> None:
        inside.set()
        assert go_on.wait(10)

    return inside, go_on, store.subscribe(listener)


async def until(event: threading.Event) -> None:
    while not event.is_set():
        await anyio.sleep(0.001)


async def test_a_cancelled_call_that_waits_is_never_run() -> None:
    async with aio.Store() as store:
        chat = await store.session("s")
        inside, go_on, keep = blocked(store)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(chat.append, Message.user("runs"))
            await until(inside)
            with anyio.move_on_after(0.05) as scope:
                await chat.append(Message.user("waits"))
            assert scope.cancelled_caught
            go_on.set()
        keep.close()
        assert [message.text for message in await chat.history()] == ["runs"]


async def test_a_cancelled_call_that_runs_ends_before_the_next_begins() -> None:
    async with aio.Store() as store:
        chat = await store.session("s")
        inside, go_on, keep = blocked(store)
        message = Message.user("first")
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(chat.append, message)
            await until(inside)
            tasks.cancel_scope.cancel()
        # The task is gone; its call still runs, and the next one waits for it.
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(chat.append, Message.user("second"))
            await anyio.sleep(0.02)
            go_on.set()
        keep.close()
        assert [it.text for it in await chat.history()] == ["first", "second"]
        assert not (await chat.append(message)).is_new  # nobody heard, but it is stored


async def test_a_cancelled_backup_stops(tmp_path: Path) -> None:
    async with aio.Store(tmp_path / "store.db") as store:
        await (await store.session("s")).append(Message.user("x" * 2_000_000))
        inside, go_on = threading.Event(), threading.Event()

        def progress(done: int, total: int) -> None:
            inside.set()
            go_on.wait(10)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(store.backup, tmp_path / "copy.db", progress)
            await until(inside)
            tasks.cancel_scope.cancel()
        assert any(path.suffix == ".partial" for path in tmp_path.iterdir())
        go_on.set()
        with anyio.fail_after(10):
            while any(path.suffix == ".partial" for path in tmp_path.iterdir()):
                await anyio.sleep(0.001)
        assert not (tmp_path / "copy.db").exists()


async def test_async_callbacks_run_in_the_loop_and_may_call_back() -> None:
    here = threading.get_ident()
    async with aio.Store() as store:
        seen: list[int] = []

        async def summarizer(prompt: str) -> str:
            assert threading.get_ident() == here
            await anyio.sleep(0)
            seen.append(len(await chat.history()))  # of the session that waits for this summary
            other = await store.session("other")
            await other.append(Message.user("a summary is being written"))
            return "They said words."

        chat = await store.session(
            "s", summarizer=summarizer, compaction_options=CompactionOptions(keep_recent_tokens=0)
        )
        await chat.append_all(words(9))
        assert await chat.compact()
        assert seen == [9]
        assert "They said words." in [message.text for message in await chat.history()]


async def test_async_and_plain_tools() -> None:
    async with aio.Store() as store:
        chat = await store.session("s")

        async def weather(city: str) -> str:
            await anyio.sleep(0)
            return f"warm in {city}, {len(await chat.raw_history())} messages"

        asked = Message.new(
            "assistant", [talktree.tool_call(name, name, {"city": "Jena"}) for name in ("weather", "plain")]
        )
        await chat.append(asked)
        results = await chat.tools.answer(asked, {"weather": weather, "plain": lambda city: city})
        assert results is not None
        assert [part["output"] for part in results.parts] == ["warm in Jena, 1 messages", "Jena"]


async def test_a_tool_may_close_the_store(tmp_path: Path) -> None:
    with anyio.fail_after(20):
        store = await aio.Store.open(tmp_path / "store.db")
        chat = await store.session("s")
        calls = Message.new("assistant", [talktree.tool_call("stop", "c1", {})])
        await chat.append(calls)

        async def stop() -> str:
            await store.close()
            return "closed"

        results = await chat.tools.answer(calls, {"stop": stop})
        assert results is not None and results["parts"][0]["output"] == "closed"
        with pytest.raises(talktree.ClosedError):
            await chat.history()
    assert not talktree.Store.is_open_file(tmp_path / "store.db")


async def test_many_sessions_whose_callbacks_wait_do_not_block_each_other() -> None:
    async with aio.Store() as store:

        async def turn(n: int) -> None:
            chat = await store.session(f"s{n}")
            asked = Message.new("assistant", [talktree.tool_call("look", "c", {})])
            await chat.append(asked)

            async def look() -> int:
                return len(await chat.history())

            assert await chat.tools.answer(asked, {"look": look}) is not None

        with anyio.fail_after(20):
            async with anyio.create_task_group() as tasks:
                for n in range(30):
                    tasks.start_soon(turn, n)


async def test_an_async_summarizer_in_the_background() -> None:
    jobs: list[Callable[[], None]] = []

    async def summarizer(prompt: str) -> str:
        await anyio.sleep(0)
        return "They said words."

    async with aio.Store() as store:
        chat = await store.session("s", summarizer=summarizer, compact_after=500, compact_on=jobs.append)
        await chat.append_all(words(20))
        worker = threading.Thread(target=jobs[0])  # a thread of the program
        worker.start()
        while worker.is_alive():
            await anyio.sleep(0.001)
        assert await chat.visible_tokens() <= 500


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_callback_that_its_own_event_loop_waits_for_is_an_error() -> None:
    async def summarizer(prompt: str) -> str:
        return "They said words."

    async with aio.Store() as store:
        chat = await store.session(
            "s", summarizer=summarizer, compaction_options=CompactionOptions(keep_recent_tokens=0)
        )
        await chat.append_all(words(9))
        with pytest.raises(RuntimeError, match="await the call"):
            chat.sync.compact()  # it waited for ever


async def test_exceptions_come_as_they_were_raised() -> None:
    mine = ValueError("out of credit")

    async def summarizer(prompt: str) -> str:
        raise mine

    async with aio.Store() as store:
        chat = await store.session(
            "s", summarizer=summarizer, compaction_options=CompactionOptions(keep_recent_tokens=0)
        )
        await chat.append_all(words(9))
        with pytest.raises(ValueError) as caught:
            await chat.compact()
        assert caught.value is mine


async def test_a_store_that_is_not_open() -> None:
    store = aio.Store()
    with pytest.raises(talktree.ClosedError, match="was not opened"):
        await store.session("s")
    opened = await aio.Store.open()
    assert not opened.closed
    await opened.close()
    with pytest.raises(talktree.ClosedError):
        await opened.session("s")
    with pytest.raises(TypeError, match="store must be a talktree.aio.Store, not Store"):
        aio.SessionManager(talktree.Store())  # type: ignore[arg-type]


def test_outside_of_async_code_it_is_a_clear_error() -> None:
    store = aio.Store()
    coroutine = store.sessions()
    with pytest.raises(RuntimeError, match="no running event loop"):
        coroutine.send(None)


@pytest.mark.parametrize("name", ["Store", "Session", "Path", "Reply", "SessionManager", "Context", "Tools", "Transcripts"])
def test_every_verb_has_its_async_form_with_the_same_arguments(name: str) -> None:
    plain, other = getattr(talktree, name), getattr(aio, name)
    verbs = [it for it in vars(plain) if not it.startswith("_")]
    verbs += [it for base in plain.__bases__ for it in vars(base) if not it.startswith("_")]
    for verb in verbs:
        assert hasattr(other, verb), verb
        one, two = getattr(plain, verb), getattr(other, verb)
        if inspect.isfunction(one):
            assert list(inspect.signature(one).parameters.values()) == list(inspect.signature(two).parameters.values())


def test_type_checkers_read_what_stubs_makes() -> None:
    import stubs

    assert stubs.STUB.read_text() == stubs.Maker().made(), "run `python stubs.py`"


def test_a_loop_that_ends_while_a_call_runs_leaves_nothing_behind(tmp_path: Path) -> None:
    program = f"""
import asyncio, time
from talktree import Message, aio
async def main():
    store = await aio.Store.open({str(tmp_path / "store.db")!r})
    chat = await store.session("s")
    keep = store.subscribe(lambda event: time.sleep(0.3))
    task = asyncio.create_task(chat.append(Message.user("late")))
    await asyncio.sleep(0.05)
asyncio.run(main())
print("end")
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.stderr, done.returncode) == ("end\n", "", 0)
    with talktree.Store(tmp_path / "store.db") as store:
        assert len(store.session("s").history()) == 1


@pytest.mark.parametrize("sleep", ["asyncio.sleep", "trio.sleep"])
def test_a_store_may_be_closed_in_the_loop_that_a_callback_waits_for(sleep: str) -> None:
    program = f"""
import asyncio, time, trio
from talktree import Message, Store, aio
async def summarizer(prompt):
    begun.append(prompt)
    await {sleep}(60)
begun = []
async def append(chat):
    await chat.append_all([Message.user("word " * 50) for _ in range(9)])
async def main():
    with Store() as store:
        chat = await aio.Store.over(store).session("s", summarizer=summarizer, compact_after=100)
        if trio.lowlevel.in_trio_run():
            with trio.move_on_after(0.5):
                await append(chat)
        else:
            task = asyncio.create_task(append(chat))
            await asyncio.sleep(0.5)
        assert begun
    print(store.closed)
{"trio" if "trio" in sleep else "asyncio"}.run(main{"" if "trio" in sleep else "()"})
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=30)
    assert (done.stdout, done.returncode) == ("True\n", 0), done.stderr


@pytest.mark.parametrize("last", ["loop.close()", "pass"])
def test_a_program_ends_whose_loop_ended_before_a_callback(last: str) -> None:
    program = f"""
import asyncio
from talktree import Message, aio
async def summarizer(prompt):
    print("begun", flush=True)
    await asyncio.sleep(60)
async def main():
    store = await aio.Store.open()
    chat = await store.session("s", summarizer=summarizer, compact_after=100)
    task = asyncio.create_task(chat.append_all([Message.user("word " * 50) for _ in range(9)]))
    await asyncio.sleep(0.5)
loop = asyncio.new_event_loop()
loop.run_until_complete(main())
{last}
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=10)
    assert (done.stdout, done.returncode) == ("begun\n", 0), done.stderr


async def test_a_callback_may_raise_a_timeout() -> None:
    async with aio.Store() as store:

        async def summarizer(prompt: str) -> str:
            raise TimeoutError("mine")

        options = CompactionOptions(keep_recent_tokens=0)
        chat = await store.session("s", summarizer=summarizer, compaction_options=options)
        await chat.append_all(words(9))
        with pytest.raises(TimeoutError, match="mine"):
            await chat.compact()


def test_a_tool_that_is_cancelled_with_its_loop_has_no_result(tmp_path: Path) -> None:
    calls = Message.new("assistant", [talktree.tool_call("slow", "c1", {})])

    async def main(seconds: float) -> None:
        async with aio.Store(tmp_path / "store.db") as store:
            chat = await store.session("s")
            await chat.append(calls)

            async def slow() -> str:
                await asyncio.sleep(seconds)
                return "done"

            try:
                await asyncio.wait_for(chat.tools.answer(calls, {"slow": slow}), 10 if seconds == 0 else 0.2)
            finally:
                if seconds:
                    # As `asyncio.run` does with the tasks that are left.
                    for task in asyncio.all_tasks() - {asyncio.current_task()}:
                        task.cancel()

    with pytest.raises(asyncio.TimeoutError):
        asyncio.run(main(60))
    with talktree.Store(tmp_path / "store.db") as store:
        assert len(store.session("s").history()) == 1
    asyncio.run(main(0))
    with talktree.Store(tmp_path / "store.db") as store:
        assert store.session("s").history()[1]["parts"][0]["output"] == "done"


def test_one_store_in_several_loops(tmp_path: Path) -> None:
    store = asyncio.run(aio.Store.open())

    async def append(text: str) -> int:
        chat = await store.session("s")
        await chat.append(Message.user(text))
        return len(await chat.history())

    assert [asyncio.run(append("a")), asyncio.run(append("b"))] == [1, 2]
    asyncio.run(store.close())
