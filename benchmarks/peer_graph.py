"""The loop of `peer_loop` as a graph of LangGraph whose steps are kept in SQLite.

    python peer_graph.py STEPS

Prints `{"costs", "bytes"}`: a cost is the CPU of the process for a step with the checkpoints, less that of
the same step without any. There is no replay: a graph that is resumed goes on with live calls.
"""

from __future__ import annotations

import importlib
import json
import operator
import sys
import tempfile
import time
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, TypedDict

import peer_loop


class State(TypedDict):
    """What the graph carries from node to node."""

    messages: Annotated[list[Any], operator.add]


def run(steps: int, saver: Any) -> list[float]:
    """Milliseconds of CPU of the process for each step, all threads included."""
    graphs = importlib.import_module("langgraph.graph")
    answers, outputs = peer_loop.made(steps)
    ticks: list[float] = []

    def model(state: State) -> dict[str, Any]:
        ticks.append(time.process_time())
        return {"messages": [answers[(len(state["messages"]) - 2) // 2]]}

    def tool(state: State) -> dict[str, Any]:
        call = state["messages"][-1]["tool_calls"][0]
        done = outputs[peer_loop.number_of(call)]
        return {"messages": [{"role": "tool", "tool_call_id": call["id"], "content": done["output"]}]}

    graph = graphs.StateGraph(State)
    graph.add_node("model", model)
    graph.add_node("tool", tool)
    graph.add_edge(graphs.START, "model")
    graph.add_edge("model", "tool")
    graph.add_conditional_edges(
        "tool", lambda state: graphs.END if len(state["messages"]) >= 2 * steps + 2 else "model"
    )
    opening = [{"role": "system", "content": "You work."}, {"role": "user", "content": "Mend it."}]
    config = {"configurable": {"thread_id": "1"}, "recursion_limit": 2 * steps + 10}
    # each step is kept before the next begins: otherwise they pile up, and the last step pays for all
    durability = {"durability": "sync"} if saver is not None else {}
    graph.compile(checkpointer=saver).invoke({"messages": opening}, config, **durability)
    ticks.append(time.process_time())
    return [(after - before) * 1e3 for before, after in pairwise(ticks)]


def main(steps: int) -> None:
    sqlite = importlib.import_module("langgraph.checkpoint.sqlite")
    with tempfile.TemporaryDirectory() as folder:
        plain = run(steps, None)
        with sqlite.SqliteSaver.from_conn_string(str(Path(folder) / "steps.sqlite")) as saver:
            kept = run(steps, saver)
        size = sum(path.stat().st_size for path in Path(folder).iterdir())
    costs = [more - less for more, less in zip(kept, plain, strict=True)]
    print(json.dumps({"costs": costs, "bytes": size}))


if __name__ == "__main__":
    main(int(sys.argv[1]))
