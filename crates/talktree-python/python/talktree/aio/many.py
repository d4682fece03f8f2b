"""What a store and a manager do with many sessions, in threads."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterable
from datetime import datetime
from typing import TYPE_CHECKING, TypeVar, overload

from .._lines import Call, Pool
from ..erasure import ErasedParts, Erasure, ErasureExtent, ErasureProof, proof
from ..many import ManySessions as Sync
from ..many import Progress
from ..results import Alternative, Found, SessionsFound
from ..retention import RetentionReport, RetentionRule, RetentionSettings
from ..search import SearchSettings
from ..usage import UsageGroup, UsageRow, UsageTotal

if TYPE_CHECKING:
    from ..search import Unpack

T = TypeVar("T")


class Erased(ErasedParts):
    """The outcome of an erasure, as `talktree.Erased`."""

    _pool: Pool

    @classmethod
    def over(cls, erased: ErasedParts, pool: Pool) -> Erased:
        """Returns the async face of an outcome."""
        face = cls(**vars(erased))
        object.__setattr__(face, "_pool", pool)
        return face

    async def prove(self) -> ErasureProof:
        """Looks for the erased texts in every byte of the files.

        Raises:
            talktree.NotErasedError: if erased text was found.
            talktree.NotProvedError: if another erasure deleted a part of what was named.
            talktree.UnsupportedError: for a store in memory.
        """
        return await self._pool.run(lambda call: proof(self._native.prove()))

    async def scan(self) -> ErasureProof:
        """Returns what `prove` found, also if that is erased text."""
        return await self._pool.run(lambda call: proof(self._native.scan()))


class ManySessions:
    """The verbs that a store and a manager share."""

    _pool: Pool

    @property
    def _many(self) -> Sync:
        """The verbs for code that is not async."""
        raise NotImplementedError

    async def _run(self, work: Callable[[Call[T]], T]) -> T:
        """Runs a call in a thread."""
        return await self._pool.run(work)

    async def search(self, text: str, **settings: Unpack[SearchSettings]) -> Found:
        """Returns the messages of all sessions that match, best first. `SearchSettings` lists the settings."""
        return await self._run(lambda call: self._many.search(text, **settings))

    async def search_by_session(self, text: str, **settings: Unpack[SearchSettings]) -> SessionsFound:
        """Returns whole sessions, best first, each with its best hits."""
        return await self._run(lambda call: self._many.search_by_session(text, **settings))

    async def search_alternatives(self, text: str, **settings: Unpack[SearchSettings]) -> builtins.list[Alternative]:
        """Returns queries that find something where this one finds nothing."""
        return await self._run(lambda call: self._many.search_alternatives(text, **settings))

    @overload
    async def usage(
        self,
        *,
        by: UsageGroup,
        session: str | None = None,
        owner: str | None = None,
        author: str | None = None,
        model: str | None = None,
        source: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
    ) -> builtins.list[UsageRow]: ...
    @overload
    async def usage(
        self,
        *,
        by: None = None,
        session: str | None = None,
        owner: str | None = None,
        author: str | None = None,
        model: str | None = None,
        source: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
    ) -> UsageTotal: ...
    async def usage(
        self,
        *,
        by: UsageGroup | None = None,
        session: str | None = None,
        owner: str | None = None,
        author: str | None = None,
        model: str | None = None,
        source: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
    ) -> builtins.list[UsageRow] | UsageTotal:
        """Returns the usage of all answers, or of those that the arguments choose; in groups with `by`."""
        return await self._run(
            lambda call: self._many.usage(
                by=by,
                session=session,
                owner=owner,
                author=author,
                model=model,
                source=source,
                since=since,
                until=until,
            )
        )

    async def erase(self, *, progress: Progress | None = None, **what: Unpack[Erasure]) -> Erased:
        """Erases what is named: no byte of it is in the file, in the search index or in the log afterwards.

        `Erasure` lists the arguments. If the task is cancelled, an erasure that runs is completed.
        """
        return Erased.over(await self._run(lambda call: self._many.erase(progress=progress, **what)), self._pool)

    async def erase_owner(self, owner: str) -> Erased:
        """Erases all sessions, texts, transcripts and usage of an owner. An owner of nothing is no error."""
        return await self.erase(owners=[owner])

    async def erasure_extent(self, **what: Unpack[Erasure]) -> ErasureExtent:
        """Returns what an erasure would remove, without removing anything."""
        return await self._run(lambda call: self._many.erasure_extent(**what))

    async def retention(
        self,
        rules: Iterable[RetentionRule] = (),
        *,
        progress: Progress | None = None,
        **settings: Unpack[RetentionSettings],
    ) -> RetentionReport:
        """Discards the sessions that meet a rule, and returns which these are; with `dry_run` nothing is changed.

        `RetentionSettings` lists the settings.
        """
        return await self._run(
            lambda call: self._many.retention(rules, progress=call.progress(progress), **settings)
        )
