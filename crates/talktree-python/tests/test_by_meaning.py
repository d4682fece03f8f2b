"""Search by meaning: embedders of the program, plain and async, and what they raise."""

from __future__ import annotations

import asyncio
import functools
import threading
from array import array
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
import talktree
from talktree import Embedding, Message, aio

TOPICS = (("doctor", "Dr.", "fever"), ("song", "tune"))


def vectors(texts: list[str]) -> list[list[float]]:
    return [[float(any(word in text for word in topic)) for topic in TOPICS] for text in texts]


class Topics:
    name = "topics-1"

    def embed(self, texts: list[str]) -> Iterable[Iterable[float]]:
        return vectors(texts)


class Gives(Topics):
    """Returns anything."""

    def __init__(self, answer: Callable[[list[str]], Any]) -> None:
        self._answer = answer

    def embed(self, texts: list[str]) -> Any:
        return self._answer(texts)


class AsyncTopics:
    name = "topics-1"

    def __init__(self) -> None:
        self.threads = set[int]()

    async def embed(self, texts: list[str]) -> list[list[float]]:
        await asyncio.sleep(0)
        self.threads.add(threading.get_ident())
        return vectors(texts)


@pytest.fixture
def full(store: talktree.Store) -> talktree.Store:
    texts = ["I see Dr. Patel on Monday.", "a tune", "nothing of both"]
    store.session("s").append_all([Message.user(text) for text in texts])
    return store


def texts_of(found: talktree.Found) -> list[str]:
    return [hit.snippet.text for hit in found]


def test_a_search_finds_what_was_said_in_other_words(full: talktree.Store) -> None:
    assert full.search("doctor").hits == []
    assert full.embed(Topics()) == Embedding("topics-1", dimensions=2, embedded=3, pending=0)
    found = full.search("doctor", by_meaning=Topics())
    assert texts_of(found) == ["I see Dr. Patel on Monday."]
    assert (found.matched, found[0].matched, found[0].snippet.marks) == ("meaning", "meaning", [])
    assert full.search("tune", by_meaning=Topics()).matched == "all"


def test_every_search_has_the_setting(full: talktree.Store) -> None:
    full.embed(Topics())
    chat, bot = full.session("s"), talktree.SessionManager(full)
    for search in (full.search, chat.search, chat.at(chat.history()[-1].id).search, bot.search):
        assert texts_of(search("doctor", by_meaning=Topics())) == ["I see Dr. Patel on Monday."]
    for by_session in (full.search_by_session, chat.search_by_session, bot.search_by_session):
        found = by_session("doctor", by_meaning=Topics())
        assert (found[0].session, found.matched) == ("s", "meaning")
    assert full.search_alternatives("Mondey", by_meaning=Topics()) == full.search_alternatives("Mondey")


def test_embeddings_are_listed_and_removed(full: talktree.Store) -> None:
    assert full.embeddings() == []
    assert full.search("tune", by_meaning=Topics()).notices == [
        'the store has no vectors by "topics-1": only words are searched'
    ]
    full.embed(Topics())
    full.session("s").append(Message.user("fever"))
    assert full.embeddings() == [Embedding("topics-1", 2, embedded=3, pending=1)]
    assert full.remove_embedding("topics-1") is True
    assert full.remove_embedding("topics-1") is False


def test_the_embedder_gets_64_texts_at_once(store: talktree.Store) -> None:
    sizes, calls = list[int](), list[tuple[int, int]]()

    def answer(texts: list[str]) -> list[list[float]]:
        assert all(type(text) is str for text in texts)
        sizes.append(len(texts))
        return vectors(texts)

    store.session("s").append_all([Message.user(f"fever {n}") for n in range(100)])
    store.embed(Gives(answer), lambda done, total: calls.append((done, total)))
    assert (sizes, calls) == ([64, 36], [(64, 100), (100, 100)])


class Rows:
    """Rows as numpy has them: iterable, with numbers that only convert to a float."""

    class Number:
        def __init__(self, value: float) -> None:
            self._value = value

        def __float__(self) -> float:
            return self._value

    def __init__(self, rows: list[list[float]]) -> None:
        self._rows = rows

    def __iter__(self) -> Iterator[Iterator[Any]]:
        return iter(iter([self.Number(value) for value in row]) for row in self._rows)


@pytest.mark.parametrize(
    "kind",
    [
        lambda rows: [[int(value) for value in row] for row in rows],
        lambda rows: tuple(tuple(row) for row in rows),
        lambda rows: (array("f", row) for row in rows),
        lambda rows: [array("d", row) for row in rows],
        lambda rows: [memoryview(array("f", row)) for row in rows],
        lambda rows: [iter(row) for row in rows],
        Rows,
    ],
)
def test_vectors_may_be_of_any_kind(full: talktree.Store, kind: Callable[[list[list[float]]], Any]) -> None:
    embedder = Gives(lambda texts: kind(vectors(texts)))
    assert full.embed(embedder).dimensions == 2
    assert texts_of(full.search("doctor", by_meaning=embedder)) == ["I see Dr. Patel on Monday."]


def as_numpy(numpy: Any, kind: Any, texts: list[str]) -> Any:
    return numpy.array(vectors(texts), dtype=kind)


