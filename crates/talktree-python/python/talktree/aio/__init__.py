"""talktree for asyncio and trio: the same names, awaited.

Every call runs in a thread. Calls of one session run in the order in which they were made, those of different sessions side
by side. A task that is cancelled stops waiting at once: a call that waits for its turn is then never run; one that runs comes
to its end, except `verify`, `backup`, `retention` and imports, which stop. Append a message that was made before, and a repeated append is
a no-op.

>>> import asyncio
>>> from talktree import Message, aio
>>> async def main() -> None:
...     async with aio.Store() as store:  # aio.Store("bot.db") keeps it in a file
...         chat = await store.session("telegram:4711")
...         await chat.append(Message.user("Can we deploy on Friday?"))
...         for hit in await store.search("deploy friday", limit=5):
...             print(hit.session, hit.snippet)
...         async for message in chat:
...             print(message.text)
>>> asyncio.run(main())
telegram:4711 Can we **deploy** on **Friday**?
Can we deploy on Friday?

Summarizers, embedders and tools may be async; they run in the event loop of the task that made the call. Plain callbacks run in a thread.
A callback may call its session: such a call does not wait for its turn.
"""

from .context import Context as Context
from .context import Tools as Tools
from .manager import Resumed as Resumed
from .manager import SessionManager as SessionManager
from .many import Erased as Erased
from .path import Path as Path
from .reply import Reply as Reply
from .session import Session as Session
from .store import Store as Store
from .transcripts import Transcripts as Transcripts
