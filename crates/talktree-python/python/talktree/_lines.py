"""Calls from async code: in threads, in order for each session, for asyncio and trio alike.

A call is given to a thread, and the task waits for it. Calls of one *line* run one after another, in the order in which they
were made; a session is a line. A task that is cancelled stops waiting at once: a call that waits for its turn is then never
run, one that runs comes to its end, and the next call of its line runs after it.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import contextvars
import inspect
import os
import sys
import threading
import weakref
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Generic, Protocol, TypeVar

from .errors import ClosedError, ForkedError

T = TypeVar("T")

#: How many calls of a store run at once.
THREADS = 8

#: How many waiting calls of a line a thread runs before it takes those of others. To wake a thread takes about as long as a
#: short call.
CALLS_IN_A_ROW = 16

#: Whether the present code runs inside of a call, as a callback.
_inside: contextvars.ContextVar[bool] = contextvars.ContextVar("talktree_inside", default=False)
#: The event loop of the task whose call the present thread runs.
_loop_of_call: contextvars.ContextVar[Loop | None] = contextvars.ContextVar("talktree_loop", default=None)


class Waker(Protocol):
    """Wakes a task from another thread."""

    def wake(self) -> None:
        """Wakes the task; does nothing if its loop has ended."""

    async def wait(self) -> None:
        """Waits until it is woken."""


class Loop(Protocol):
    """An event loop of asyncio or a run of trio."""

    @property
    def handle(self) -> object:
        """The loop itself, or the token of the run."""

    def waker(self) -> Waker:
        """Returns a waker of the present task."""

    def run(self, awaitable: Awaitable[Any]) -> Any:
        """Runs an awaitable in the loop, from another thread, and returns its result."""


async def _awaited(awaitable: Awaitable[T]) -> T:
    return await awaitable


#: How often a thread that waits for a coroutine looks whether its loop still runs, in seconds.
_TICK = 0.1

#: For how many seconds a loop may be stopped, as between two `run_until_complete`, before its coroutines count as cancelled.
_MAX_STOPPED = 2.0

_ENDED = "the event loop of a callback has ended"
_HERE = "a coroutine cannot run in an event loop that waits for it; await the call, or make it in another thread"

#: The loops that callbacks wait for in threads, each once for every callback.
_awaited_loops: list[object] = []


@contextlib.contextmanager
def _waiting_for(loop: object) -> Iterator[None]:
    # Lists need no lock for this, so a fork cannot leave one locked.
    _awaited_loops.append(loop)
    try:
        yield
    finally:
        _awaited_loops.remove(loop)


def is_callback() -> bool:
    """Returns whether the present code is a callback, which a call waits for."""
    return _inside.get()


def is_awaited() -> bool:
    """Returns whether a call waits for the present plain code: it is a callback, or blocks the loop of one."""
    if is_callback():
        return True
    try:
        return present_loop().handle in _awaited_loops
    except RuntimeError:
        return False


class _AsyncioLoop:
    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()

    @property
    def handle(self) -> object:
        return self._loop

    def waker(self) -> Waker:
        return _AsyncioWaker(self._loop)

    def run(self, awaitable: Awaitable[Any]) -> Any:
        if asyncio._get_running_loop() is self._loop:
            # The loop waits for this call: the awaitable would never run.
            if isinstance(awaitable, Coroutine):
                awaitable.close()
            raise RuntimeError(_HERE)
        with _waiting_for(self._loop):
            future = asyncio.run_coroutine_threadsafe(_awaited(awaitable), self._loop)
            stopped = 0.0
            while True:
                done, _ = concurrent.futures.wait([future], _TICK)
                if future.cancelled():
                    # Not that of `concurrent.futures`, an Exception, which would count as the answer of the callback.
                    raise asyncio.CancelledError
                if done:
                    return future.result()
                stopped = 0.0 if self._loop.is_running() else stopped + _TICK
                if self._loop.is_closed():
                    raise asyncio.CancelledError(_ENDED)
                if stopped >= _MAX_STOPPED:
                    future.cancel()
                    raise asyncio.CancelledError(_ENDED)


class _AsyncioWaker:
    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._woken: asyncio.Future[None] = loop.create_future()

    def wake(self) -> None:
        try:
            self._loop.call_soon_threadsafe(self._set)
        except RuntimeError:  # the loop is closed
            pass

    def _set(self) -> None:
        if not self._woken.done():
            self._woken.set_result(None)

    async def wait(self) -> None:
        await self._woken


class _TrioLoop:
    def __init__(self, trio: Any) -> None:
        self._trio = trio
        self._token = trio.lowlevel.current_trio_token()

    @property
    def handle(self) -> object:
        return self._token

    def waker(self) -> Waker:
        return _TrioWaker(self._trio, self._token)

    def run(self, awaitable: Awaitable[Any]) -> Any:
        with _waiting_for(self._token):
            try:
                return self._trio.from_thread.run(_awaited, awaitable, trio_token=self._token)
            except self._trio.RunFinishedError:
                raise asyncio.CancelledError(_ENDED) from None


class _TrioWaker:
    def __init__(self, trio: Any, token: Any) -> None:
        self._trio = trio
        self._token = token
        self._event = trio.Event()

    def wake(self) -> None:
        try:
            self._token.run_sync_soon(self._event.set)
        except self._trio.RunFinishedError:
            pass

    async def wait(self) -> None:
        await self._event.wait()


def present_loop() -> Loop:
    """Returns the loop that runs the present task.

    Raises:
        RuntimeError: outside of async code.
    """
    trio = sys.modules.get("trio")
    if trio is not None and trio.lowlevel.in_trio_run():
        return _TrioLoop(trio)
    return _AsyncioLoop()


def waiting_in(loop: Loop) -> Callable[[Any], Any]:
    """Returns a function for callbacks in threads, which waits for what they return if it is awaitable.

    It is awaited in the loop of the task whose call runs the callback; in a thread of the program's own in `loop`.
    """

    def wait(answer: Any) -> Any:
        if not inspect.isawaitable(answer):
            return answer
        return (_loop_of_call.get() or loop).run(answer)

    return wait


def wait_in_call(answer: Any) -> Any:
    """Returns what an awaitable gives, for callbacks that only run inside of calls; anything else as it is.

    It is awaited in the loop of the task whose call runs the callback; in a plain call in an event loop of its own.
    """
    if not inspect.isawaitable(answer):
        return answer
    loop = _loop_of_call.get()
    return asyncio.run(_awaited(answer)) if loop is None else loop.run(answer)


class Job(Protocol):
    """What a line runs."""

    def run(self) -> None:
        """Runs it in the present thread; raises nothing."""

    def refuse(self) -> None:
        """Ends it, because the store was closed."""


class Dropped(Exception):
    """Ends a call that nobody waits for; nobody sees it."""


class Call(Generic[T]):
    """One call, from its beginning to the task that waits for it."""

    def __init__(self, work: Callable[[Call[T]], T]) -> None:
        self._work = work
        self._loop = present_loop()
        self._waker = self._loop.waker()
        self._context = contextvars.copy_context()
        self._result: T | None = None
        self._error: BaseException | None = None
        self.is_dropped = False

    def run(self) -> None:
        """Runs the call in the present thread, unless nobody waits for it any more."""
        if not self.is_dropped:
            try:
                self._result = self._context.run(self._call)
            except BaseException as error:
                self._error = error
        self._waker.wake()

    def _call(self) -> T:
        _loop_of_call.set(self._loop)
        _inside.set(True)
        return self._work(self)

    def refuse(self) -> None:
        """Ends a call that cannot be run, because the store was closed."""
        self._error = ClosedError("the store is closed")
        self._waker.wake()

    def progress(self, progress: Callable[[int, int], object] | None) -> Callable[[int, int], None]:
        """Returns a progress callback that ends the call when nobody waits for it any more."""

        def call(done: int, total: int) -> None:
            if self.is_dropped:
                raise Dropped
            if progress is not None:
                progress(done, total)

        return call

    async def done(self) -> T:
        """Waits for the end of the call and returns its result."""
        try:
            await self._waker.wait()
        except BaseException:
            self.is_dropped = True
            raise
        if self._error is not None:
            try:
                raise self._error
            finally:
                # The traceback of the error refers to this frame.
                self._error = None
        return self._result  # type: ignore[return-value]


class Pool:
    """The threads of a store."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="talktree")
        self._lines: weakref.WeakValueDictionary[str, Line] = weakref.WeakValueDictionary()
        self._lock = threading.Lock()
        #: The process of the first call.
        self._process: int | None = None

    @staticmethod
    def of(store: object, pool: Pool) -> Pool:
        """Returns the pool of a store that is open, which all its async faces share; the given one if it has none yet."""
        return _POOLS.setdefault(store, pool)

    def line(self, id: str) -> Line:
        """Returns the line of a session."""
        with self._lock:
            line = self._lines.get(id)
            if line is None:
                line = self._lines[id] = Line(self)
            return line

    def check_process(self) -> None:
        """Refuses a call in a child of the process that made the first one: a fork leaves the threads behind.

        Raises:
            talktree.ForkedError: in such a child.
        """
        process = os.getpid()
        self._process = self._process or process
        if self._process != process:
            raise ForkedError("the store was used before this process was forked; open it in the child")

    def submit(self, run: Callable[[], None]) -> bool:
        """Runs a function in a thread; returns whether the pool still takes work."""
        self.check_process()
        try:
            self._threads.submit(run)
        except RuntimeError:
            return False
        return True

    async def run(self, work: Callable[[Call[T]], T]) -> T:
        """Runs a call that has no order."""
        call = Call(work)
        if _inside.get():
            _in_own_thread(call)
        elif not self.submit(call.run):
            call.refuse()
        return await call.done()

    def close(self) -> None:
        """Takes no more work."""
        # Another thread may have held a lock of the pool when this process was forked.
        if self._process in (None, os.getpid()):
            self._threads.shutdown(wait=False)


