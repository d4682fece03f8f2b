"""A session of the OpenAI Agents SDK: with its runner and a scripted model, over a restart, with branches."""

from __future__ import annotations

import asyncio
import json
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import talktree

pytest.importorskip("agents")

from agents import Agent, RunConfig, Runner, SQLiteSession, function_tool, set_tracing_disabled
from agents.memory import OpenAIResponsesCompactionSession, SessionSettings
from agents.memory import Session as Protocol
from agents.testing import ScriptedModel, assistant_message, function_call
from talktree import aio, openai

set_tracing_disabled(True)


@function_tool
def weather(city: str) -> str:
    """The weather in a city."""
    return f"warm in {city}"


def agent_of(*steps: Any) -> tuple[Agent[Any], ScriptedModel]:
    model = ScriptedModel(list(steps))
    return Agent(name="helper", model=model, tools=[weather]), model


ITEMS: list[Any] = [
    {"role": "user", "content": "Is it warm?"},
    {
        "type": "reasoning",
        "id": "r1",
        "summary": [{"type": "summary_text", "text": "I look."}],
        "encrypted_content": "x",
    },
    {"type": "function_call", "call_id": "c1", "name": "weather", "arguments": '{"city": "Jena"}', "id": "__fake_id__"},
    {"type": "function_call", "call_id": "c2", "name": "weather", "arguments": "{broken", "id": "__fake_id__"},
    {"type": "function_call_output", "call_id": "c1", "output": "warm"},
    {"type": "function_call_output", "call_id": "c2", "output": [{"type": "input_text", "text": "error"}]},
    {
        "type": "message",
        "role": "assistant",
        "id": "m1",
        "status": "completed",
        "content": [{"type": "output_text", "text": "Yes \ud800.", "annotations": [], "logprobs": []}],
    },
    {"type": "message", "role": "user", "content": [{"type": "input_image", "image_url": "data:,", "detail": "auto"}]},
    {"type": "of_a_later_release", "big": 2**70},
    {"role": "developer", "content": "Be brief.", "phase": None},
]


def test_items_come_back_exactly(tmp_path: Path) -> None:
    async def main() -> None:
        session = openai.Session("s", tmp_path / "agents.db")
        assert isinstance(session, Protocol)
        assert await session.get_items() == []
        await session.add_items([])
        await session.add_items(ITEMS[:4])
        await session.add_items(ITEMS[4:])
        assert await session.get_items() == ITEMS
        assert await session.get_items(limit=3) == ITEMS[-3:]
        assert await session.get_items(limit=0) == []
        assert await session.get_items(limit=99) == ITEMS
        for item in reversed(ITEMS):
            assert await session.pop_item() == item
        assert await session.pop_item() is None
        await session.add_items(ITEMS)
        await session.clear_session()
        assert await session.get_items() == []
        await session.close()

    asyncio.run(main())


def test_sessions_over_one_store_share_its_threads(tmp_path: Path) -> None:
    async def main() -> None:
        with talktree.Store(tmp_path / "agents.db") as store:
            before = threading.active_count()
            sessions = [openai.Session(f"s{number}", store) for number in range(40)]
            for session in sessions:
                await session.add_items(ITEMS[:1])
            assert threading.active_count() - before <= 8
            for session in sessions:
                await session.close()

    asyncio.run(main())


@pytest.mark.parametrize("store", ["one", "two"])
def test_each_item_is_popped_once(store: str, tmp_path: Path) -> None:
    async def main() -> None:
        first = openai.Session("s", tmp_path / "agents.db")
        items: list[Any] = [{"role": "user", "content": str(number)} for number in range(100)]
        await first.add_items(items)
        second = openai.Session("s", (await first.chat())._store.sync if store == "one" else tmp_path / "agents.db")
        popped = await asyncio.gather(*[session.pop_item() for _ in range(50) for session in (first, second)])
        texts = [str(dict(item)["content"]) for item in popped if item is not None]
        assert sorted(texts, key=int) == [str(number) for number in range(100)]
        assert await first.get_items() == []
        await second.close()
        await first.close()

    asyncio.run(asyncio.wait_for(main(), 60))


def test_it_does_what_the_session_of_the_sdk_does(tmp_path: Path) -> None:
    async def play(session: Any) -> list[Any]:
        seen: list[Any] = []
        for step in range(3):
            await session.add_items(ITEMS[step * 3 : step * 3 + 3])
            seen += [
                await session.get_items(),
                await session.get_items(2),
                await session.pop_item(),
                await session.get_items(1),
            ]
        await session.clear_session()
        return [*seen, await session.get_items(), await session.pop_item()]

    async def main() -> None:
        for settings in (None, SessionSettings(limit=2), {"limit": 4}):
            theirs = SQLiteSession("s", session_settings=settings)
            ours = openai.Session("s", session_settings=settings)
            assert json.dumps(await play(ours)) == json.dumps(await play(theirs))
            await ours.close()
            theirs.close()

    asyncio.run(main())


