"""SqliteSaver of langgraph-checkpoint-sqlite: a graph of one chat node over MessagesState.

A turn is one `invoke`: its input is the user's message, and the node returns the assistant's. Time
travel and forks are `update_state` with the config of an older checkpoint.
"""

import sqlite3
import sys
from importlib.metadata import version

from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, MessagesState, StateGraph

from tasks import Rival, run

CONFIG = {"configurable": {"thread_id": "chat"}}


def message(entry):
    kind = HumanMessage if entry["role"] == "user" else AIMessage
    return kind(entry["text"], id=entry["id"])


class Chat:
    answer = None
    question = None

    def __init__(self, folder, is_full):
        self.conn = sqlite3.connect(folder / "store.db", check_same_thread=False)
        self.conn.execute(f"PRAGMA synchronous = {'FULL' if is_full else 'NORMAL'}")
        builder = StateGraph(MessagesState)
        builder.add_node("chat", lambda state: {"messages": [self.answer]})
        builder.add_edge(START, "chat")
        builder.add_edge("chat", END)
        self.graph = builder.compile(checkpointer=SqliteSaver(self.conn))

    def append(self, entry):
        if entry["role"] == "user":
            self.question = message(entry)
            return
        self.answer = message(entry)
        self.graph.invoke({"messages": [self.question]}, CONFIG)

    def fill(self, entries):
        # Two checkpoints, so that there is one in the middle.
        half = len(entries) // 2
        for part in (entries[:half], entries[half:]):
            self.graph.update_state(CONFIG, {"messages": [message(one) for one in part]})

    def history(self):
        return self.graph.get_state(CONFIG).values["messages"]

    def last(self, count):
        return self.history()[-count:]

    def ids(self):
        states = self.graph.get_state_history(CONFIG)
        return {len(state.values["messages"]) - 1: state.config for state in states}

    def branch(self, at, entry):
        return self.graph.update_state(at, {"messages": [message(entry)]})

    def fork(self, at):
        return self.graph.update_state(at, {"messages": [HumanMessage("onward")]})

    def fork_length(self, config):
        return len(self.graph.get_state(config).values["messages"])

    def close(self):
        self.conn.close()


class LangGraph(Rival):
    versions = (
        f"langgraph {version('langgraph')}, langgraph-checkpoint-sqlite {version('langgraph-checkpoint-sqlite')}, "
        f"Python {sys.version.split()[0]}, SQLite {sqlite3.sqlite_version}"
    )
    lacks = {
        "compacted": "summarising removes the messages from the state",
        "search-first": "has no search",
    } | dict.fromkeys(["search", "search-huge", "search-common"], "has no search")
    notes = {"append": "half a turn", "append-deep": "half a turn", "append-full": "half a turn"} | dict.fromkeys(
        ["last", "last-cold"], "reads the whole state"
    ) | dict.fromkeys(["branch", "fork-small", "fork"], "writes the whole state plus one message")
    # Every step writes the whole state: 10 000 would take an hour and tens of gigabytes.
    most_appends = 1_000
    fork_more = 1

    def text(self, one):
        return one.content

    def open(self, folder, is_full):
        return Chat(folder, is_full)


run(LangGraph())
