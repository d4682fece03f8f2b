"""Messages come back as they were given, whatever JSON they hold."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pytest
import talktree
from talktree import Message, _json


@dataclass
class Note:
    role: str
    text: str
    metadata: dict[str, Any] = field(default_factory=dict)


def texts(chat: talktree.Session) -> list[str]:
    return [message.text for message in chat.history()]


def test_a_dict_a_message_and_a_dataclass_can_be_appended(chat: talktree.Session) -> None:
    chat.append({"role": "user", "text": "one"})
    chat.append(Message.assistant("two"))
    chat.append(Note("user", "three", {"mood": "calm"}))
    chat.append({"role": "user", "parts": [{"type": "text", "text": "four"}]})
    assert texts(chat) == ["one", "two", "three", "four"]
    assert chat.history()[2].metadata == {"mood": "calm"}


@pytest.mark.parametrize(
    "content",
    [
        "hello",
        [{"type": "text", "text": "hello"}],
        [{"type": "input_text", "text": "hello"}],
        [{"type": "image_url", "image_url": {"url": "https://x.example/a.png"}}, {"type": "text", "text": "hello"}],
    ],
)
def test_the_content_of_chat_apis_is_taken_everywhere(content: Any, store: talktree.Store) -> None:
    chat, other = store.session("s"), store.session("other")
    given: talktree.MessageFields = {"role": "user", "content": content}
    first = chat.append(given).id
    chat.append_to(first, given)
    chat.append_root(given)
    chat.append_if_head(chat.head(), given)
    chat.append_all([given])
    chat.append_all_to(first, [given])
    chat.append_all_if_head(chat.head(), [given])
    chat.edit(first, given)
    chat.upsert(given)
    chat.upsert({"id": first, **given})
    chat.update({"id": first, **given})
    chat.import_message(None, given)
    chat.import_messages([(None, given)])
    store.session("whole").import_messages([(None, given)])
    other.append(talktree.Usage(output=1).put_in(given))
    every = [*chat.all_messages(), *store.session("whole").history(), *other.history()]
    assert len(every) == 13 and all(message.text == "hello" and "content" not in message for message in every)
    assert len(store.search("hello", limit=50)) == 13
    assert talktree.model.to_openai_chat([given])[0]["role"] == "user"
    assert "hello" in str(talktree.model.to_anthropic([given]))


def test_a_conversation_of_a_chat_api_is_stored_with_its_calls(chat: talktree.Session) -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Jena"}'}}
    chat.append_all(
        [
            {"role": "user", "content": "Is it warm?"},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "c1", "name": "weather", "content": "21 degrees"},
        ]
    )
    assert chat.tool_stats()["weather"] == talktree.ToolStats(1, 0, 0)
    request = chat.anthropic_request() | {"model": "m", "max_tokens": 9}
    assert talktree.model.validate_for("anthropic", request) == []
    assert [it["role"] for it in request["messages"]] == ["user", "assistant", "user"]


def test_appending_a_message_again_is_a_no_op(chat: talktree.Session) -> None:
    message = Message.user("hello")
    assert chat.append(message).is_new
    again = chat.append(message)
    assert (again.is_new, again.differs, again.id) == (False, False, message.id)
    assert chat.append({"id": message.id, "role": "user", "text": "other"}).differs
    hello: talktree.MessageFields = {"role": "user", "text": "hello"}
    assert chat.append(hello).id != chat.append(hello).id


def test_unknown_parts_and_fields_are_kept(chat: talktree.Session) -> None:
    message = {
        "id": "m1",
        "role": "critic",
        "parts": [{"type": "data-chart", "data": [1, {"x": None}]}, {"type": "text", "text": "", "state": "done"}],
        "mood": {"of": "the day"},
    }
    chat.append(Message(message))
    stored = chat.history()[0]
    assert {name: stored[name] for name in message} == message


@pytest.mark.parametrize(
    "value", [2**63, -(2**200), 10**4000, 1.5, 1e300, "\ud800", "a\udc00b", "😀\u2028\x00", {"": []}]
)
def test_values_come_back_exactly(chat: talktree.Session, value: object) -> None:
    chat.append({"role": "user", "parts": [{"type": "data-x", "data": value}], "metadata": {"value": value}})
    stored = chat.history()[0]
    assert stored.parts[0]["data"] == value
    assert stored.metadata == {"value": value}
    assert type(stored.metadata["value"]) is type(value)


def test_a_lone_surrogate_in_a_text_loses_no_batch(chat: talktree.Session) -> None:
    chat.append_all(
        [
            {"role": "user", "text": "before"},
            {"role": "user", "text": "\ud800 within"},
            {"role": "user", "text": "after"},
        ]
    )
    assert texts(chat) == ["before", "\ud800 within", "after"]


def test_an_integer_that_python_does_not_convert_is_a_decimal(store: talktree.Store) -> None:
    digits = "9" * 5_000
    line = f'{{"role":"user","content":"x","digits":{digits}}}'
    store.import_bytes(line.encode(), format="openai", session="s", keep_source=True)
    source = store.session("s").history()[0].metadata["source"]
    assert source["digits"] == Decimal(digits)


def test_what_is_no_json_is_refused_by_name(chat: talktree.Session) -> None:
    with pytest.raises(ValueError, match=r"message: Out of range float"):
        chat.append({"role": "user", "parts": [], "metadata": float("nan")})
    with pytest.raises(TypeError, match="messages: set cannot be written as JSON"):
        chat.append_all([{"role": "user", "parts": [], "metadata": {1, 2}}])
    assert chat.history() == []


@pytest.mark.parametrize(
    ("message", "says"),
    [
        ("hello", "message must be a dict or a dataclass, not str"),
        (None, "message must be a dict or a dataclass, not NoneType"),
        ({"text": "hello"}, r"message\['role'\] must be a str, not NoneType"),
        ({"role": "user", "text": 5}, r"message\['text'\] must be a str, not int"),
    ],
)
def test_a_wrong_message_is_a_type_error_that_names_it(chat: talktree.Session, message: Any, says: str) -> None:
    with pytest.raises(TypeError, match=says):
        chat.append(message)


def test_a_wrong_batch_is_a_type_error_that_names_the_place(chat: talktree.Session) -> None:
    with pytest.raises(TypeError, match=r"messages\[1\] must be"):
        chat.append_all([{"role": "user", "text": "ok"}, "no"])  # type: ignore[list-item]
    for wrong in ({"role": "user", "text": "x"}, "text", 5):
        with pytest.raises(TypeError, match="messages must be an iterable"):
            chat.append_all(wrong)  # type: ignore[arg-type]
    assert chat.history() == []


def test_a_wrong_shape_is_a_json_error(chat: talktree.Session) -> None:
    cases: list[tuple[dict[str, Any], str]] = [
        ({"parts": "text"}, "expected a sequence"),
        ({}, "the message is empty; give it `parts` or `content`"),
        ({"content": ""}, "the message is empty"),
        ({"content": None}, "the message is empty"),
        ({"content": 5}, "`content` is a text or a list of parts"),
    ]
    for wrong, why in cases:
        with pytest.raises(talktree.JsonError, match=why) as caught:
            chat.append(Message({"role": "user", **wrong}))
        assert caught.value.what == "a message"
    with pytest.raises(UnicodeEncodeError):
        chat.append_to("\ud800", {"role": "user", "text": "x"})


def test_times_are_datetimes(chat: talktree.Session) -> None:
    zone = timezone(timedelta(hours=2))
    time = datetime(2026, 1, 31, 12, 0, 0, 123456, zone)
    chat.append(Message.user("a", created_at=time))
    chat.append({"role": "user", "text": "b", "created_at": time})
    first, second = chat.history()
    assert first.created_at == second.created_at == time
    assert first.created_at.tzinfo == timezone.utc


@pytest.mark.parametrize(
    ("stored", "shown"),
    [
        ("0000-12-31T19:00:00Z", datetime.min),
        ("-0005-01-01T00:00:00Z", datetime.min),
        ("+10000-01-01T04:59:59Z", datetime.max),
        ("0001-01-01T00:00:00Z", datetime.min),
        ("9999-12-31T23:59:59.999999Z", datetime.max),
    ],
)
def test_a_stored_time_that_no_datetime_can_hold_is_the_nearest(stored: str, shown: datetime) -> None:
    message = Message({"id": "m1", "role": "user", "parts": [], "created_at": stored})
    assert message.created_at == shown.replace(tzinfo=timezone.utc)
    assert _json.time(stored) == message.created_at  # of hits, sessions, compactions


def test_a_message_is_plain_json(chat: talktree.Session) -> None:
    chat.append(Message.system("Be brief.", hidden=True, metadata=[1]).sent_by("42", "Ada"))
    (stored,) = chat.raw_history()
    assert json.loads(json.dumps(stored)) == stored
    assert (stored.role, stored.hidden, stored.text, stored.parent) == ("system", True, "Be brief.", None)
    assert stored.metadata == {"value": [1], "author": {"id": "42", "name": "Ada"}}
    assert chat.history() == []


def test_tool_parts(chat: talktree.Session) -> None:
    chat.append(Message.new("assistant", [talktree.tool_call("weather", "c1", {"city": "Jena"})]))
    chat.append(Message.new("tool", [talktree.tool_result("weather", "c1", {"celsius": 21})]))
    chat.append(Message.new("tool", [talktree.tool_error("weather", "c2", "no such city")]))
    assert [message.parts[0]["state"] for message in chat] == ["input-available", "output-available", "output-error"]


def test_a_part_without_a_text_has_none(chat: talktree.Session) -> None:
    parts: list[dict[str, Any]] = [{"type": "text"}, {"type": "text", "text": 5}, {"type": "text", "text": None}, {"type": "text", "text": "hi"}]
    chat.append({"role": "user", "parts": parts})
    assert chat.history()[0].text == "hi"
