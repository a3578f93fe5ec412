"""Results of made-up campaigns, as they would be on disk."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Sequence
from pathlib import Path

from runner.cell import Cell, Strategy
from runner.report.gather import MAIN
from runner.result import (
    Criterion,
    Endpoint,
    Exit,
    Progress,
    Result,
    State,
    SubmissionResult,
    Tokens,
)
from runner.result_form import save_result

TASKS = (
    "address-split",
    "asset-cache",
    "key-rotation",
    "po-merge",
    "tag-ledger",
    "wal-salvage",
    "text-recode",
)


def result(
    *,
    task: str = "wal-salvage",
    model: str = "some/model",
    strategy: Strategy = Strategy.CONTINUE,
    run: int = 1,
    prefix: int = 3,
    total: int = 8,
    points: Sequence[tuple[int, int]] = (),
    nodes: int = 40,
    exit_: Exit | None = None,
    endpoint: Endpoint | None = None,
) -> Result:
    """One result that agrees with itself; an abnormal one has no criteria."""
    success = prefix == total and exit_ is None
    end = exit_ or (Exit.SUCCESS if success else Exit.REPEATED_FAILURE)
    abnormal = end in (Exit.INFRASTRUCTURE, Exit.CANCELLED)
    criteria = tuple(
        Criterion(id=f"C{n + 1:02}", category="correctness", passed=n < prefix or n == prefix + 1)
        for n in range(0 if abnormal else total)
    )
    return Result(
        cell=Cell(task=task, model=model, harness="mini-swe-agent", strategy=strategy, run=run),
        task_digest="d1",
        family="operate-system",
        seed=0,
        state=State.ACCEPTED if success else State.STOPPED,
        exit=end,
        detail="the network was gone" if abnormal else "",
        accepted=success,
        success=success,
        criteria=criteria,
        submissions=(
            SubmissionResult(
                attempt=1,
                record_uid="rec_000009",
                nodes=nodes,
                accepted=success,
                first_failure=None if success else "C04",
                prefix=prefix,
                passed=tuple(each.id for each in criteria if each.passed),
                regressions=(),
                repeated=0 if success else 5,
            ),
        ),
        nodes=nodes,
        llm_nodes=nodes // 2,
        tool_nodes=nodes - nodes // 2,
        rewinds=2 if strategy is Strategy.REWIND else 0,
        attempts=1,
        tries=1,
        tokens=Tokens(input=9000, output=800, cached=100),
        cost=None if run == 2 else 0.5,
        seconds=nodes * 1.5,
        storage_bytes=nodes * 1000,
        suspicions=(),
        clean=True,
        progress=tuple(Progress(nodes=n, prefix=p) for n, p in points),
        sandbox="bubblewrap",
        started_at="2026-01-05T09:00:00Z",
        ended_at="2026-01-05T09:10:00Z",
        endpoint=endpoint,
    )


def campaign(model: str = "some/model", runs: int = 3) -> list[Result]:
    """Every task under the four strategies, AgentRewind ahead more often than not."""
    chance, found = random.Random(model), []
    for task in TASKS:
        for number, strategy in enumerate(MAIN):
            for run in range(1, runs + 1):
                prefix = min(8, chance.randrange(2, 8) + number)
                fall = max(prefix - 2, 0)
                found.append(
                    result(
                        task=task,
                        model=model,
                        strategy=strategy,
                        run=run,
                        prefix=prefix,
                        nodes=chance.randrange(20, 90),
                        points=((4, 1), (9, prefix), (12, fall), (18, prefix)),
                    )
                )
    return found


def on_disk(root: Path, results: Iterable[Result], planned: Iterable[str] = ()) -> Path:
    """The folder of a campaign with these results."""
    held = list(results)
    root.mkdir()
    for each in held:
        folder = root / "cells" / each.cell.id
        folder.mkdir(parents=True)
        save_result(each, folder)
    cells = [*(each.cell.id for each in held), *planned]
    (root / "plan.json").write_text(json.dumps({"cells": cells}))
    return root
