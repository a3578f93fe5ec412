"""Runs a harness without the runtime: no layer or one that does nothing, and clients that nobody wraps.

    python bare.py HARNESS MODEL WORKSPACE TASK SETTINGS

What the agent does here is what it has to do under the layer as well.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

from agentrewind.adapters import Assignment, load_adapter
from agentrewind.jsonform import to_json
from agentrewind.layer import Layer, ToolResult
from agentrewind.options import RunOptions, Strategy
from agentrewind.records import RecordUid
from agentrewind.rewind.signal import Latch
from agentrewind.submissions import SubmissionResult

NOWHERE = RecordUid("rec_000000")


class Bare:
    """The part of a layer that adapters use; every call is made and none is written down."""

    guidance = ""
    last_answer = None

    def __init__(self) -> None:
        self.options = RunOptions(task="", strategy=Strategy.CONTINUE)
        self.latch = Latch()
        self.rewind_tools: list[Any] = []

    def is_rewind_tool(self, name: str) -> bool:
        return False

    def run_tool(self, name: str, arguments: object, perform: Callable[[], object], **_: Any) -> ToolResult:
        return ToolResult(value=to_json(perform()), record_uid=NOWHERE, served=False)

    async def arun_tool(
        self, name: str, arguments: object, perform: Callable[[], Awaitable[object]], **_: Any
    ) -> ToolResult:
        return ToolResult(value=to_json(await perform()), record_uid=NOWHERE, served=False)

    def submit(self, record_uid: RecordUid) -> SubmissionResult:
        return SubmissionResult(accepted=True, final=True, feedback="")

    def submit_last(self) -> SubmissionResult:
        return self.submit(NOWHERE)

    @contextmanager
    def collecting(self) -> Iterator[None]:
        yield


def main(harness: str, model: str, workspace: str, task: str, settings: str) -> int:
    root = Path(workspace)
    os.chdir(root)
    assignment = Assignment(task=task, model=model, workspace=root, settings=json.loads(settings))
    adapter = load_adapter(harness)
    if harness == "smolagents":
        # its joints need a layer that knows the answers, and are put in after the agent is built
        cast(Any, adapter).build(assignment).run(task)
        state = "accepted"
    else:
        state = adapter.run(cast(Layer, Bare()), assignment).state
    print(state)
    return 0 if state == "accepted" else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
