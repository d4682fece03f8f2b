"""A bot for many chats, whose agents resume from the store: no file of a home directory has to survive.

    python examples/many_chats.py           # a stand-in for the agent; needs no network
    python examples/many_chats.py --live    # Claude; needs a key

Each chat leads to a session (`SessionManager.resume`): a new one after a day, after `forget`, or if its transcript is gone.
The session has what people wrote, for lists and search. The transcript of the agent has the same id and is in the same file.
"""

from __future__ import annotations

import asyncio
import sys
import uuid
from collections.abc import Awaitable, Callable
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from weakref import WeakValueDictionary

import talktree
from claude_agent_sdk import (
    AssistantMessage,
    ClaudeAgentOptions,
    MirrorErrorMessage,
    TextBlock,
    project_key_for_directory,
    query,
)
from talktree import Message, TranscriptKey
from talktree.claude import SessionStore

#: Answers a text; the options say which session of the agent it is.
Agent = Callable[[ClaudeAgentOptions, str], Awaitable[str]]


class Chats:
    """The chats of a bot."""

    def __init__(self, store: talktree.Store, agent: Agent, folder: Path, expire_after: timedelta = timedelta(days=1)):
        self._bot = talktree.SessionManager(store)
        self._transcripts = store.transcripts
        self._sessions = SessionStore(store)
        self._agent = agent
        self._folder = folder
        self._project = project_key_for_directory(folder)
        self._expire_after = expire_after
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def answer(self, chat: str, user: str, text: str) -> str:
        """Answers a message of a chat; turns of one chat run one after another."""
        async with self._turns.setdefault(chat, asyncio.Lock()):
            session, is_known = await asyncio.to_thread(self.session, chat, user)
            options = ClaudeAgentOptions(
                cwd=self._folder,
                session_store=self._sessions.owned_by(user),
                resume=session.id if is_known else None,
                session_id=None if is_known else session.id,
            )
            reply = await self._agent(options, text)
            # Afterwards: a turn that failed is not in the session.
            await asyncio.to_thread(session.append_all, [Message.user(text), Message.assistant(reply)])
            return reply

    def session(self, chat: str, user: str) -> tuple[talktree.Session, bool]:
        """Returns the session of a chat, and whether the agent knows it: the one that the chat led to, or a new one."""
        session = self._resume(chat, user)
        is_known = self._transcripts.load(TranscriptKey(self._project, session.id)) is not None
        if not is_known and session.head() is not None:
            # Without its transcript the agent would know nothing of the messages.
            self._bot.end(session.id, "its transcript is gone")
            session = self._resume(chat, user)
        return session, is_known

    def _resume(self, chat: str, user: str) -> talktree.Session:
        # The SDK takes UUIDs as ids of sessions.
        return self._bot.resume(chat, owner=user, expire_after=self._expire_after, new_id=str(uuid.uuid4()))

    def forget(self, chat: str) -> None:
        """Deletes what the chat leads to: the session and the transcript."""
        session = self._bot.unbind(chat)
        if session is not None:
            self._transcripts.delete(TranscriptKey(self._project, session))
            self._bot.remove(session)


async def claude(options: ClaudeAgentOptions, text: str) -> str:
    """Asks Claude."""
    texts = []
    async for message in query(prompt=text, options=options):
        if isinstance(message, AssistantMessage):
            texts += [block.text for block in message.content if isinstance(block, TextBlock)]
        elif isinstance(message, MirrorErrorMessage):
            # The answer is right, but a resume will not know it.
            print("not stored:", message.key, message.error, file=sys.stderr)
    return "\n".join(texts)


async def stand_in(options: ClaudeAgentOptions, text: str) -> str:
    """Counts the messages in its transcript, and appends to it as the SDK does."""
    sessions, session = options.session_store, options.resume or options.session_id
    assert sessions is not None and session is not None and options.cwd is not None
    known = await sessions.load({"project_key": project_key_for_directory(options.cwd), "session_id": session}) or []
    reply = f"This is message {len(known) // 2 + 1} of our chat."
    parent = known[-1].get("uuid") if known else None
    for role, content in (("user", text), ("assistant", reply)):
        entry: Any = {"type": role, "uuid": str(uuid.uuid4()), "parentUuid": parent, "sessionId": session}
        entry["message"] = {"role": role, "content": content}
        await sessions.append({"project_key": project_key_for_directory(options.cwd), "session_id": session}, [entry])
        parent = entry["uuid"]
    return reply


async def main(agent: Agent, folder: Path) -> None:
    """Plays two chats at once, and goes on with one after a restart."""
    with talktree.Store(folder / "chats.db") as store:
        chats = Chats(store, agent, folder)
        replies = await asyncio.gather(
            chats.answer("telegram:1", "ann", "Remember: my colour is blue."),
            chats.answer("telegram:2", "bob", "Remember: my colour is red."),
        )
        print(*replies, sep="\n")
    with talktree.Store(folder / "chats.db") as store:
        chats = Chats(store, agent, folder)
        print(await chats.answer("telegram:1", "ann", "Which colour is mine?"))
        print("found:", *[hit.snippet for hit in store.search("colour")], sep="\n  ")
        chats.forget("telegram:1")
        print(await chats.answer("telegram:1", "ann", "Do you know me?"))


if __name__ == "__main__":
    with TemporaryDirectory() as folder:
        asyncio.run(main(claude if "--live" in sys.argv[1:] else stand_in, Path(folder)))
