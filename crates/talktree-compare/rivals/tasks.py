"""The tasks of src/tasks.rs, for the rivals written in Python.

A chat's methods may be coroutines; all of them run in one event loop.
"""

import asyncio
import inspect
import json
import shutil
import sys
import time
from pathlib import Path


class Tasks:
    def __init__(self, rival, plan, messages):
        self.rival, self.plan, self.messages = rival, plan, messages
        self.folder = Path(plan["folder"])

    def wants(self, task):
        return not self.plan["only"] or task in self.plan["only"]

    def does(self, task):
        return self.wants(task) and task not in self.rival.lacks

    def report(self, task, times, note=None):
        times = sorted(times)
        notes = [note for note in (self.rival.notes.get(task), note) if note]
        line = {"task": task, "seconds": times[len(times) // 2], "rounds": len(times)}
        emit(line | ({"note": "; ".join(notes)} if notes else {}))

    def new(self, name):
        path = self.folder / name
        path.mkdir()
        return path

    def copy(self, of, name):
        return Path(shutil.copytree(of, self.folder / name))

    def check_history(self, history, count, last):
        text = self.rival.text(history[-1]) if history else ""
        if len(history) != count or text != self.messages[last]["text"]:
            raise ValueError(f"{len(history)} messages, expected {count}; last {text!r}")

    def check_hits(self, found, word, expected):
        expected = min(self.rival.findable(expected), self.plan["hits"])
        if len(found) < expected or any(word not in text for text in found):
            raise ValueError(f"{len(found)} hits for {word!r}: {found!r}")

    async def using(self, path, is_full, task):
        chat = await done(self.rival.open(path, is_full))
        try:
            return await task(chat)
        finally:
            await done(chat.close())

    async def filled(self, name, count):
        path = self.new(name)
        await self.using(path, False, lambda chat: coroutine(chat.fill, self.messages[:count]))
        return path

    async def appends(self, chat, messages):
        """Returns the mean time of one append, and how many fitted into ten seconds."""
        start = time.perf_counter()
        for count, message in enumerate(messages, 1):
            await done(chat.append(message))
            is_turn = count % 2 == 0
            if is_turn and len(messages) <= self.plan["deep"] and time.perf_counter() - start > 10:
                break
        return (time.perf_counter() - start) / count, count

    async def repeat(self, task, check):
        """Times a task: one round to warm up, then at least five rounds and enough to fill `seconds`.
        After ten times `seconds` no further round begins, except the first that counts.
        """
        times, spent, begin = [], 0.0, time.perf_counter()
        for round in range(501):
            start = time.perf_counter()
            answer = await done(task())
            took = time.perf_counter() - start
            await done(check(answer))
            if round == 0:
                continue
            is_late = time.perf_counter() - begin > 10 * self.plan["seconds"]
            times.append(took)
            spent += took
            if is_late or (len(times) >= 5 and spent >= self.plan["seconds"]):
                break
        return times

    async def run(self):
        emit({"versions": self.rival.versions})
        for task, why in self.rival.lacks.items():
            if self.wants(task):
                emit({"task": task, "why": why})
        large = await self.append()
        small = await self.filled("small", self.plan["small"])
        await self.write(large)
        await self.read(small, self.plan["small"], "history-small", "resume-small", history)
        await self.read(large, self.plan["large"], "history", "resume", history)
        await self.read(large, self.plan["large"], "last", "last-cold", self.last)
        await self.search(large)
        await self.fork(small, self.plan["small"], "fork-small")
        await self.fork(large, self.plan["large"], "fork")

    def last(self, chat):
        return chat.last(self.plan["recent"])

    async def append(self):
        large = self.plan["large"]
        count = min(large, self.rival.most_appends or large)
        times, begin = [], time.perf_counter()
        for round in range(self.plan["rounds"] if self.does("append") else 0):
            path = self.new(f"append-{round}")

            async def task(chat):
                times.append((await self.appends(chat, self.messages[:count]))[0])
                self.check_history(await done(chat.history()), count, count - 1)

            await self.using(path, False, task)
            if time.perf_counter() - begin > 20:
                break
        if times:
            self.report("append", times, None if count == large else f"to {count} messages only")
        return path if times and count == large else await self.filled("large", large)

    async def write(self, large):
        count, deep = self.plan["large"], self.plan["deep"]
        following = self.messages[count : count + deep]
        times = {"append-deep": [], "append-full": [], "branch": []}

        async def append_deep(chat):
            await done(chat.last(1))
            if self.does("search"):
                await done(chat.search(self.plan["usual"], self.plan["hits"]))
            took, appended = await self.appends(chat, following)
            times["append-deep"].append(took)
            self.check_history(await done(chat.history()), count + appended, count + appended - 1)

        async def append_full(chat):
            took, appended = await self.appends(chat, self.messages[:deep])
            times["append-full"].append(took)
            self.check_history(await done(chat.history()), appended, appended - 1)

        async def branch(chat):
            middle = (await done(chat.ids()))[count // 2 - 1]
            start = time.perf_counter()
            for number, message in enumerate(following):
                await done(chat.branch(middle, message))
                if time.perf_counter() - start > 5:
                    break
            times["branch"].append((time.perf_counter() - start) / (number + 1))
            self.check_history(await done(chat.history()), count // 2 + 1, count + number)

        begin = time.perf_counter()
        for round in range(self.plan["rounds"]):
            if self.does("append-deep"):
                await self.using(self.copy(large, f"deep-{round}"), False, append_deep)
            if self.does("append-full"):
                await self.using(self.new(f"full-{round}"), True, append_full)
            if self.does("branch"):
                await self.using(self.copy(large, f"branch-{round}"), False, branch)
            if time.perf_counter() - begin > 20:
                break
        for task, taken in times.items():
            if taken:
                self.report(task, taken)

    async def read(self, path, count, warm, cold, read):
        shown = self.plan["recent"] if warm == "last" else count

        async def opened():
            chat = await done(self.rival.open(path, False))
            return chat, await done(read(chat))

        async def check(answer):
            chat, found = answer
            self.check_history(found, shown, count - 1)
            await done(chat.close())

        if self.does(warm):

            async def task(chat):
                check_warm = lambda found: self.check_history(found, shown, count - 1)
                self.report(warm, await self.repeat(lambda: read(chat), check_warm))

            await self.using(path, False, task)
        if self.does(cold):
            self.report(cold, await self.repeat(opened, check))

    async def fork(self, store, count, task):
        if not self.does(task):
            return

        async def forks(chat):
            at = (await done(chat.ids()))[count - 1]

            async def check(fork):
                length, expected = await done(chat.fork_length(fork)), count + self.rival.fork_more
                if length != expected:
                    raise ValueError(f"the fork has {length} messages, expected {expected}")

            self.report(task, await self.repeat(lambda: chat.fork(at), check))

        await self.using(self.copy(store, task), False, forks)

    async def searches(self, chat, task, word, expected):
        if self.does(task):
            check = lambda found: self.check_hits(found, word, expected)
            find = lambda: chat.search(word, self.plan["hits"])
            self.report(task, await self.repeat(find, check))

    async def search(self, large):
        plan, usual = self.plan, self.plan["usual"]
        if self.does("search"):
            path = await done(self.rival.searchable(large, self))
            task = lambda chat: self.searches(chat, "search", usual, plan["usual_large"])
            await self.using(path, False, task)
        if self.does("search-huge") or self.does("search-common"):

            async def task(chat):
                await self.searches(chat, "search-huge", usual, plan["usual_huge"])
                await self.searches(chat, "search-common", plan["common"], plan["common_huge"])

            await self.using(await self.filled("huge", plan["huge"]), False, task)


class Rival:
    """Describes a rival; `open(folder, is_full)` returns a chat."""

    versions = ""
    lacks = {}
    notes = {}
    # Set if appending up to the large size would take too long.
    most_appends = None
    # How many messages a fork has in addition to the path.
    fork_more = 0

    def findable(self, count):
        """Returns the minimum number of hits for this many matching messages."""
        return count

    def searchable(self, large, tasks):
        """Returns the path of a store to search."""
        return tasks.copy(large, "search")


def history(chat):
    return chat.history()


def emit(line):
    print(json.dumps(line), flush=True)


async def done(answer):
    return await answer if inspect.isawaitable(answer) else answer


async def coroutine(function, *args):
    return await done(function(*args))


def run(rival):
    plan = json.loads(Path(sys.argv[1]).read_text())
    messages = json.loads(Path(plan["texts"]).read_text())
    asyncio.run(Tasks(rival, plan, messages).run())
