"""What recording and loading cost: CPU per record, bytes per run, and that neither grows with history."""

from __future__ import annotations

import time
from pathlib import Path

from agentrewind.journal import SegmentWriter
from agentrewind.records import JsonObject, LlmNode
from agentrewind.run_store import Run, RunStore
from tests.records import header, llm, started, tool

ANSWER = "a" * 600
OUTPUT = "o" * 2500
TOOLS: JsonObject = {"name": "bash", "description": "d" * 1500}


def record(writer: SegmentWriter, steps: range) -> float:
    """CPU seconds for these steps, each an LLM call that adds two messages and a tool call."""
    begun = time.process_time()
    for step in steps:
        number = 2 * step + 1
        added: tuple[JsonObject, ...] = (
            {"role": "assistant", "content": ANSWER},
            {"role": "tool", "content": OUTPUT},
        )
        writer.append(started(number), durable=False)
        node = llm(number, base=number - 2 if step else None, keep=2 * step, append=added, tools=[TOOLS])
        writer.append(node, durable=False)
        writer.append(started(number + 1), durable=False)
        writer.append(tool(number + 1, output={"output": OUTPUT, "returncode": 0}), durable=False)
    return time.process_time() - begun


def recorded(home: Path, steps: int) -> Run:
    run = RunStore(home).create(header())
    with run.writer(0) as writer:
        record(writer, range(steps))
    return run


def test_a_record_costs_little_at_the_end_as_at_the_beginning(tmp_path: Path) -> None:
    run = RunStore(tmp_path).create(header())
    with run.writer(0) as writer:
        record(writer, range(50))
        early = min(record(writer, range(start, start + 50)) for start in (50, 100, 150))
        record(writer, range(200, 850))
        late = min(record(writer, range(start, start + 50)) for start in (850, 900, 950))
    assert early / 200 < 0.0002
    assert late < 2 * early + 0.005


def test_a_log_is_linear_in_what_was_said(tmp_path: Path) -> None:
    small, large = recorded(tmp_path / "a", 50), recorded(tmp_path / "b", 200)
    assert large.size_bytes() < 4.2 * small.size_bytes()
    assert large.size_bytes() < 3_000_000


def test_two_thousand_nodes_load_at_once(tmp_path: Path) -> None:
    run = recorded(tmp_path, 1000)
    begun = time.process_time()
    line = run.timeline()
    nodes = line.path()
    messages = [len(line.messages(node.record_uid)) for node in nodes if isinstance(node, LlmNode)]
    spent = time.process_time() - begun
    assert len(nodes) == 2000
    assert messages == list(range(2, 2001, 2))
    assert spent < 1.0
