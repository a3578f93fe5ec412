"""A pytest plugin with one fixture, `kept_run`: replays a kept run and fails with the first difference."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import pytest

if TYPE_CHECKING:
    # what a test does not use must not be imported before its coverage is measured
    from agentrewind.replay_outcome import Replay

FOLDER = "runs"


class KeptRun(Protocol):
    """What the fixture gives."""

    def __call__(
        self, name: str | Path, *, command: Sequence[str] | None = None, on_divergence: str = "stop"
    ) -> Replay: ...


@pytest.fixture
def kept_run(request: pytest.FixtureRequest) -> KeptRun:
    """Replays a run that `agentrewind keep` has put into the folder `runs` beside the test file.

    Called with its name there, or with any path. The agent runs in a process of its own as the code is now,
    every model and tool call answered from the log, nothing live in reach. `command` starts it where it was
    recorded as a script: the recorded one names files of the machine on which that was. The test fails with
    the first difference between what the agent asks and what the log holds; else it goes on with what came
    of the replay.
    """
    folder = request.path.parent / FOLDER

    def replay(
        name: str | Path, *, command: Sequence[str] | None = None, on_divergence: str = "stop"
    ) -> Replay:
        from agentrewind.errors import AgentRewindError
        from agentrewind.kept_runs import replay_kept
        from agentrewind.replayer import OnDivergence

        try:
            found = replay_kept(
                folder / name,
                environment=dict(os.environ),
                command=command,
                on_divergence=OnDivergence(on_divergence),
            )
        except AgentRewindError as error:
            pytest.fail(f"{name} cannot be replayed: {error}", pytrace=False)
        if found.divergence is not None:
            pytest.fail(_told(str(name), found), pytrace=False)
        return found

    return replay


def _told(name: str, found: Replay) -> str:
    lines = [f"the agent no longer does what it did in {name}: {found.divergence}"]
    if found.nodes:
        lines.append(f"{len(found.nodes)} nodes before that are the same, the last one is {found.nodes[-1]}")
    lines += [f"matched by position: {warning}" for warning in found.warnings]
    lines.append("where the change is meant, record the run again and keep that one")
    return "\n".join(lines)
