"""The settings of a session or a manager: keyword arguments of `Store.session` and `SessionManager`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Literal, TypedDict

from . import _json, compaction
from .blocks import Block, block_of
from .compaction import (
    CompactionOptions,
    CompactionPolicy,
    Executor,
    Summarizer,
    TokenCounter,
    counter_of,
    executor_of,
    options_of,
    policy_of,
    summarizer_of,
)

if TYPE_CHECKING:
    from typing_extensions import Unpack as Unpack


class SessionSettings(TypedDict, total=False):
    """What a session can be given, all of it optional."""

    #: Context blocks by label; a str is a text of the program.
    blocks: Mapping[str, Block | str]
    #: Freezes the prompt: the same bytes until `refresh_prompt`.
    cached_prompt: bool
    #: Offers tools that search and expand the conversation.
    history_tools: bool
    #: Offers a tool that searches all sessions, or those of the owner.
    session_search: Literal["all", "owner"]
    #: The label of a block in which the model searches the sessions of the owner.
    searchable_history: str
    #: The same over all sessions.
    searchable_history_of_all: str
    #: Shortens the answers of tools.
    max_answer_tokens: int
    #: Writes summaries; plain or async.
    summarizer: Summarizer
    #: Chooses what is compacted and writes the summary.
    compaction_policy: CompactionPolicy
    #: Compacts after an append that takes the request over this many tokens.
    compact_after: int
    #: What the threshold is compared with.
    compact_after_history: int
    #: Runs automatic compactions: a `concurrent.futures.Executor`, or a callable that takes a job.
    compact_on: Executor | Callable[[Callable[[], None]], object]
    compaction_options: CompactionOptions
    #: Receives each failure that no verb raises. An exception of a callback is received as it is.
    on_error: Callable[[BaseException], object]
    token_counter: TokenCounter


_CHOICES = {"session_search": ("all", "owner")}
_TYPES: dict[str, type] = {
    "cached_prompt": bool,
    "history_tools": bool,
    "searchable_history": str,
    "searchable_history_of_all": str,
    "max_answer_tokens": int,
    "compact_after": int,
    "compact_after_history": int,
}


def settings_of(settings: Mapping[str, Any], wait: Callable[[Any], Any] = compaction.wait_for) -> dict[str, Any]:
    """Returns settings as the native module takes them; those that are None or False are left out.

    Raises:
        TypeError: naming the setting that is unknown or of a wrong type.
    """
    _json.only_known(settings, SessionSettings)
    checked: dict[str, Any] = {}
    for name, value in settings.items():
        if value is None or value is False:
            continue
        checked[name] = _checked(name, value, wait)
    return checked


def _checked(name: str, value: Any, wait: Callable[[Any], Any]) -> Any:
    if name in _CHOICES and value not in _CHOICES[name]:
        raise ValueError(f"{name} must be one of {', '.join(_CHOICES[name])}, not {value!r}")
    wanted = _TYPES.get(name)
    if wanted is not None and (not isinstance(value, wanted) or (wanted is int and isinstance(value, bool))):
        raise TypeError(f"{name} must be of type {wanted.__name__}, not {type(value).__name__}")
    if wanted is int:
        return _json.count(value, name)
    if wanted is str:
        return _json.is_str(value, name)
    if name == "blocks":
        if not isinstance(value, Mapping):
            raise TypeError(f"blocks must be a dict of blocks by label, not {type(value).__name__}")
        labelled = [(_json.is_str(label, "a label of blocks"), block) for label, block in value.items()]
        return [(label, block_of(block, f"blocks[{label!r}]")) for label, block in labelled]
    if name == "summarizer":
        return summarizer_of(value, wait)
    if name == "compaction_policy":
        return policy_of(value)
    if name == "compact_on":
        return executor_of(value)
    if name == "compaction_options":
        return options_of(value, name)
    if name == "token_counter":
        return counter_of(value)
    if name == "on_error" and not callable(value):
        raise TypeError(f"on_error must be callable, not {type(value).__name__}")
    return value
