"""How an agent process is started: its command, its folder, and its environment."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from agentrewind.backup.hosts.request import ACTIVE
from agentrewind.handover import (
    CLAIM,
    HASH_SEED,
    ON_DIVERGENCE,
    PATH_BEFORE,
    REWIND_FILE,
    RUN_DIRECTORY,
    SNAPSHOT_STORE,
    STARTUP,
    SUPERVISOR,
)
from agentrewind.opening import Place
from agentrewind.processes import RUN_VARIABLE
from agentrewind.replayer import OnDivergence

OFFLINE_SETTINGS = {
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    "LANGSMITH_TRACING": "false",
    "MSWEA_COST_TRACKING": "ignore_errors",
    "MSWEA_SILENT_STARTUP": "1",
}
"""Set for the agent process unless the user has set them: without them imports reach for the network."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """What is handed to the operating system."""

    command: list[str]
    environment: dict[str, str]
    directory: Path | None


def compose(
    place: Place,
    *,
    segment: int,
    script: tuple[str, ...],
    environment: Mapping[str, str],
    on_divergence: OnDivergence | None,
    preserves: bool = False,
) -> Launch:
    """The start of one attempt: our own main for a harness, or the user's script with us at its start.

    Where the run `preserves` external state itself, an installed backup hook of a harness stands aside.
    """
    composed = {**OFFLINE_SETTINGS, **environment}
    composed[HASH_SEED] = composed.get("PYTHONHASHSEED", "")
    composed["PYTHONHASHSEED"] = composed[HASH_SEED] or "0"
    composed[RUN_VARIABLE] = place.run.run_id
    composed[SUPERVISOR] = str(os.getpid())
    composed[SNAPSHOT_STORE] = str(place.store)
    rewind = place.run.rewind_path(segment)
    composed.pop(RUN_DIRECTORY, None)
    composed.pop(REWIND_FILE, None)
    composed[REWIND_FILE if rewind.exists() else RUN_DIRECTORY] = str(
        rewind if rewind.exists() else place.run.directory
    )
    if not composed.get("HOME"):
        # harnesses make their folder of settings at import, wherever HOME points
        composed["HOME"] = str(place.run.directory)
    composed.pop(ACTIVE, None)
    if preserves:
        composed[ACTIVE] = "1"
    if on_divergence is not None:
        composed[ON_DIVERGENCE] = on_divergence.value
    if not script:
        command = [sys.executable, "-P", "-m", "agentrewind.attempt"]
        return Launch(command=command, environment=composed, directory=None)
    before = composed.get("PYTHONPATH", "")
    composed[PATH_BEFORE] = before
    composed["PYTHONPATH"] = os.pathsep.join([STARTUP, before]) if before else STARTUP
    composed[CLAIM] = str(claim_path(place))
    return Launch(command=list(script), environment=composed, directory=place.root)


def claim_path(place: Place) -> Path:
    """The file by which the first Python process of a script's attempt joins the run."""
    return place.run.directory / "claim"
