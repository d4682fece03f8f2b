"""Embeddings: vectors that a model of the program gives to texts, so that a search finds what was meant in other words."""

from __future__ import annotations

from array import array
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import Any, Protocol

from ._lines import wait_in_call

#: A vector for each text: lists of floats, a numpy array with a row for each text, ..
Vectors = Iterable[Iterable[float]]


class Embedder(Protocol):
    """Gives texts vectors: a model for embeddings, or a call of one; plain or async.

    >>> import talktree
    >>> class Letters:  # anagrams mean the same
    ...     name = "letters-1"
    ...     def embed(self, texts: list[str]) -> list[list[int]]:
    ...         return [[text.count(letter) for letter in "eilnst"] for text in texts]
    >>> store = talktree.Store()
    >>> _ = store.session("s").append({"role": "user", "text": "listen"})
    >>> store.embed(Letters())
    Embedding(embedder='letters-1', dimensions=6, embedded=1, pending=0)
    >>> [hit.matched for hit in store.search("silent", by_meaning=Letters())]
    ['meaning']
    """

    @property
    def name(self) -> str:
        """The name of the model and its version. Vectors of different names are never compared."""

    def embed(self, texts: list[str], /) -> Vectors | Awaitable[Vectors]:
        """Returns a vector for each text, all with the same number of dimensions, at most 4096."""


@dataclass(frozen=True)
class Embedding:
    """The vectors that a store has of one embedder."""

    #: The name of the embedder.
    embedder: str
    #: The dimensions of its vectors; None before the first one.
    dimensions: int | None
    #: How many messages were given to it.
    embedded: int
    #: How many messages it still has to be given.
    pending: int


def embedder_parts(embedder: Embedder, what: str) -> tuple[str, Callable[[list[str]], list[bytes]]]:
    """Returns an embedder as the native module takes it; `what` names the argument in errors."""
    name, embed = getattr(embedder, "name", None), getattr(embedder, "embed", None)
    if not isinstance(name, str) or not callable(embed):
        raise TypeError(f"{what} must have a name, which is a str, and a method embed(), not {type(embedder).__name__}")

    def call(texts: list[str]) -> list[bytes]:
        vectors = wait_in_call(embed(texts))
        if not isinstance(vectors, Iterable):
            raise TypeError(f"what embed() returns must be an iterable of vectors, not {type(vectors).__name__}")
        return [_floats(vector) for vector in vectors]

    return name, call


def _floats(vector: Any) -> bytes:
    if isinstance(vector, (str, bytes, bytearray)) or not isinstance(vector, Iterable):
        raise TypeError(f"a vector of embed() must be an iterable of numbers, not {type(vector).__name__}")
    try:
        return array("f", vector).tobytes()
    except TypeError as error:
        raise TypeError(f"a vector of embed() must have numbers only: {error}") from error
