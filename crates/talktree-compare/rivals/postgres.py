"""PostgresSaver of langgraph-checkpoint-postgres and SQLAlchemySession of openai-agents, on the server whose URL
TALKTREE_TEST_POSTGRES holds: what `just bench-postgres` prints below its table.

Their tables go into the database of the URL, below names of their own, and are dropped at the end.
"""

import asyncio
import os
import time
from importlib.metadata import version
from urllib.parse import parse_qs, urlsplit

import psycopg
from agents.extensions.memory import SQLAlchemySession
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.graph import END, START, MessagesState, StateGraph
from psycopg.rows import dict_row
from sqlalchemy.ext.asyncio import create_async_engine

TEXT = "Can we deploy on Friday, please?"
# How many messages each has before it is measured.
MESSAGES = 1_000
ROUNDS = 100


def server():
    """Returns host, port, user and database: the parameter `host` of the URL replaces the one before its path."""
    url = urlsplit(os.environ["TALKTREE_TEST_POSTGRES"])
    host = parse_qs(url.query.strip("&")).get("host", [url.hostname])[-1]
    return host, url.port or 5432, url.username or "postgres", url.path.strip("/") or "postgres"


def show(rival, task, times):
    times = sorted(times)
    median, late = times[len(times) // 2], times[int((len(times) - 1) * 0.95)]
    print(f"{rival:20} {task:36} {median * 1e3:>9.3f} ms {late * 1e3:>9.3f} ms", flush=True)


async def agents():
    host, port, user, database = server()
    engine = create_async_engine(
        f"postgresql+asyncpg://{user}@/{database}", connect_args={"host": host, "port": port}
    )
    tables = {"sessions_table": "bench_sessions", "messages_table": "bench_messages"}
    session = lambda name: SQLAlchemySession(name, engine=engine, create_tables=True, **tables)
    item = {"role": "user", "content": TEXT}
    name = "openai-agents"

    async def timed(task, work, rounds=ROUNDS):
        await work()
        times = []
        for _ in range(rounds):
            start = time.perf_counter()
            await work()
            times.append(time.perf_counter() - start)
        show(name, task, times)

    chat = session("chat")
    await chat.add_items([item] * MESSAGES)
    await timed("append", lambda: chat.add_items([item]))
    await timed("the last 20", lambda: chat.get_items(limit=20))
    bulk = session("bulk")
    await timed("append of 1 000", lambda: bulk.add_items([item] * 1_000), 9)
    await timed("history of 10 000", bulk.get_items, 9)
    async with engine.begin() as conn:
        for table in reversed(tables.values()):
            await conn.exec_driver_sql(f"DROP TABLE {table} CASCADE")
    await engine.dispose()


def langgraph():
    host, port, user, database = server()
    with psycopg.connect(
        host=host, port=port, user=user, dbname=database, autocommit=True, prepare_threshold=0, row_factory=dict_row
    ) as conn:
        conn.execute("DROP SCHEMA IF EXISTS bench_langgraph CASCADE")
        conn.execute("CREATE SCHEMA bench_langgraph")
        conn.execute("SET search_path TO bench_langgraph")
        saver = PostgresSaver(conn)
        saver.setup()
        builder = StateGraph(MessagesState)
        builder.add_node("chat", lambda state: {"messages": [AIMessage(TEXT)]})
        builder.add_edge(START, "chat")
        builder.add_edge("chat", END)
        graph = builder.compile(checkpointer=saver)
        config = lambda name: {"configurable": {"thread_id": name}}
        many = lambda count: {"messages": [HumanMessage(TEXT) for _ in range(count)]}
        name = "langgraph"

        def timed(task, work, rounds, share=1):
            work()
            times = []
            for _ in range(rounds):
                start = time.perf_counter()
                work()
                times.append((time.perf_counter() - start) / share)
            show(name, task, times)

        graph.update_state(config("chat"), many(MESSAGES))
        timed("append (half a turn)", lambda: graph.invoke(many(1), config("chat")), 20, 2)
        timed("the whole state, for the last 20", lambda: graph.get_state(config("chat")), 20)
        timed("append of 1 000 (new)", lambda: graph.update_state(config(str(time.time())), many(1_000)), 9)
        graph.update_state(config("bulk"), many(10_000))
        timed("history of 10 000", lambda: graph.get_state(config("bulk")), 9)
        conn.execute("DROP SCHEMA bench_langgraph CASCADE")


names = ("openai-agents", "sqlalchemy", "asyncpg", "langgraph", "langgraph-checkpoint-postgres", "psycopg")
print(f"\n{', '.join(f'{name} {version(name)}' for name in names)}; {MESSAGES} messages each")
print(f"{'rival':20} {'work':36} {'median':>12} {'p95':>12}")
asyncio.run(agents())
langgraph()
