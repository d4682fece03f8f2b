"""Reads requests to a provider, one a line; writes the problems of each, as a list, one a line.

Types are those of the provider's own package, read from its annotations: a field that it does not name is a problem, too.
The order of blocks, items and messages is in no type. Those rules are written here from the providers' documents and from
the errors that their servers answer, in another language than `validate_for` and by nothing that it shares.
"""

import collections.abc
import functools
import json
import re
import sys
import types
import typing

import typing_extensions
from typing_extensions import get_type_hints, is_typeddict

# What servers that are compatible with OpenAI's chats added to its messages.
ADDED = {
    "ChatCompletionAssistantMessageParam": {"reasoning_content", "reasoning", "reasoning_text", "reasoning_details"},
    "ChatCompletionMessageFunctionToolCallParam": {"extra_content"},
    "ChatCompletionMessageCustomToolCallParam": {"extra_content"},
}


@functools.cache
def fields(kind):
    """The fields of a typed dictionary with their types, and those that it must have."""
    hints = get_type_hints(kind, include_extras=True)
    bare = {name: strip(hint) for name, hint in hints.items()}
    needed = {name for name, hint in hints.items() if typing.get_origin(hint) in REQUIRED}
    if getattr(kind, "__total__", False):
        needed |= set(kind.__required_keys__)
    return bare, needed


REQUIRED = (typing.Required, typing_extensions.Required)
OPTIONAL = (typing.NotRequired, typing_extensions.NotRequired)


def strip(hint):
    origin = typing.get_origin(hint)
    if origin in REQUIRED + OPTIONAL:
        return strip(typing.get_args(hint)[0])
    if hasattr(hint, "__metadata__"):
        return strip(hint.__origin__)
    return hint


def tags(kind):
    """The values of the field `type` or `role` that a typed dictionary demands."""
    hints, needed = fields(kind)
    found = {}
    for name in ("type", "role"):
        if name in hints and typing.get_origin(hints[name]) in LITERALS:
            found[name] = (set(typing.get_args(hints[name])), name in needed)
    return found


LITERALS = (typing.Literal, typing_extensions.Literal)


@functools.cache
def members(kind):
    """The members of a union, unions within it resolved."""
    found = []
    for member in typing.get_args(kind):
        member = strip(member)
        found += members(member) if is_union(member) else [member]
    return tuple(found)


def is_union(kind):
    return typing.get_origin(kind) in (typing.Union, types.UnionType)


def matches(kind, value):
    """Whether the value says by its type or role that it wants to be of this kind."""
    for name, (words, is_needed) in tags(kind).items():
        if name not in value:
            if is_needed:
                return False
        elif value[name] not in words:
            return False
    return True


def typed(kind, value, place, problems):
    kind = strip(kind)
    origin = typing.get_origin(kind)
    if kind in (typing.Any, object):
        return
    if is_union(kind):
        return union(kind, value, place, problems)
    if origin in LITERALS:
        if value not in typing.get_args(kind) or isinstance(value, (dict, list)):
            problems.append(f"{place}: {short(value)} is none of {typing.get_args(kind)}")
        return
    if is_typeddict(kind):
        if not isinstance(value, dict):
            problems.append(f"{place}: {short(value)} is not a {kind.__name__}")
            return
        hints, needed = fields(kind)
        for name in needed - value.keys():
            problems.append(f"{place}.{name}: missing in {kind.__name__}")
        for name, inner in value.items():
            if name in hints:
                typed(hints[name], inner, f"{place}.{name}", problems)
            elif name not in ADDED.get(kind.__name__, ()):
                problems.append(f"{place}.{name}: no field of {kind.__name__}")
        return
    if isinstance(kind, typing.TypeVar):
        return
    lists = (list, collections.abc.Iterable, collections.abc.Sequence)
    if origin in lists or kind in lists or getattr(origin, "__name__", "") == "SequenceNotStr":
        if not isinstance(value, list):
            problems.append(f"{place}: {short(value)} is not a list")
            return
        for at, inner in enumerate(value):
            for of in typing.get_args(kind):
                typed(of, inner, f"{place}[{at}]", problems)
        return
    if origin in (dict, collections.abc.Mapping) or kind is dict:
        if not isinstance(value, dict):
            problems.append(f"{place}: {short(value)} is not an object")
            return
        if typing.get_args(kind):
            for name, inner in value.items():
                typed(typing.get_args(kind)[1], inner, f"{place}.{name}", problems)
        return
    plain = {str: str, int: int, float: (int, float), bool: bool, type(None): type(None)}
    if kind in plain:
        is_bool = isinstance(value, bool)
        if not isinstance(value, plain[kind]) or (is_bool and kind is not bool):
            problems.append(f"{place}: {short(value)} is not {kind.__name__}")
        return
    # Open files, paths and the models that the package reads: never what a request in JSON holds.
    problems.append(f"{place}: {short(value)} is not a {kind}")


