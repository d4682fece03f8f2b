"""Tools for a model, over the context, the history and the other sessions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from . import _json, _native
from .compaction import wait_for
from .message import Message, MessageLike


@dataclass(frozen=True)
class ToolCall:
    """A call of a tool of the program."""

    id: str
    name: str
    input: Any


#: Tools of the program: functions by name that take the fields of the input, or one function that takes each call.
ProgramTools = Mapping[str, Callable[..., Any]] | Callable[[ToolCall], Any]


def runner_of(tools: ProgramTools | None, wait: Callable[[Any], Any] = wait_for) -> Callable[[str, str, str], str]:
    """Returns tools as the native module calls them."""
    if tools is not None and not isinstance(tools, Mapping) and not callable(tools):
        raise TypeError(f"tools must be a dict of functions or callable, not {type(tools).__name__}")

    def run(id: str, name: str, input: str) -> str:
        call = ToolCall(id, name, _json.loads(input))
        if tools is None or isinstance(tools, Mapping):
            tool = None if tools is None else tools.get(name)
            if tool is None:
                raise LookupError(f"there is no tool {name!r}")
            output = tool(**call.input) if isinstance(call.input, dict) else tool(call.input)
        else:
            output = tools(call)
        return _json.dumps(wait(output), f"what the tool {name!r} returns")

    return run


class Tools:
    """The tools of a session.

    >>> import talktree
    >>> chat = talktree.Store().session("s", blocks={"memory": talktree.Block.stored()})
    >>> chat.tools.names()
    ['set_context']
    >>> chat.tools.call("set_context", {"label": "memory", "content": "Likes coffee."})
    'Written to "memory": 4 tokens'
    """

    def __init__(self, native: _native.Session) -> None:
        self._native = native

    def names(self) -> list[str]:
        """Returns the names of the tools."""
        return self._native.tool_names()

    def anthropic(self) -> list[dict[str, Any]]:
        """Returns the tools for Anthropic's messages API."""
        return self._in_format("anthropic")

    def openai_chat(self) -> list[dict[str, Any]]:
        """Returns the tools for OpenAI's chat completions API."""
        return self._in_format("openai_chat")

    def openai_responses(self) -> list[dict[str, Any]]:
        """Returns the tools for OpenAI's responses API."""
        return self._in_format("openai_responses")

    def mcp(self) -> list[dict[str, Any]]:
        """Returns the tools for a server of the Model Context Protocol."""
        return self._in_format("mcp")

    def _in_format(self, name: str) -> list[dict[str, Any]]:
        tools: list[dict[str, Any]] = _json.loads(self._native.tools(name))
        return tools

    def call(self, name: str, input: Mapping[str, Any]) -> str:
        """Runs a tool and returns its answer for the model; a wrong input is an answer, too."""
        return self._native.call_tool(_json.is_str(name, "name"), _json.dumps(input, "input"))

    def answer(self, message: MessageLike, tools: ProgramTools | None = None) -> Message | None:
        """Runs the calls of a message, stores their results below it, and returns the message with them.

        The tools of talktree run by themselves; `tools` are those of the program, plain or async. An exception of a tool is
        its result, which the model reads. Calls that have a result are not run again. What is no `Exception`, such as
        `KeyboardInterrupt` or a cancellation, is raised: its call has no result then, nor have those after it.

        Returns:
            None if the message has no calls: the model has answered.
        """
        return self._answer(message, tools, wait_for)

    def _answer(self, message: MessageLike, tools: ProgramTools | None, wait: Callable[[Any], Any]) -> Message | None:
        return _json.maybe_message(self._native.answer(_json.message_text(message), runner_of(tools, wait)))
