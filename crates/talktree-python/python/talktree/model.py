"""Requests to models and their answers.

`Session.anthropic_request` and its siblings make a whole request. These functions convert single lists of messages:

>>> from talktree import Message, model
>>> model.to_openai_chat([Message.user("Is it warm?")])
[{'content': 'Is it warm?', 'role': 'user'}]
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from . import _json, _native
from .message import Message, MessageLike

#: The formats of requests that can be checked.
Provider = Literal["anthropic", "openai_chat", "openai_responses", "ai_sdk"]
#: The providers whose streams are read.
StreamProvider = Literal["anthropic", "openai_chat", "openai_responses"]
#: What a line before a message says: who wrote it, or also when.
AuthorLine = Literal["name", "name_and_time"]


@dataclass(frozen=True)
class TruncateOptions:
    """How old messages are shortened; None is the library's default."""

    #: How many of the newest messages stay whole.
    keep_whole: int | None = None
    max_text_chars: int | None = None
    max_output_chars: int | None = None
    #: The boundary moves this many messages at once, so that a provider's cache stays valid in between.
    step: int | None = None


def author_line_of(line: AuthorLine, what: str) -> AuthorLine:
    """Returns the line; `what` names the argument in errors."""
    if line not in get_args(AuthorLine):
        raise ValueError(f"{what} must be 'name' or 'name_and_time', not {line!r}")
    return line


def truncate_options_of(options: TruncateOptions, what: str) -> TruncateOptions:
    """Returns the options; `what` names the argument in errors."""
    if not isinstance(options, TruncateOptions):
        raise TypeError(f"{what} must be TruncateOptions, not {type(options).__name__}")
    _json.check_counts(options, what, "keep_whole", "max_text_chars", "max_output_chars", "step")
    return options


class RequestParts:
    """What a request has besides the conversation, as the native module takes it."""

    def __init__(
        self,
        tools: Sequence[Mapping[str, Any]],
        truncated: TruncateOptions | None,
        authors: AuthorLine | None,
        cached_history: bool,
        prefill: bool,
    ) -> None:
        if isinstance(tools, (str, Mapping)):
            raise TypeError(f"tools must be a list of dicts, not {type(tools).__name__}")
        self.tools = _json.dumps(list(tools), "tools") if tools else None
        self.truncated = None if truncated is None else truncate_options_of(truncated, "truncated")
        self.authors = None if authors is None else author_line_of(authors, "authors")
        self.cached_history = cached_history
        self.prefill = prefill


def to_anthropic(messages: Iterable[MessageLike]) -> dict[str, Any]:
    """Returns messages as Anthropic's messages API takes them: `system` and `messages`."""
    request: dict[str, Any] = _json.loads(_native.to_model(_json.messages_text(messages), "anthropic"))
    return request


def to_openai_chat(messages: Iterable[MessageLike]) -> Any:
    """Returns messages as OpenAI's chat completions API takes them."""
    return _json.loads(_native.to_model(_json.messages_text(messages), "openai_chat"))


def to_openai_responses(messages: Iterable[MessageLike]) -> Any:
    """Returns messages as OpenAI's responses API takes them."""
    return _json.loads(_native.to_model(_json.messages_text(messages), "openai_responses"))


def to_ai_sdk(messages: Iterable[MessageLike]) -> Any:
    """Returns messages as the Vercel AI SDK takes them."""
    return _json.loads(_native.to_model(_json.messages_text(messages), "ai_sdk"))


def from_response(response: Mapping[str, Any]) -> Message:
    """Returns the answer of any provider as a message.

    Raises:
        talktree.NoAnswerError: if it holds no answer, such as an error of the provider.
    """
    return _from(response, None)


def from_anthropic(response: Mapping[str, Any]) -> Message:
    """Returns an answer of Anthropic's messages API as a message."""
    return _from(response, "anthropic")


def from_openai_chat(response: Mapping[str, Any]) -> Message:
    """Returns an answer of OpenAI's chat completions API as a message."""
    return _from(response, "openai_chat")


def from_openai_responses(response: Mapping[str, Any]) -> Message:
    """Returns an answer of OpenAI's responses API as a message."""
    return _from(response, "openai_responses")


def _from(response: Mapping[str, Any], format: str | None) -> Message:
    return Message(_json.loads(_native.from_response(_json.dumps(response, "response"), format)))


def sanitize(messages: Iterable[MessageLike]) -> list[Message]:
    """Returns messages whose calls and results are complete: what has no partner is completed or left out."""
    return _json.messages(_native.sanitize(_json.messages_text(messages)))


def truncate(messages: Iterable[MessageLike], options: TruncateOptions | None = None) -> list[Message]:
    """Returns messages with the old ones shortened."""
    given = TruncateOptions() if options is None else truncate_options_of(options, "options")
    return _json.messages(_native.truncate(_json.messages_text(messages), given))


def name_authors(messages: Iterable[MessageLike], line: AuthorLine = "name") -> list[Message]:
    """Returns messages with a line before each that names who wrote it."""
    return _json.messages(_native.name_authors(_json.messages_text(messages), author_line_of(line, "line")))


@dataclass(frozen=True)
class Problem:
    """What a provider would refuse."""

    place: str
    what: str


def validate_for(provider: Provider, request: object) -> list[Problem]:
    """Returns what a provider would refuse in a request.

    >>> from talktree import model
    >>> model.validate_for("anthropic", {"messages": []})[0].place
    'messages'
    """
    if provider not in get_args(Provider):
        raise ValueError(f"provider must be one of {', '.join(get_args(Provider))}, not {provider!r}")
    return [Problem(**it) for it in _json.loads(_native.validate_for(provider, _json.dumps(request, "request")))]
