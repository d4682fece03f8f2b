"""A bot for many people: a memory of each person, tools, and summaries in the background. It runs without a network.

python examples/bot.py [bot.db]
"""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import talktree


def send(request: dict[str, Any]) -> dict[str, Any]:
    """Replaces the call of a provider: it asks for the weather once, notes something, and answers."""
    results = [
        block for message in request["messages"][-1:] for block in message["content"] if block["type"] == "tool_result"
    ]
    if results:
        text = f"It is warm. ({len(results)} tools answered.)"
        return {"content": [{"type": "text", "text": text}], "usage": {"input_tokens": 90, "output_tokens": 9}}
    calls = [
        {"type": "tool_use", "id": "t1", "name": "weather", "input": {"city": "Jena"}},
        {"type": "tool_use", "id": "t2", "name": "set_context", "input": {"label": "memory", "content": "Likes tea."}},
    ]
    return {"content": calls, "usage": {"input_tokens": 60, "output_tokens": 20}}


def weather(city: str) -> dict[str, Any]:
    """A tool of the program."""
    return {"city": city, "celsius": 21}


def turn(chat: talktree.Session, text: str) -> str:
    """Asks and answers until the model calls nothing."""
    chat.append(talktree.Message.user(text))
    while True:
        request = chat.anthropic_request() | {"model": "large", "max_tokens": 1024}
        answer = chat.append_answer(send(request))
        if chat.tools.answer(answer, {"weather": weather}) is None:
            return answer.text


def main(path: str | None) -> None:
    """Runs the bot."""
    with ThreadPoolExecutor(1) as worker, talktree.Store(path) as store:
        bot = talktree.SessionManager(
            store,
            blocks={
                "soul": "You are a helpful assistant.",
                "memory": talktree.Block.stored().per_owner().max(1_100),
            },
            searchable_history="past conversations",
            cached_prompt=True,
            summarizer=lambda prompt: "They spoke about the weather.",
            compact_after=4_000,
            compact_on=worker,
            on_error=lambda error: print(f"not compacted this time: {error}", file=sys.stderr),
        )
        chat = bot.resume("telegram:4711", owner="user:42", expire_after=timedelta(days=1))
        print(turn(chat, "I like tea. Is it warm in Jena?"))
        block = chat.block("memory")
        print("memory:", block.content if block is not None else "none")
        print("spent:", bot.usage().output, "tokens")
        for hit in bot.search("tea", owner="user:42"):
            print(f"{hit.session[:8]}  {hit.snippet}")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else None)