def test_a_conversation_is_kept_over_a_restart(tmp_path: Path) -> None:
    path = tmp_path / "agents.db"

    async def first() -> None:
        agent, model = agent_of(
            [function_call("weather", {"city": "Jena"}, call_id="c1")], [assistant_message("It is warm.")]
        )
        session = openai.Session("user:42", path)
        result = await Runner.run(agent, "Is it warm in Jena?", session=session)
        assert result.final_output == "It is warm."
        model.assert_complete()
        await session.close()

    async def second() -> None:
        agent, model = agent_of([assistant_message("In Jena.")])
        session = openai.Session("user:42", path)
        result = await Runner.run(agent, "Where?", session=session)
        assert result.final_output == "In Jena."
        call = model.last_call
        assert call is not None and isinstance(call.input, list)
        kinds = [item.get("type", item.get("role")) for item in call.input]
        assert kinds == ["user", "function_call", "function_call_output", "message", "user"]
        assert [hit.role for hit in await session.search("warm jena", limit=1)]
        chat = await session.chat()
        request = await chat.anthropic_request()  # for another model
        assert talktree.model.validate_for("anthropic", request | {"model": "m", "max_tokens": 9}) == []
        await session.close()

    asyncio.run(first())
    assert not talktree.Store.is_open_file(path)
    asyncio.run(second())
    with talktree.Store(path) as store:
        assert store.verify().damages == []
        assert store.session("user:42").tool_stats()["weather"].calls == 1


def test_streamed_runs_and_limits_of_a_run(tmp_path: Path) -> None:
    async def main() -> None:
        agent, model = agent_of(*[[assistant_message(f"answer {n}")] for n in range(3)])
        async with aio.Store(tmp_path / "agents.db") as store:
            session = openai.Session("s", store)
            for n in range(2):
                result = Runner.run_streamed(agent, f"question {n}", session=session)
                async for _ in result.stream_events():
                    pass
                assert result.final_output == f"answer {n}"
            config = RunConfig(session_settings=SessionSettings(limit=1))
            await Runner.run(agent, "question 2", session=session, run_config=config)
            call = model.last_call
            assert call is not None and len(call.input) == 2
            assert len(await session.get_items()) == 6

    asyncio.run(main())


def test_branches(tmp_path: Path) -> None:
    async def main() -> None:
        with talktree.Store(tmp_path / "agents.db") as store:
            agent, _ = agent_of(*[[assistant_message(text)] for text in ("red", "cyan", "more cyan")])
            session = openai.Session("s", store)
            await Runner.run(agent, "Name a colour", session=session)
            chat = await session.chat()
            question = (await chat.history())[0].id
            await session.checkout(None)
            await Runner.run(agent, "Name a colour, again", session=session)
            assert len(await chat.leaves()) == 2 and len(await session.get_items()) == 2
            await session.checkout((await session.search("red"))[0].id)
            assert "red" in str((await session.get_items())[-1])
            await session.checkout(question)
            assert await session.pop_item() == {"role": "user", "content": "Name a colour"}  # its branch keeps it
            assert await chat.head() is None and len(await chat.leaves()) == 2
            await session.checkout((await session.search("red"))[0].id)
            assert (await session.get_items())[0] == {"role": "user", "content": "Name a colour"}
            await session.checkout(None)
            # What the program says is an item, too.
            await chat.append({"role": "user", "text": "from the program"})
            await chat.append(talktree.Message.system("unseen", hidden=True))
            assert await session.get_items() == [{"role": "user", "content": "from the program"}]
            assert await session.pop_item() == {"role": "user", "content": "from the program"}

    asyncio.run(main())


def test_an_agent_sees_summaries_of_its_oldest_items() -> None:
    async def main() -> None:
        async def summarizer(prompt: str) -> str:
            return "They said words."

        session = openai.Session("s", summarizer=summarizer, compact_after=500)
        for _ in range(20):
            await session.add_items([{"role": "user", "content": "word " * 50}])
        items = await session.get_items()
        assert len(items) < 20 and {"role": "assistant", "content": "They said words."} in items
        assert await session.get_items(limit=2) == items[-2:]
        assert len(await (await session.chat()).raw_history()) == 20
        await session.close()

    asyncio.run(main())