def union(kind, value, place, problems):
    candidates = members(kind)
    if isinstance(value, dict):
        wanted = [member for member in candidates if is_typeddict(member) and matches(member, value)]
        candidates = wanted or candidates
    tries = []
    for candidate in candidates:
        found = []
        typed(candidate, value, place, found)
        if not found:
            return
        tries.append(found)
    problems += min(tries, key=len)


def short(value):
    return json.dumps(value)[:60]


def is_blank(text):
    return isinstance(text, str) and not text.strip()


ID = re.compile(r"[a-zA-Z0-9_-]+\Z")


def anthropic_order(request, add):
    """The order of messages and blocks of the Anthropic messages API."""
    messages = request["messages"]
    for at, block in enumerate(request.get("system") or []):
        if isinstance(block, dict) and is_blank(block.get("text")):
            add(f"system[{at}]: blank text")
    seen, expected, turn = set(), None, {}
    for at, message in enumerate(messages):
        role, content = message["role"], message["content"]
        place = f"messages[{at}]"
        is_last = at + 1 == len(messages)
        if at == 0 and role != "user":
            add(f"{place}: the first is not a user's")
        if at and messages[at - 1]["role"] == role:
            add(f"{place}: {role} twice in a row")
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        if not blocks and not (is_last and role == "assistant"):
            add(f"{place}: empty")
        for block in flat(blocks):
            if block["type"] == "text" and is_blank(block["text"]):
                add(f"{place}: blank text")
        results = [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]
        if sorted(results) != sorted(expected or []):
            add(f"{place}: results {results} for calls {expected}")
        expected = None
        kinds = [block["type"] for block in blocks]
        if role == "user":
            if "tool_result" in kinds[len(results):]:
                add(f"{place}: a result behind other content")
            for block in blocks:
                if block["type"] == "tool_result" and block.get("is_error") and not block.get("content"):
                    add(f"{place}: an error without a reason")
                if block["type"] not in ("tool_result", "text", "image", "document", "search_result", "container_upload"):
                    add(f"{place}: {block['type']} from a user")
            if set(kinds) - {"tool_result"}:
                for use in (use for use, is_open in turn.items() if is_open):
                    add(f"{place}: the provider's call {use} has no result")
                turn = {}
            continue
        expected = [block["id"] for block in blocks if block["type"] == "tool_use"]
        for place_in, block in enumerate(blocks):
            kind = block["type"]
            before = kinds[place_in - 1] if place_in else ""
            if before == kind == "thinking":
                add(f"{place}.content[{place_in}]: thinking beside thinking")
            if before == "tool_use" and kind not in ("tool_use", "thinking", "redacted_thinking"):
                add(f"{place}.content[{place_in}]: {kind} behind a call")
            if kind.endswith("tool_use"):
                if block["id"] in seen or not ID.match(block["id"]):
                    add(f"{place}.content[{place_in}]: the id {block['id']!r}")
                seen.add(block["id"])
            if kind == "tool_use" and not re.fullmatch("[a-zA-Z0-9_-]{1,128}", block["name"]):
                add(f"{place}.content[{place_in}]: the name {block['name']!r}")
            if kind == "tool_result" or kind in ("image", "document", "search_result"):
                add(f"{place}.content[{place_in}]: {kind} from the model")
            if kind == "thinking" and not block["signature"]:
                add(f"{place}.content[{place_in}]: no signature")
            if kind == "redacted_thinking" and not block["data"]:
                add(f"{place}.content[{place_in}]: no data")
            called = (block.get("caller") or {}).get("tool_id")
            if called is not None and called not in turn:
                add(f"{place}.content[{place_in}]: the caller {called} is not here")
            if kind in ("server_tool_use", "mcp_tool_use"):
                if kind == "server_tool_use" and not block["id"].startswith("srvtoolu_"):
                    add(f"{place}.content[{place_in}]: the id {block['id']!r}")
                turn[block["id"]] = True
            elif kind.endswith("_tool_result"):
                if not turn.get(block["tool_use_id"]):
                    add(f"{place}.content[{place_in}]: a result without its call")
                turn[block["tool_use_id"]] = False
        if kinds and kinds[-1] in ("thinking", "redacted_thinking"):
            add(f"{place}: ends with thinking")
        if is_last and blocks and kinds[-1] == "text" and blocks[-1]["text"] != blocks[-1]["text"].rstrip():
            add(f"{place}: ends with white space")
    if expected:
        add("the last calls have no results")
    models = [message for message in messages if message["role"] == "assistant"]
    for use in (use for use, is_open in turn.items() if is_open):
        last = models[-1]["content"] if models else []
        last = last if isinstance(last, list) else []
        kinds = [block["type"] for block in last]
        at = next((at for at, block in enumerate(last) if block.get("id") == use), None)
        pauses = at is not None and all(kind.endswith("tool_use") for kind in kinds[at:])
        calls = any((block.get("caller") or {}).get("tool_id") == use for block in last)
        if not pauses and not calls:
            add(f"the provider's call {use} has no result")


