"""The verifier within a Harbor environment: grades a workspace and writes the reward files.

Started as root, `grade_inside.py TASK WORKSPACE LOGS ISOLATION MARK`; this file lies in the package
`mettlebench` that was exported with the task, and needs nothing but the standard library. Where there is no
verdict there is no reward file, which Harbor takes for a failure of its own and not of the agent.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mettlebench.sandbox import SandboxMode
    from mettlebench.verdict import Verdict

REWARD_TEXT = "reward.txt"
REWARD_JSON = "reward.json"
VERDICT = "verdict.json"


def main(arguments: list[str]) -> int:
    """Grade; 0 with a verdict, 1 without."""
    task, workspace, logs, isolation, mark = arguments
    place = Path(logs)
    place.mkdir(parents=True, exist_ok=True)
    for name in (REWARD_TEXT, REWARD_JSON, VERDICT):
        (place / name).unlink(missing_ok=True)
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
    from mettlebench.errors import MettleBenchError

    try:
        _end_agent(Path(mark))
        mode, user = _isolation(isolation)
        print(f"isolation: {mode.value if user is None else 'user'}", flush=True)  # noqa: T201 - Harbor's log
        verdict = _verdict(Path(task), Path(workspace), mode, user)
    except MettleBenchError as error:
        print(f"no verdict: {error}", flush=True)  # noqa: T201
        return 1
    _reward(verdict, place)
    return 0


def _verdict(task: Path, workspace: Path, mode: SandboxMode, user: int | None) -> Verdict:
    from mettlebench.evaluate import evaluate
    from mettlebench.load import read_task

    return evaluate(read_task(task), workspace, mode=mode, program_user=user)


def _isolation(word: str) -> tuple[SandboxMode, int | None]:
    """The sandbox, or without one another user; the agent's programs never run with the verifier's rights."""
    from mettlebench.errors import SandboxUnavailableError
    from mettlebench.other_user import PROGRAM_USER
    from mettlebench.sandbox import SandboxMode, require_sandbox

    if word not in ("auto", "bubblewrap", "user"):
        raise SandboxUnavailableError(f"METTLEBENCH_ISOLATION is {word!r}; use auto, bubblewrap or user")
    if word != "user":
        try:
            require_sandbox(SandboxMode.BUBBLEWRAP)
        except SandboxUnavailableError:
            if word == "bubblewrap":
                raise
        else:
            return SandboxMode.BUBBLEWRAP, None
    if os.geteuid() != 0:
        raise SandboxUnavailableError("there is no sandbox here and the verifier is not root; let it be root")
    return SandboxMode.NONE, PROGRAM_USER


def _end_agent(mark: Path) -> None:
    """In the exported image, and nowhere else, end what the agent left running: it could write a reward."""
    from mettlebench.other_user import end_all_of

    if os.geteuid() == 0:
        with contextlib.suppress(FileNotFoundError):
            end_all_of(int(mark.read_text()))


def _reward(verdict: Verdict, place: Path) -> None:
    from mettlebench.verdict import encode_verdict

    reward = {
        "reward": int(verdict.accepted),
        "progress": round(verdict.progress, 6),
        "criteria_met": round(verdict.passed / len(verdict.results), 6),
    }
    _put(place / VERDICT, encode_verdict(verdict))
    _put(place / REWARD_TEXT, f"{reward['reward']}\n".encode())
    _put(place / REWARD_JSON, json.dumps(reward).encode() + b"\n")


def _put(path: Path, data: bytes) -> None:
    # by rename: whatever an agent put there, a link among it, is replaced and not written through
    written = path.with_name(f".{path.name}.{os.getpid()}")
    with written.open("xb") as file:
        file.write(data)
    written.replace(path)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