def test_a_change_that_is_cancelled_is_waited_for() -> None:
    async def main() -> None:
        with talktree.Store() as store:
            session = openai.Session("s", store)
            await session.chat()
            inside, go_on = threading.Event(), threading.Event()

            def listener(event: talktree.Event) -> None:
                inside.set()
                assert go_on.wait(10)

            with store.subscribe(listener):
                task = asyncio.create_task(session.add_items([{"role": "user", "content": "hello"}]))
                while not inside.is_set():
                    await asyncio.sleep(0.001)
                for _ in range(2):
                    task.cancel()
                    await asyncio.sleep(0.02)
                assert not task.done()
                go_on.set()
                with pytest.raises(asyncio.CancelledError):
                    await task
            assert await session.get_items() == [{"role": "user", "content": "hello"}]

    asyncio.run(main())


class Compactor:
    """A client whose compaction endpoint returns these items."""

    def __init__(self, *output: Any) -> None:
        self.responses, self.output = self, output

    async def compact(self, **request: Any) -> Any:
        return SimpleNamespace(output=self.output, usage=None)


def compacting(session: Any, client: Any, **settings: Any) -> OpenAIResponsesCompactionSession:
    return OpenAIResponsesCompactionSession("s", session, client=client, compaction_mode="input", **settings)


COMPACTED: list[Any] = [
    {"role": "user", "content": "question 0"},
    {"type": "compaction", "id": "cmp_1", "encrypted_content": "sealed"},
]


@pytest.mark.parametrize("is_automatic", [False, True])
def test_a_compaction_of_the_sdk_keeps_all_branches(is_automatic: bool, tmp_path: Path) -> None:
    async def main() -> None:
        with talktree.Store(tmp_path / "agents.db") as store:
            session = openai.Session("s", store)
            chat = store.session("s")
            chat.append({"role": "user", "text": "another ocelot"})
            chat.checkout_start()
            chat.append(talktree.Message.system("unseen", hidden=True))
            seen: list[int] = []

            def decides(context: dict[str, Any]) -> bool:
                seen.append(len(context["session_items"]))
                return is_automatic and len(seen) == 3

            wrapper = compacting(session, Compactor(*COMPACTED), should_trigger_compaction=decides)
            agent, model = agent_of(*[[assistant_message(f"answer {n}")] for n in range(4)])
            for n in range(3):
                await Runner.run(agent, f"question {n}", session=wrapper)
            if not is_automatic:
                await wrapper.run_compaction({"force": True})
            assert await session.get_items() == await wrapper.get_items() == COMPACTED
            await Runner.run(agent, "question 3", session=wrapper)
            call = model.last_call
            assert call is not None and [it.get("type", it.get("role")) for it in call.input] == [
                "user",
                "compaction",
                "user",
            ]
            # What the model does not see any more is there: on its branch, and found.
            assert len(chat.leaves()) == 3
            for text in ("ocelot", '"question 1"', '"answer 1"'):
                assert [hit.on_path for hit in await session.search(text)] == [False]
            before = [chat.at(leaf).history() for leaf in chat.leaves() if len(chat.at(leaf).history()) == 6]
            assert [message.text for message in before[0]][-2:] == ["question 2", "answer 2"]
            assert [message.text for message in chat.raw_history()][0] == "unseen"
            assert store.verify().damages == []
            assert await wrapper.pop_item() is not None and len(await wrapper.get_items()) == 3

    asyncio.run(main())


def test_a_compaction_replaces_what_it_has_read_or_nothing(tmp_path: Path) -> None:
    items: list[Any] = [{"role": "user", "content": text} for text in "abcd"]

    async def main() -> None:
        for settings, session_type in (({}, SQLiteSession), ({"store": tmp_path / "agents.db"}, openai.Session)):

            async def filled(name: str, settings: Any = settings, session_type: Any = session_type) -> Any:
                session = session_type(name, **settings)
                await session.add_items(items)
                return session

            session = await filled("suffix")
            snapshot = await session._get_compaction_snapshot(3)
            assert (snapshot.items, snapshot.complete) == (items[1:], False)
            assert await snapshot.replace_suffix(3, COMPACTED) is False
            assert await snapshot.replace_suffix(1, COMPACTED) is True
            assert await session.get_items() == [*items[:2], *COMPACTED]
            assert await snapshot.replace_suffix(1, COMPACTED) is False

            session = await filled("grown")
            snapshot = await session._get_compaction_snapshot(9)
            assert (snapshot.items, snapshot.complete) == (items, True)
            await session.add_items(items[:1])
            assert await snapshot.replace_suffix(0, COMPACTED) is False
            assert await session.get_items() == [*items, *items[:1]]

            session = await filled("emptied")
            snapshot = await session._get_compaction_snapshot(9)
            assert await snapshot.replace_suffix(0, []) is True
            assert await session.get_items() == []

            session = await filled("expired")
            snapshot = await session._get_compaction_snapshot(2, prune_prefix=lambda item: item["content"] == "a")
            assert await snapshot.replace_suffix(1, COMPACTED[:1]) is True
            assert await session.get_items() == [items[1], items[2], COMPACTED[0]]

        class Changing(openai.Session):
            async def get_items(self, limit: int | None = None) -> Any:
                return (await super().get_items(limit))[:1]

        changing = Changing("changing")
        assert await changing._get_compaction_snapshot(9) is None
        assert await changing._atomic_replace_items(COMPACTED) is False

    asyncio.run(main())


