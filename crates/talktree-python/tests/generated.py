"""Transcripts that are generated: with rewinds, compactions, parallel tools, subagents, titles; the same for the same seed."""

from __future__ import annotations

import random
import uuid
from typing import Any

DIRECTORY = "/home/ann/shop"

#: A batch: the subpath and its entries.
Batch = tuple[str, list[Any]]


class Transcript:
    """A session."""

    def __init__(self, random: random.Random) -> None:
        self.random = random
        self.session = str(uuid.UUID(int=random.getrandbits(128), version=4))
        self.time = 1_760_000_000 + random.randrange(10**6)
        self.uuids: list[str] = []
        self.leaf: str | None = None
        self.main: list[Any] = []
        self.subagents: dict[str, list[Any]] = {}

    def id(self) -> str:
        return str(uuid.UUID(int=self.random.getrandbits(128), version=4))

    def entry(self, kind: str, parent: str | None, **fields: Any) -> Any:
        self.time += self.random.randrange(1, 30)
        entry = {
            "parentUuid": parent,
            "isSidechain": False,
            "cwd": DIRECTORY,
            "sessionId": self.session,
            "version": "2.1.0",
            "gitBranch": self.random.choice(["main", "login", ""]),
            "type": kind,
            "uuid": self.id(),
            "timestamp": f"2026-03-{1 + self.time % 28:02}T10:{self.time % 60:02}:00.000Z",
            **fields,
        }
        self.uuids.append(entry["uuid"])
        return entry

    def words(self) -> str:
        texts = ["Fix the login.", "/compact", "", "  spaces ", "ü\ud83d", "<command-name>/init</command-name>", "x" * 300]
        return self.random.choice(texts)

    def add(self, kind: str, **fields: Any) -> str:
        entry = self.entry(kind, self.leaf, **fields)
        self.main.append(entry)
        self.leaf = entry["uuid"]
        return str(entry["uuid"])

    def answer(self, calls: int) -> None:
        """An answer: an entry for each part, and results that are children of their calls."""
        message = self.id()
        results = []
        for at in range(calls + 1):
            part: dict[str, Any] = {"type": "text", "text": self.words()}
            if at:
                part = {"type": "tool_use", "id": f"call {message} {at}", "name": "Bash", "input": {}}
            self.add("assistant", message={"id": message, "role": "assistant", "content": [part], "usage": {}})
            if at:
                results.append((self.leaf, f"call {message} {at}"))
        self.random.shuffle(results)
        for parent, call in results:
            content = [{"type": "tool_result", "tool_use_id": call, "content": "ok"}]
            self.leaf = parent
            self.add("user", message={"role": "user", "content": content}, sourceToolAssistantUUID=parent)

    def step(self) -> None:
        kind = self.random.randrange(13)
        if kind < 4:
            fields: dict[str, Any] = {"isMeta": True} if self.random.random() < 0.1 else {}
            if self.random.random() < 0.05:
                fields["teamName"] = "others"
            self.add("user", message={"role": "user", "content": self.words()}, **fields)
        elif kind < 7:
            self.answer(self.random.choice([0, 0, 1, 2, 3]))
        elif kind == 7 and self.uuids:
            self.leaf = self.random.choice([*self.uuids[-6:], "gone"])
        elif kind == 8:
            former, self.leaf = self.leaf, None
            self.add("system", subtype="compact_boundary", logicalParentUuid=former, content="Conversation compacted")
            self.add("user", isCompactSummary=True, message={"role": "user", "content": "Earlier: ..."})
        elif kind == 9:
            former = self.leaf
            self.add("user", isSidechain=True, agentId="inline", message={"role": "user", "content": "Check."})
            self.leaf = former
        elif kind == 10:
            self.add(self.random.choice(["progress", "attachment", "system"]), data={"type": "hook_progress"})
        elif kind == 11:
            names = {"custom-title": "customTitle", "ai-title": "aiTitle", "tag": "tag", "last-prompt": "lastPrompt"}
            name = self.random.choice([*names])
            self.main.append({"type": name, names[name]: self.words(), "sessionId": self.session})
        else:
            agent = self.random.choice(["subagents/agent-1", "subagents/workflows/w/agent-2", "subagents/notes"])
            entries = self.subagents.setdefault(agent, [])
            parent = entries[-1].get("uuid") if entries else None
            if self.random.random() < 0.3:
                entries.append({"type": "agent_metadata", "toolUseId": "call", "parentAgentId": self.random.choice([1, "a"])})
            else:
                role = self.random.choice(["user", "assistant"])
                content = {"role": role, "content": self.words()}
                name = agent.rsplit("/", 1)[1].removeprefix("agent-")
                entries.append(self.entry(role, parent, isSidechain=True, agentId=name, message=content))

    def batches(self) -> list[Batch]:
        """Returns the entries in batches, those of subagents among the others."""
        batches: list[Batch] = []
        for subpath, entries in [("", self.main), *self.subagents.items()]:
            rest = list(entries)
            while rest:
                count = self.random.randrange(1, 12)
                batches.append((subpath, rest[:count]))
                rest = rest[count:]
        return batches


def generated(seed: int) -> list[tuple[str, list[Batch]]]:
    """Returns sessions, each with its batches."""
    sessions = []
    generator = random.Random(seed)
    for _ in range(generator.randrange(1, 4)):
        transcript = Transcript(generator)
        for _ in range(generator.randrange(0, 40)):
            transcript.step()
        sessions.append((transcript.session, transcript.batches()))
    return sessions