def test_an_array_of_numpy_is_vectors(full: talktree.Store) -> None:
    numpy = pytest.importorskip("numpy")
    for kind in (numpy.float32, numpy.float64, numpy.float16, numpy.int8):
        full.remove_embedding("topics-1")
        embedder = Gives(functools.partial(as_numpy, numpy, kind))
        assert full.embed(embedder).dimensions == 2
        assert len(full.search("doctor", by_meaning=embedder)) == 1


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (None, "what embed() returns must be an iterable of vectors, not NoneType"),
        ([1.0, 2.0, 3.0], "a vector of embed() must be an iterable of numbers, not float"),
        (["one", "two", "three"], "a vector of embed() must be an iterable of numbers, not str"),
        ([b"\0\0\0\0"] * 3, "a vector of embed() must be an iterable of numbers, not bytes"),
        ([["a"]] * 3, "a vector of embed() must have numbers only"),
        ([[None]] * 3, "a vector of embed() must have numbers only"),
    ],
)
def test_an_answer_that_is_no_vectors_says_what_it_is(full: talktree.Store, answer: Any, says: str) -> None:
    with pytest.raises(TypeError) as caught:
        full.embed(Gives(lambda texts: answer))
    assert str(caught.value).startswith(says)


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        ([[1.0]], "3 texts have 1 vectors"),
        ([[1.0], [1.0, 2.0], [1.0]], "one vector has 1 dimensions, another 2"),
        ([[float("nan")]] * 3, "a vector has a value that is no finite number"),
        ([[]] * 3, "a vector has 0 dimensions; the maximum is 4096"),
    ],
)
def test_vectors_that_cannot_be_compared_are_refused(full: talktree.Store, answer: Any, why: str) -> None:
    with pytest.raises(talktree.EmbedderError) as caught:
        full.embed(Gives(lambda texts: answer))
    assert (caught.value.why, str(caught.value)) == (why, f"the embedder failed: {why}")


def test_an_exception_of_an_embedder_reaches_the_caller(full: talktree.Store) -> None:
    mine = OSError("no connection")

    def fail(texts: list[str]) -> None:
        raise mine

    for call in (lambda: full.embed(Gives(fail)), lambda: full.search("x", by_meaning=Gives(fail))):
        with pytest.raises(OSError) as caught:
            call()
        assert caught.value is mine
    assert full.embed(Topics()).embedded == 3


def test_an_exception_of_the_progress_ends_the_work_after_a_batch(store: talktree.Store) -> None:
    store.session("s").append_all([Message.user(f"fever {n}") for n in range(100)])

    def stop(done: int, total: int) -> None:
        raise KeyError("stop")

    with pytest.raises(KeyError, match="stop"):
        store.embed(Topics(), stop)
    assert store.embeddings() == [Embedding("topics-1", 2, embedded=64, pending=36)]
    assert store.embed(Topics()).pending == 0


def test_an_embedder_may_call_the_store(full: talktree.Store) -> None:
    def answer(texts: list[str]) -> list[list[float]]:
        full.session("log").append(Message.user(f"{len(texts)} texts"))
        return vectors(texts)

    assert full.embed(Gives(answer)) == Embedding("topics-1", 2, embedded=3, pending=1)


def test_an_async_embedder_without_a_loop(full: talktree.Store) -> None:
    assert full.embed(AsyncTopics()).embedded == 3
    assert len(full.search("doctor", by_meaning=AsyncTopics())) == 1


@pytest.mark.anyio
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_embedders_of_the_async_face(tmp_path: Path) -> None:
    async with aio.Store(tmp_path / "store.db") as store:
        chat = await store.session("s")
        await chat.append(Message.user("I see Dr. Patel on Monday."))
        embedder = AsyncTopics()
        assert await store.embed(embedder) == Embedding("topics-1", 2, embedded=1, pending=0)
        bot = aio.SessionManager(store)
        for found in (
            await store.search("doctor", by_meaning=embedder),
            await chat.search("doctor", by_meaning=embedder),
            await bot.search("doctor", by_meaning=embedder),
            await store.search("doctor", by_meaning=Topics()),
        ):
            assert texts_of(found) == ["I see Dr. Patel on Monday."]
        assert (await store.search_by_session("doctor", by_meaning=embedder))[0].session == "s"
        assert embedder.threads == {threading.get_ident()}, "it runs in the loop of the program"
        assert await store.embeddings() == [Embedding("topics-1", 2, embedded=1, pending=0)]
        assert await store.remove_embedding("topics-1")
        with pytest.raises(TypeError, match="by_meaning must have a name"):
            await store.search("doctor", by_meaning=len)  # type: ignore[arg-type]


@pytest.mark.anyio
@pytest.mark.parametrize("anyio_backend", ["trio"])
async def test_an_async_embedder_runs_in_a_loop_of_trio(anyio_backend: str) -> None:
    import trio

    class OfTrio(Topics):
        async def embed(self, texts: list[str]) -> list[list[float]]:  # type: ignore[override]
            await trio.sleep(0)
            return vectors(texts)

    async with aio.Store() as store:
        await (await store.session("s")).append(Message.user("fever"))
        await store.embed(OfTrio())
        assert len(await store.search("doctor", by_meaning=OfTrio())) == 1
