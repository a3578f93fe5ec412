"""The agent whose calls are measured: its conversation, its tools, its run, and the layer around it."""

from __future__ import annotations

import os
import random
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rewinds import MODEL

from agentrewind.clock import SystemClock
from agentrewind.current import set_layer
from agentrewind.layer import Layer
from agentrewind.opening import Place, live_layer
from agentrewind.options import RunOptions
from agentrewind.records import (
    FORMAT,
    MAIN_WORKSPACE,
    Header,
    RunId,
    WorkspaceDeclaration,
)
from agentrewind.rewind.tools import openai_tools
from agentrewind.run_store import Run, RunStore
from agentrewind.workspace.policy import Policy

CLOCK = SystemClock()
ANSWER_BYTES, RESULT_BYTES = 600, 2500

BASH = {
    "type": "function",
    "function": {
        "name": "bash",
        "description": "Run a command.",
        "parameters": {"type": "object", "properties": {"command": {"type": "string"}}},
    },
}
TOOLS: list[Any] = [BASH, *openai_tools()]


def words(number: int, length: int) -> str:
    """Text of that length that no other number has."""
    rng = random.Random(number)
    text = " ".join(f"{rng.randrange(16**6):06x}" for _ in range(length // 7 + 1))
    return text[:length]


@dataclass
class Talk:
    """One agent's side of the conversation."""

    messages: list[Any] = field(
        default_factory=lambda: [
            {"role": "system", "content": "You work in a shell."},
            {"role": "user", "content": "Mend it."},
        ]
    )

    def heard(self, response: Any) -> Any:
        """Take an answer in, as harnesses do; its tool call."""
        message = response.choices[0].message.model_dump()
        self.messages.append(message)
        return message["tool_calls"][0]

    def did(self, call: Any, output: Any) -> None:
        self.messages.append({"role": "tool", "tool_call_id": call["id"], "content": output["output"]})


def outcome(number: int) -> dict[str, Any]:
    return {"output": words(-number, RESULT_BYTES), "returncode": 0}


def create_run(base: Path, name: str, root: Path) -> Place:
    run = RunStore(base / f"home-{name}").create(
        Header(
            format=FORMAT,
            run_id=RunId("20260131-080000-1f3a9c"),
            segment=0,
            forked_from=None,
            created_at=CLOCK.now(),
            workspaces={
                MAIN_WORKSPACE: WorkspaceDeclaration(root=str(root), policy=Policy.default().to_json())
            },
            harness="benchmark",
            model=MODEL,
            versions={},
            options=RunOptions(task="mend").to_json(),
        )
    )
    return Place(run=run, root=root, store=base / f"snapshots-{name}.git")


@contextmanager
def opened(place: Place) -> Iterator[Layer]:
    with live_layer(place, supervisor=os.getpid(), clock=CLOCK, secrets=(), warn=print) as layer:
        set_layer(layer)
        try:
            yield layer
        finally:
            set_layer(None)


def size_of(run: Run) -> int:
    return sum(path.stat().st_size for path in run.directory.rglob("*") if path.is_file())


@contextmanager
def scratch(parent: Path) -> Iterator[Path]:
    base = Path(tempfile.mkdtemp(prefix="agentrewind-bench-", dir=parent))
    try:
        yield base
    finally:
        shutil.rmtree(base)
