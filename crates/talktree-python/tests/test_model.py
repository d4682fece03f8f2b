"""Requests for models, and what they answer."""

from __future__ import annotations

from typing import Any, get_args

import pytest
import talktree
from talktree import Block, Message, model


def test_whole_requests(store: talktree.Store) -> None:
    chat = store.session("s", blocks={"soul": "Be brief.", "memory": Block.stored()}, cached_prompt=True)
    question = chat.append(Message.user("Is it warm?").sent_by("1", "Ada")).id
    own = {"name": "weather", "description": "The weather", "input_schema": {"type": "object"}}
    request = chat.anthropic_request(tools=[own], authors="name", cached_history=True)
    assert "Be brief." in request["system"][0]["text"]
    assert [tool["name"] for tool in request["tools"]] == ["weather", "set_context"]
    assert "Ada" in str(request["messages"])
    assert model.validate_for("anthropic", request | {"model": "m", "max_tokens": 9}) == []
    assert chat.openai_chat_request()["messages"][0]["role"] == "system"
    assert chat.openai_responses_request()["input"][-1]["role"] == "user"
    chat.append(Message.assistant("Yes."))
    assert len(chat.at(question).anthropic_request()["messages"]) == 1
    assert len(chat.anthropic_request(truncated=talktree.TruncateOptions(keep_whole=1))["messages"]) >= 2
    with pytest.raises(ValueError, match="authors must be"):
        chat.anthropic_request(authors="all")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="tools must be a list of dicts, not dict"):
        chat.anthropic_request(tools=own)  # type: ignore[arg-type]


ANSWERS: dict[str, dict[str, Any]] = {
    "anthropic": {"model": "m", "content": [{"type": "text", "text": "Warm."}], "usage": {"output_tokens": 3}},
    "openai_chat": {
        "model": "m",
        "choices": [{"message": {"role": "assistant", "content": "Warm."}}],
        "usage": {"completion_tokens": 3},
    },
    "openai_responses": {
        "model": "m",
        "output": [{"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Warm."}]}],
        "usage": {"output_tokens": 3},
    },
}


@pytest.mark.parametrize("provider", ANSWERS)
def test_answers_of_each_provider(chat: talktree.Session, provider: str) -> None:
    assert getattr(model, f"from_{provider}")(ANSWERS[provider]).text == "Warm."
    assert model.from_response(ANSWERS[provider]).text == "Warm."
    answer = chat.append_answer(ANSWERS[provider])
    used = talktree.Usage.of(answer)
    assert answer.text == "Warm." and used is not None and (used.model, used.output) == ("m", 3)
    assert chat.history() == [answer]


def test_an_error_of_a_provider_is_no_answer(chat: talktree.Session) -> None:
    with pytest.raises(talktree.NoAnswerError) as caught:
        chat.append_answer({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}})
    assert "Overloaded" in caught.value.why and chat.history() == []


def test_views_break_no_rule(chat: talktree.Session) -> None:
    messages = [
        Message.user("a"),
        Message.new("assistant", [talktree.tool_call("t", "c.1", {"x": "\ud800"})]),
        Message.user("b"),
    ]
    for provider in get_args(model.Provider):
        request = getattr(model, f"to_{provider}")(messages)
        assert model.validate_for(provider, request) == [], provider
    assert len(model.sanitize(messages)) >= 3
    assert (
        model.truncate([Message.user("x" * 50_000)] * 9, talktree.TruncateOptions(max_text_chars=100))[0].text
        != "x" * 50_000
    )
    named = model.name_authors([Message.user("hello").sent_by(name="Ada")])
    assert "Ada" in named[0].text


def test_problems_are_found() -> None:
    problems = model.validate_for("openai_chat", [{"role": "tool", "content": "x", "tool_call_id": "nobody"}])
    assert problems and problems[0].place and problems[0].what