def test_a_replacement_of_another_process_is_seen(tmp_path: Path) -> None:
    async def main() -> None:
        path = tmp_path / "agents.db"
        session, other = openai.Session("s", path), openai.Session("s", path)
        await session.add_items([{"role": "user", "content": "a"}, {"role": "user", "content": "b"}])
        snapshot = await session._get_compaction_snapshot(1)
        assert snapshot is not None
        with talktree.Store(path) as theirs:
            chat = theirs.session("s")
            last = chat.history()[-1]
            chat.update(talktree.Message(last | {"parts": [{"type": "text", "text": "changed"}]}))
        assert await snapshot.replace_suffix(0, COMPACTED) is False
        assert await other.get_items() == [{"role": "user", "content": "a"}, {"role": "user", "content": "changed"}]
        await session.close()
        await other.close()

    asyncio.run(main())


@pytest.mark.parametrize(
    "item",
    [
        {},
        {"type": None},
        {"role": 5, "content": "x"},
        {"role": "", "content": "x"},
        {"role": "user", "content": 5},
        {"role": "user", "content": {"text": "x"}},
        {"type": "message", "role": "assistant", "content": ["x", None, {"text": 5}]},
        {"type": "function_call"},
        {"type": "function_call", "name": "weather", "call_id": ["c"], "arguments": "{}"},
        {"type": "function_call", "name": "weather", "call_id": "c"},
        {"type": "function_call", "name": "weather", "call_id": "c", "arguments": {"city": "Jena"}},
        {"type": "function_call_output", "output": "x"},
        {"type": "reasoning", "summary": "x"},
        {"type": "reasoning", "summary": [5]},
        {"type": ["list"]},
    ],
    ids=str,
)
def test_a_malformed_item_comes_back_as_it_is(item: Any) -> None:
    async def main() -> None:
        for session in (SQLiteSession("s"), openai.Session("s")):
            await session.add_items([item, {"role": "user", "content": "next"}])
            assert await session.get_items() == [item, {"role": "user", "content": "next"}]

    asyncio.run(main())


def test_what_is_no_item_and_no_limit_is_refused_by_name() -> None:
    async def main() -> None:
        session: Any = openai.Session("s")
        good = {"role": "user", "content": "x"}
        for item in (5, None, "text", ["role", "user"]):
            with pytest.raises(TypeError, match=r"items\[1\] must be a dict, not "):
                await session.add_items([good, item])
        for items in ("text", good, 5, None):
            with pytest.raises(TypeError, match="items must be a list of dicts, not "):
                await session.add_items(items)
        for limit in ("5", 1.5, [1]):
            with pytest.raises(TypeError, match="limit must be an int, not "):
                await session.get_items(limit)
        assert await session.get_items() == []

    asyncio.run(main())


def test_limits_and_settings_are_those_of_the_sdk(tmp_path: Path) -> None:
    async def main() -> None:
        given: list[Any] = [{"limit": 2}, SessionSettings(limit=-1), {"limit": 0}, {}, {"limit": None}, None]
        for settings in given:
            seen = []
            for session in (
                SQLiteSession("s", session_settings=settings),
                openai.Session("s", session_settings=settings),
            ):
                await session.add_items(ITEMS)
                by_limit = [await session.get_items(limit) for limit in (None, -5, -1, 0, 1, 3, 2**40)]
                # Programs set it later, too, and as a dict.
                session.session_settings = settings
                seen.append([json.dumps(it) for it in (*by_limit, await session.get_items())])
            assert seen[0] == seen[1]

    asyncio.run(main())