#: The pools of open stores.
_POOLS: weakref.WeakKeyDictionary[object, Pool] = weakref.WeakKeyDictionary()


class Line:
    """The calls of a session, one after another."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._lock = threading.Lock()
        self._waiting: deque[Job] = deque()
        self._is_running = False

    async def run(self, work: Callable[[Call[T]], T]) -> T:
        """Runs a call after those that were made before."""
        call = Call(work)
        if _inside.get():
            # A callback of a call: the call would wait for itself, and its thread for one of the pool.
            _in_own_thread(call)
        else:
            self.enqueue(call)
        return await call.done()

    def enqueue(self, job: Job) -> None:
        """Runs a job in a thread, after those that were made before."""
        # Before the lock, which another thread may have held when this process was forked.
        self._pool.check_process()
        with self._lock:
            self._waiting.append(job)
            begins = not self._is_running
            self._is_running = True
        if begins:
            self._go_on()

    def _go_on(self) -> None:
        if not self._pool.submit(self._next):
            with self._lock:
                refused, self._is_running = list(self._waiting), False
                self._waiting.clear()
            for call in refused:
                call.refuse()

    def _next(self) -> None:
        for _ in range(CALLS_IN_A_ROW):
            with self._lock:
                call = self._waiting.popleft()
            call.run()
            with self._lock:
                self._is_running = bool(self._waiting)
                if not self._is_running:
                    return
        # As a new task of the pool, so that a busy session does not keep a thread from the others.
        self._go_on()


def _in_own_thread(call: Call[Any]) -> None:
    threading.Thread(target=call.run, name="talktree-callback", daemon=True).start()
