"""What a model should know: blocks, documents, tools."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
import talktree
from talktree import Block, Document, Message


def test_blocks_and_a_frozen_prompt(store: talktree.Store) -> None:
    chat = store.session(
        "s",
        blocks={
            "soul": Block.text("Be brief."),
            "memory": Block.stored().describe("Facts").max(10),
            "fixed": Block.stored().read_only(),
        },
        cached_prompt=True,
    )
    prompt = chat.prompt()
    info = chat.context.set("memory", "Likes coffee.")
    assert (info.label, info.description, info.max_tokens, info.is_writable) == ("memory", "Facts", 10, True)
    assert chat.prompt() == prompt
    assert [(it.label, it.kind, it.current) for it in chat.drift()] == [("memory", "changed", "Likes coffee.")]
    assert chat.context.frozen_prompt() == prompt
    assert "Likes coffee." in chat.refresh_prompt() and chat.drift() == []
    chat.context.thaw_prompt()
    assert chat.context.frozen_prompt() is None
    chat.context.append("memory", "Likes tea.")
    block = chat.block("memory")
    assert block is not None and block.content == "Likes coffee.\nLikes tea."
    assert chat.block("nothing") is None
    with pytest.raises(talktree.BlockOverLimitError) as caught:
        chat.context.set("memory", "word " * 100)
    assert caught.value.max == 10
    with pytest.raises(talktree.UnknownBlockError):
        chat.context.set("nothing", "x")
    assert chat.context.stored() == [("memory", "session")]
    assert "# soul" in chat.context.to_markdown().lower()


def test_versions(store: talktree.Store) -> None:
    chat = store.session("s", blocks={"memory": Block.stored()})
    chat.context.set("memory", "one")
    chat.context.set("memory", "two")
    versions = chat.context.versions("memory")
    assert [it.content for it in versions] == ["one", "two"]
    assert chat.context.version("memory", versions[0].version) == versions[0]
    chat.context.restore("memory", versions[0].version)
    block = chat.block("memory")
    assert block is not None and block.content == "one"
    assert chat.context.remove_text("memory") and not chat.context.remove_text("memory")
    with pytest.raises(talktree.UnknownVersionError):
        chat.context.version("memory", 99)


def test_documents(store: talktree.Store) -> None:
    chat = store.session("s", blocks={"docs": Block.knowledge(), "skills": Block.stored_skills()})
    key = chat.context.set_document("docs", Document("deploy", "Deploy on Friday.", title="Deployment"))
    chat.context.set_documents("skills", [Document("a", "A"), Document("b", "B", description="bee")])
    assert key == "deploy" and chat.context.load("docs", key) == "Deploy on Friday."
    assert [it.content for it in chat.context.search("docs", "friday")] == ["Deploy on Friday."]
    assert [(it.key, it.description) for it in chat.context.documents("skills")] == [("a", None), ("b", "bee")]
    chat.context.append_document("docs", Document("deploy", "Or on Monday."))
    assert "Monday" in (chat.context.load("docs", "deploy") or "")
    assert chat.context.remove_document("docs", "deploy")
    assert chat.context.load("docs", "deploy") is None
    assert chat.context.unload("skills", "a") is None
    call = chat.append_answer(
        {"content": [{"type": "tool_use", "id": "c", "name": "load_context", "input": {"label": "skills", "key": "a"}}]}
    )
    assert chat.tools.answer(call) is not None and chat.context.loaded() == [("skills", "a")]
    assert (chat.context.unload("skills", "a"), chat.context.loaded()) == (1, [])


class Notes:
    """A provider of the program: text, documents to load and to search."""

    def __init__(self) -> None:
        self.text = "notes"
        self.labels: list[str] = []
        self.documents = {"a": Document("a", "about apples", title="Apples")}

    def init(self, label: str) -> None:
        self.labels.append(label)

    def get(self) -> str:
        return self.text

    def set(self, content: str) -> None:
        self.text = content

    def load(self, key: str) -> str | None:
        document = self.documents.get(key)
        return None if document is None else document.content

    def search(self, query: str, limit: int) -> Iterable[Document]:
        return [it for it in self.documents.values() if query in it.content][:limit]

    def set_keyed(self, document: Document) -> None:
        self.documents[document.key] = document


def test_providers_of_the_program(store: talktree.Store) -> None:
    notes, skills = Notes(), Notes()
    chat = store.session(
        "s",
        blocks={
            "notes": Block.write(notes),
            "skills": Block.skills(skills),
            "facts": Block.searchable(notes),
            "clock": Block.read(lambda: "noon"),
        },
    )
    assert "noon" in chat.prompt()
    chat.context.set("notes", "new")
    assert notes.text == "new" and "notes" in notes.labels
    assert chat.context.load("skills", "a") == "about apples" and chat.context.load("skills", "x") is None
    assert [it.title for it in chat.context.search("facts", "apples")] == ["Apples"]
    chat.context.set_document("facts", Document("b", "about pears"))
    assert notes.documents["b"].content == "about pears"
    chat.context.add("late", "Added later.")
    assert "Added later." in chat.prompt()
    assert chat.context.remove("late") and not chat.context.remove("late")


def test_a_folder_of_skills(store: talktree.Store, tmp_path: Path) -> None:
    folder = tmp_path / "skills"
    (folder / "deploy").mkdir(parents=True)
    (folder / "deploy" / "SKILL.md").write_text(
        "---\nname: deploy\ndescription: How to deploy\n---\nPush the button.\n"
    )
    chat = store.session("s", blocks={"skills": Block.skill_folder(folder, allow=["deploy"])})
    assert "How to deploy" in chat.prompt()
    assert "Push the button." in chat.tools.call("load_context", {"label": "skills", "key": "deploy"})
    with pytest.raises(talktree.IoError) as caught:
        store.session("t", blocks={"skills": Block.skill_folder(tmp_path / "missing")})
    assert isinstance(caught.value, OSError) and caught.value.errno is not None


def test_tools_in_each_format(store: talktree.Store) -> None:
    chat = store.session(
        "s", blocks={"memory": Block.stored()}, history_tools=True, session_search="all", max_answer_tokens=500
    )
    names = chat.tools.names()
    assert {"set_context", "session_search", "history_search"} <= set(names)
    assert [tool["name"] for tool in chat.tools.anthropic()] == names
    assert [tool["function"]["name"] for tool in chat.tools.openai_chat()] == names
    assert [tool["name"] for tool in chat.tools.openai_responses()] == names
    assert [tool["name"] for tool in chat.tools.mcp()] == names


def calls(*names: str) -> Message:
    return Message.new(
        "assistant", [talktree.tool_call(name, f"c{at}", {"city": "Jena"}) for at, name in enumerate(names)]
    )


def test_a_round_of_tools(store: talktree.Store) -> None:
    chat = store.session("s", blocks={"memory": Block.stored()})
    chat.append(Message.user("Is it warm?"))
    asked = calls("weather", "later", "broken", "missing")
    asked["parts"].append(talktree.tool_call("set_context", "c9", {"label": "memory", "content": "Jena"}))
    chat.append(asked)
    ran: list[str] = []

    def weather(city: str) -> dict[str, Any]:
        ran.append(city)
        return {"celsius": 2**70}

    async def later(city: str) -> list[str]:
        return [city, "later"]

    def broken(city: str) -> None:
        raise ValueError("no such city")

    tools = {"weather": weather, "later": later, "broken": broken}
    results = chat.tools.answer(asked, tools)
    assert results is not None
    outputs: dict[str, Any] = {part["toolCallId"]: part.get("output", part.get("errorText")) for part in results.parts}
    assert json.loads(json.dumps(outputs["c1"])) == ["Jena", "later"]
    assert "no such city" in outputs["c2"] and "there is no tool 'missing'" in outputs["c3"]
    assert outputs["c9"].startswith("Written to")
    assert chat.tools.answer(asked, tools) is not None and ran == ["Jena"]  # not run again
    assert chat.tools.answer(Message.assistant("Warm.")) is None
    stats = chat.tool_stats()
    assert (stats["weather"].calls, stats["broken"].errors) == (1, 1)


def test_one_function_for_all_tools(chat: talktree.Session) -> None:
    asked = calls("weather")
    chat.append(asked)
    results = chat.tools.answer(asked, lambda call: f"{call.name} {call.id} {call.input['city']}")
    assert results is not None and results.parts[0]["output"] == "weather c0 Jena"
    with pytest.raises(TypeError, match="tools must be a dict of functions or callable, not str"):
        chat.tools.answer(asked, "weather")  # type: ignore[arg-type]