def flat(blocks):
    for block in blocks:
        yield block
        if block["type"] == "tool_result" and isinstance(block.get("content"), list):
            yield from block["content"]


def chat_order(messages, add):
    """The order of messages of the chat completions API."""
    if not messages:
        add("no messages")
    waiting = []
    for at, message in enumerate(messages):
        place, content = f"messages[{at}]", message.get("content")
        if message["role"] == "tool":
            if message["tool_call_id"] in waiting:
                waiting.remove(message["tool_call_id"])
            else:
                add(f"{place}: no call {message['tool_call_id']!r} before it")
        else:
            if waiting:
                add(f"{place}: calls without results: {waiting}")
            waiting = [call["id"] for call in message.get("tool_calls") or []]
            if len(set(waiting)) < len(waiting):
                add(f"{place}: an id twice")
            if message["role"] == "assistant" and "tool_calls" in message and not waiting:
                add(f"{place}: an empty list of calls")
            for call in message.get("tool_calls") or []:
                of = call.get("function") or call.get("custom")
                if not re.fullmatch("[a-zA-Z0-9_-]{1,64}", of["name"]):
                    add(f"{place}: the name {of['name']!r}")
                if not ID.match(call["id"]) or len(call["id"]) > 64:
                    add(f"{place}: the id {call['id']!r}")
            if message["role"] != "assistant" or not (waiting or message.get("audio") or message.get("refusal") or message.get("function_call")):
                if not content or is_blank(content):
                    add(f"{place}: no content")
        for part in content if isinstance(content, list) else []:
            if is_blank(part.get("text")):
                add(f"{place}: blank text")
            if "file" in part and "file_data" in part["file"] and not part["file"].get("filename"):
                add(f"{place}: a file without a name")
    if waiting:
        add(f"calls without results: {waiting}")


def responses_order(items, add):
    """The order of items of the responses API."""
    if not items:
        add("no items")
    prefixes = {"reasoning": "rs", "message": "msg", "function_call": "fc", "custom_tool_call": "ctc"}
    ids, calls, answered = set(), {}, set()
    for at, item in enumerate(items):
        place, kind, own = f"input[{at}]", item.get("type", "message"), item.get("id")
        if own is not None:
            if own in ids or len(own) > 64 or not own.startswith(prefixes.get(kind, "")) or not ID.match(own):
                add(f"{place}: the id {own!r}")
            ids.add(own)
        if kind == "reasoning":
            after = items[at + 1] if at + 1 < len(items) else {}
            of_model = after.get("role") == "assistant" or after.get("type", "").endswith("_call") or after.get("type") in ("reasoning", "mcp_list_tools")
            if not of_model or after.get("id") is None:
                add(f"{place}: its own item does not follow")
        elif kind in ("function_call", "custom_tool_call"):
            if item["call_id"] in calls or not ID.match(item["call_id"]) or len(item["call_id"]) > 64:
                add(f"{place}: the call {item['call_id']!r}")
            if not re.fullmatch("[a-zA-Z0-9_-]{1,64}", item["name"]):
                add(f"{place}: the name {item['name']!r}")
            calls[item["call_id"]] = kind
        elif kind in ("function_call_output", "custom_tool_call_output"):
            if not kind.startswith(calls.get(item.get("call_id"), "no call")) or item.get("call_id") in answered:
                add(f"{place}: an output without its call")
            answered.add(item.get("call_id"))
        elif kind == "message":
            content = item["content"]
            if not content or is_blank(content):
                add(f"{place}: no content")
            for part in content if isinstance(content, list) else []:
                if is_blank(part.get("text")) or is_blank(part.get("refusal")):
                    add(f"{place}: blank text")
                if "file_data" in part and not part.get("filename"):
                    add(f"{place}: a file without a name")
                if (item["role"] == "assistant") != (part["type"] in ("output_text", "refusal")):
                    add(f"{place}: {part['type']} from {item['role']}")
    for call in calls.keys() - answered:
        add(f"the call {call!r} has no output")


def checker(provider):
    """Returns the type of a request of the provider, and the check of its order."""
    if provider == "anthropic":
        from anthropic.types.beta import BetaMessageParam, BetaTextBlockParam

        Request = typing_extensions.TypedDict(
            "Request",
            {
                "system": typing_extensions.NotRequired[typing.Union[str, list[BetaTextBlockParam]]],
                "container": typing_extensions.NotRequired[str],
                "messages": list[BetaMessageParam],
            },
        )
        return Request, anthropic_order
    if provider == "chat":
        from openai.types.chat import ChatCompletionMessageParam

        return list[ChatCompletionMessageParam], chat_order
    from openai.types.responses.response_input_item_param import ResponseInputItemParam

    return list[ResponseInputItemParam], responses_order


def main():
    kind, order = checker(sys.argv[1])
    for line in sys.stdin:
        request, problems = json.loads(line), []
        typed(kind, request, "request", problems)
        if not problems:
            order(request, problems.append)
        sys.stdout.write(json.dumps(problems[:5]) + "\n")


main()
