"""What a store and a manager do with many sessions: search, usage, erasing, retention."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterable
from datetime import datetime
from typing import TYPE_CHECKING, overload

from . import _json
from ._native import Manager as NativeManager
from ._native import Store as NativeStore
from .erasure import Erased, Erasure, ErasureExtent, ErasureParts, erased_fields, extent
from .results import Alternative, Found, SessionsFound, found, sessions_found
from .retention import RetentionParts, RetentionReport, RetentionRule, RetentionSettings, retention_report
from .search import SearchParts, SearchSettings
from .usage import UsageGroup, UsageParts, UsageRow, UsageTotal, usage_rows, usage_total

if TYPE_CHECKING:
    from .search import Unpack

#: Is called with what is done and the total; an exception that it raises ends the work.
Progress = Callable[[int, int], object]


class ManySessions:
    """The verbs that a store and a manager share."""

    _native: NativeStore | NativeManager

    # Search.

    def search(self, text: str, **settings: Unpack[SearchSettings]) -> Found:
        """Returns the messages of all sessions that match, best first. `SearchSettings` lists the settings."""
        return found(self._native.search(SearchParts(text, dict(settings)), "hits"))

    def search_by_session(self, text: str, **settings: Unpack[SearchSettings]) -> SessionsFound:
        """Returns whole sessions, best first, each with its best hits."""
        return sessions_found(self._native.search(SearchParts(text, dict(settings)), "sessions"))

    def search_alternatives(self, text: str, **settings: Unpack[SearchSettings]) -> builtins.list[Alternative]:
        """Returns queries that find something where this one finds nothing."""
        answer = self._native.search(SearchParts(text, dict(settings)), "alternatives")
        return [Alternative(**it) for it in _json.loads(answer)]

    # Usage.

    @overload
    def usage(
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
    def usage(
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
    def usage(
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
        """Returns the usage of all answers, or of those that the arguments choose; in groups with `by`.

        An answer is to the author of the nearest message above it that has one, among the 256 messages appended before it.
        """
        answer = _json.loads(self._native.usage(UsageParts(by, session, owner, author, model, source, since, until)))
        return usage_total(answer) if by is None else usage_rows(answer)

    # Erasing and retention.

    def erase(self, *, progress: Progress | None = None, **what: Unpack[Erasure]) -> Erased:
        """Erases what is named: no byte of it is in the file, in the search index or in the log afterwards.

        Summaries and copies in forks are named in the outcome, and erased with `with_summaries` and `with_forks`. Copies of
        the file, such as earlier backups, are not erased. If it fails or is interrupted, the same call finishes it.

        >>> import talktree
        >>> store = talktree.Store()
        >>> for id in ("monday", "tuesday"):
        ...     _ = store.session(id).append({"role": "user", "text": "hello"})
        >>> store.erasure_extent(sessions=["monday", "tuesday"]).messages
        2
        >>> store.erase(sessions=["monday", "tuesday"]).extent.sessions
        ['monday', 'tuesday']

        Args:
            progress: Is called with the number of erased messages and entries of transcripts, and their total.
            what: `Erasure` lists the arguments.

        Raises:
            talktree.UnknownSessionError: and `UnknownMessageError`; nothing is erased then.
            talktree.DiskFullError: if there is no room to rewrite the file.
        """
        return Erased(**erased_fields(self._native.erase(ErasureParts(what), progress)))

    def erase_owner(self, owner: str) -> Erased:
        """Erases all sessions, texts, transcripts and usage of an owner. An owner of nothing is no error."""
        return self.erase(owners=[owner])

    def erasure_extent(self, **what: Unpack[Erasure]) -> ErasureExtent:
        """Returns what an erasure would remove, without removing anything."""
        return extent(_json.loads(self._native.erasure_extent(ErasureParts(what))))

    def retention(
        self,
        rules: Iterable[RetentionRule] = (),
        *,
        progress: Progress | None = None,
        **settings: Unpack[RetentionSettings],
    ) -> RetentionReport:
        """Discards the sessions that meet a rule, and returns which these are; with `dry_run` nothing is changed.

        The first rule that a session meets decides. A session that changes meanwhile is left alone.

        >>> import talktree
        >>> store = talktree.Store()
        >>> for id in ("monday", "tuesday", "wednesday"):
        ...     _ = store.session(id).append({"role": "user", "text": "hello"})
        >>> newest = talktree.RetentionRule("newest", keep_sessions=1)
        >>> [session.id for session in store.retention([newest], dry_run=True).sessions]
        ['tuesday', 'monday']
        >>> store.retention([newest]).rules
        [RuleReport(rule='newest', action='trash', sessions=2, messages=2, bytes=64)]

        Args:
            rules: The rules, in order.
            progress: Is called with how many sessions were read, and how many there are as far as is known.
            settings: `RetentionSettings` lists them.

        Raises:
            talktree.RuleMeetsAllError: if every session meets one rule, which may be a mistake; `allow_all` allows it.
        """
        return retention_report(self._native.retention(RetentionParts(rules, dict(settings)), progress))
