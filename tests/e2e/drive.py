"""A supervisor in a process of its own: starts or resumes the run that a JSON file describes.

    python drive.py ORDER.json

Each line of output is one JSON object: `{"run": …}` once the run exists, `{"told": …}` for what a person
should know, and last `{"result": …}` or `{"error": …}`. The exit code is the result's, or the error's.
"""

from __future__ import annotations

import dataclasses
import json
import sys
from pathlib import Path
from typing import Any

from agentrewind.clock import SystemClock
from agentrewind.errors import AgentRewindError
from agentrewind.options import RunOptions
from agentrewind.outcome import RunResult
from agentrewind.replayer import OnDivergence
from agentrewind.runs import NewRun, resume_run, start_run
from agentrewind.starting import Start
from agentrewind.supervise import Surroundings
from agentrewind.workspace.policy import Policy


def say(**fields: Any) -> None:
    print(json.dumps(fields), flush=True)


def carry_out(order: dict[str, Any]) -> RunResult:
    around = Surroundings(
        home=Path(order["home"]),
        user_home=Path(order["user_home"]),
        environment=order["environment"],
        clock=SystemClock(),
        tell=lambda text: say(told=text),
        on_created=lambda run: say(run=run.run_id),
        start=Start(order["environment"].get("DRIVE_START", "spawn")),
    )
    if order["run_id"] is not None:
        chosen = order["on_divergence"]
        return resume_run(
            order["run_id"], around, on_divergence=OnDivergence(chosen) if chosen is not None else None
        )
    policy = Policy.default() if order["policy"] is None else Policy.from_json(order["policy"])
    new = NewRun(
        root=Path(order["root"]),
        harness=order["harness"],
        model=order["model"],
        options=RunOptions.from_json(order["options"]),
        policy=policy,
    )
    return start_run(new, around)


def main() -> int:
    try:
        result = carry_out(json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")))
    except AgentRewindError as error:
        say(error=type(error).__name__, message=str(error), exit_code=error.exit_code)
        return error.exit_code
    say(result=dataclasses.asdict(result))
    return result.exit_code


if __name__ == "__main__":
    sys.exit(main())
