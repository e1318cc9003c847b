"""Runs graphs of one node that repeats, with a SQLite checkpointer, each checkpoint before the next step."""

import sqlite3
import sys
import threading
from typing import TypedDict

from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, StateGraph


class State(TypedDict):
    done: int
    summary: str


steps, runs, path = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
graph = StateGraph(State)
graph.add_node("work", lambda state: {"done": state["done"] + 1, "summary": "one more"})
graph.add_edge(START, "work")
graph.add_conditional_edges("work", lambda state: END if state["done"] >= steps else "work")
saver = SqliteSaver(sqlite3.connect(path, check_same_thread=False))
saver.setup()
app = graph.compile(checkpointer=saver)
failed = []


def run(thread):
    settings = {"configurable": {"thread_id": str(thread)}, "recursion_limit": steps + 10}
    try:
        assert app.invoke({"done": 0, "summary": ""}, settings, durability="sync")["done"] == steps
    except Exception as error:
        failed.append(error)


threads = [threading.Thread(target=run, args=(index,)) for index in range(runs)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
sys.exit(str(failed[0]) if failed else 0)
