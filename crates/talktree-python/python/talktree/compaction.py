"""Compaction: summaries that replace old messages when a history is read."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from . import _json, _native
from .message import Message


@dataclass(frozen=True)
class Summary:
    """A summary with what else is known of it."""

    text: str
    #: The model that wrote it.
    model: str | None = None
    #: Any JSON that is stored with it.
    details: Any = None


#: What a summarizer returns; None declines.
SummaryLike = Summary | str

#: Writes a summary for a prompt, at once or as an awaitable; None declines.
Summarizer = Callable[[str], "SummaryLike | None | Awaitable[SummaryLike | None]"]


def summary_parts(summary: SummaryLike, what: str = "summary") -> tuple[str, str | None, str | None]:
    """Returns a summary as the native module takes it."""
    if isinstance(summary, str):
        return _json.is_str(summary, what), None, None
    if not isinstance(summary, Summary):
        raise TypeError(f"{what} must be a str or a Summary, not {type(summary).__name__}")
    details = None if summary.details is None else _json.dumps(summary.details, f"{what}.details")
    return _json.is_str(summary.text, f"{what}.text"), _json.maybe_str(summary.model, f"{what}.model"), details


async def _awaited(awaitable: Awaitable[Any]) -> Any:
    return await awaitable


def wait_for(answer: Any) -> Any:
    """Returns what an awaitable gives, in an event loop of its own; anything else as it is.

    `talktree.aio` waits in the loop of the program instead.
    """
    return asyncio.run(_awaited(answer)) if inspect.isawaitable(answer) else answer


def summarizer_of(summarizer: Summarizer, wait: Callable[[Any], Any] = wait_for) -> Callable[[str], Any]:
    """Returns a summarizer as the native module calls it."""
    if not callable(summarizer):
        raise TypeError(f"summarizer must be callable, not {type(summarizer).__name__}")

    def call(prompt: str) -> tuple[str, str | None, str | None] | None:
        answer = wait(summarizer(prompt))
        return None if answer is None else summary_parts(answer, "what the summarizer returns")

    return call


@dataclass(frozen=True)
class CompactionOptions:
    """What is compacted, and how long a summary may be; None is the library's default.

    `keep_recent_tokens` is how much of the end stays as it is, `protect_head` how many messages at the start.
    """

    protect_head: int | None = None
    keep_recent_tokens: int | None = None
    min_tail: int | None = None
    max_step_tokens: int | None = None
    max_tool_chars: int | None = None
    target_share: float | None = None
    min_summary_tokens: int | None = None


def options_of(options: CompactionOptions | None, what: str = "options") -> CompactionOptions:
    """Returns the options, or the defaults; `what` names the argument in errors."""
    if options is None:
        return CompactionOptions()
    if not isinstance(options, CompactionOptions):
        raise TypeError(f"{what} must be CompactionOptions, not {type(options).__name__}")
    _json.check_counts(
        options,
        what,
        "protect_head",
        "keep_recent_tokens",
        "min_tail",
        "max_step_tokens",
        "max_tool_chars",
        "min_summary_tokens",
    )
    if options.target_share is not None and not hasattr(options.target_share, "__float__"):
        raise TypeError(f"{what}.target_share must be a float, not {type(options.target_share).__name__}")
    return options


@dataclass(frozen=True)
class WindowUsage:
    """The tokens of the window, by part."""

    prompt: int
    tools: int
    summaries: int
    head: int
    middle: int
    tail: int
    total: int


@dataclass(frozen=True)
class RequestTokens:
    """The tokens of a request."""

    prompt: int
    tools: int
    messages: int
    total: int


@dataclass(frozen=True)
class CompactionWindow:
    """What a compaction policy chooses from."""

    messages: list[Message]
    #: The tokens of each message.
    tokens: list[int]
    usage: WindowUsage
    threshold: int | None
    #: The range of messages that talktree would compact, and the prompt for its summary; None if there is nothing.
    suggested: range | None
    prompt: str | None


@dataclass(frozen=True)
class RangeSummary:
    """What a compaction policy chose: the first and the last message, and their summary."""

    first: str
    last: str
    summary: SummaryLike


class CompactionPolicy(Protocol):
    """Chooses what is compacted and writes the summary; None declines."""

    def __call__(self, window: CompactionWindow, /) -> RangeSummary | None:
        """Returns the range and its summary."""


def policy_of(policy: CompactionPolicy) -> Callable[..., Any]:
    """Returns a policy as the native module calls it."""
    if not callable(policy):
        raise TypeError(f"compaction_policy must be callable, not {type(policy).__name__}")

    def call(
        messages: str,
        tokens: list[int],
        usage: str,
        threshold: int | None,
        suggested: tuple[int, int] | None,
        prompt: str | None,
    ) -> tuple[str, str, tuple[str, str | None, str | None]] | None:
        chosen = policy(
            CompactionWindow(
                _json.messages(messages),
                tokens,
                WindowUsage(**_json.loads(usage)),
                threshold,
                None if suggested is None else range(*suggested),
                prompt,
            )
        )
        if chosen is None:
            return None
        if not isinstance(chosen, RangeSummary):
            raise TypeError(f"a compaction policy returns a RangeSummary or None, not {type(chosen).__name__}")
        first, last = _json.is_str(chosen.first, "first"), _json.is_str(chosen.last, "last")
        return first, last, summary_parts(chosen.summary)

    return call


class Executor(Protocol):
    """Runs jobs, as `concurrent.futures.Executor` does."""

    def submit(self, job: Callable[[], None], /) -> object:
        """Runs a job in any thread and at any time."""


def executor_of(executor: Executor | Callable[[Callable[[], None]], object]) -> Callable[[Any], None]:
    """Returns an executor as the native module calls it."""
    submit = getattr(executor, "submit", None)
    run: Any = submit if callable(submit) else executor
    if not callable(run):
        raise TypeError(f"compact_on must be an executor or callable, not {type(executor).__name__}")

    def call(job: Callable[[], None]) -> None:
        run(job)

    return call


@dataclass(frozen=True)
class TokenCounter:
    """Counts the tokens of a text. Its figures are stored with the messages, under its name."""

    name: str
    count: Callable[[str], float]


def counter_of(counter: TokenCounter) -> tuple[str, Callable[[str], float]]:
    """Returns a counter as the native module takes it."""
    if not isinstance(counter, TokenCounter):
        raise TypeError(f"token_counter must be a TokenCounter, not {type(counter).__name__}")
    if not callable(counter.count):
        raise TypeError(f"token_counter.count must be callable, not {type(counter.count).__name__}")
    return _json.is_str(counter.name, "token_counter.name"), counter.count


@dataclass(frozen=True)
class Compaction:
    """A summary and the range that it replaces."""

    id: str
    first: str
    last: str
    #: How many stored messages it covers.
    count: int
    summary: str
    tokens_before: int
    tokens_after: int
    created_at: datetime
    #: The summaries inside its range.
    nested: list[str]
    model: str | None = None
    details: Any = None


def compaction(fields: dict[str, Any]) -> Compaction:
    """Returns the compaction of its JSON."""
    fields["created_at"] = _json.time(fields["created_at"])
    fields.setdefault("nested", [])
    return Compaction(**fields)


@dataclass(frozen=True)
class CompactionStatus:
    """Whether a compaction is `shown`, `under` another one, or `off_path`."""

    status: str
    #: The compaction it is under.
    under: str | None = None


@dataclass(frozen=True)
class Compacted:
    """A compaction that was added."""

    id: str
    messages: int
    tokens_before: int
    tokens_after: int
    status: CompactionStatus

    @property
    def is_shown(self) -> bool:
        """Whether the history shows it."""
        return self.status.status == "shown"


def compacted(
    id: str, messages: int, tokens_before: int, tokens_after: int, status: str, under: str | None
) -> Compacted:
    return Compacted(id, messages, tokens_before, tokens_after, CompactionStatus(status, under))


@dataclass(frozen=True)
class Nothing:
    """There is nothing to compact; it is false in a condition."""

    why: str

    def __bool__(self) -> bool:
        return False

    def __str__(self) -> str:
        return self.why


class CompactionPlan:
    """A range to compact now, and the prompt for its summary. `Session.commit` stores the summary."""

    def __init__(self, native: _native.Plan) -> None:
        self._native = native

    @property
    def prompt(self) -> str:
        """The prompt for a summarizer."""
        return self._native.prompt

    @property
    def leaf(self) -> str:
        """The leaf of the path."""
        return self._native.leaf

    @property
    def first(self) -> str:
        """The first message or summary of the range."""
        return self._native.first

    @property
    def last(self) -> str:
        """The last message or summary of the range."""
        return self._native.last

    @property
    def messages(self) -> int:
        """How many messages the range has."""
        return self._native.messages

    @property
    def summaries(self) -> list[str]:
        """The summaries in the range."""
        return self._native.summaries

    @property
    def tokens(self) -> int:
        """How many tokens the range has."""
        return self._native.tokens

    @property
    def target_tokens(self) -> int:
        """How many tokens the summary should have."""
        return self._native.target_tokens

    @property
    def usage(self) -> WindowUsage:
        """The tokens of the window before the compaction, by part."""
        return WindowUsage(**_json.loads(self._native.usage))

    @property
    def expected_total(self) -> int:
        """How many tokens the window will have."""
        return self._native.expected_total

    def __repr__(self) -> str:
        return f"<CompactionPlan of {self.messages} messages, {self.tokens} tokens>"


class BranchSummaryPlan:
    """A checkout and the prompt for a summary of the branch it leaves."""

    def __init__(self, native: _native.BranchPlan) -> None:
        self._native = native

    @property
    def prompt(self) -> str:
        """The prompt for a summarizer."""
        return self._native.prompt

    @property
    def from_id(self) -> str:
        """The message that the head leaves."""
        return self._native.from_id

    @property
    def to_id(self) -> str:
        """The message that the head goes to."""
        return self._native.to_id

    @property
    def messages(self) -> int:
        """How many messages and summaries the branch has."""
        return self._native.messages

    @property
    def tokens(self) -> int:
        """How many tokens they have."""
        return self._native.tokens

    def __repr__(self) -> str:
        return f"<BranchSummaryPlan of {self.messages} messages, {self.tokens} tokens>"
