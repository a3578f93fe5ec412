"""The process inside the grading sandbox: runs every criterion of one evaluator and reports the outcomes.

Started as `inside.py ASKS ANSWERS WORKSPACE SCRATCHES TASK CODE`: two descriptors, and where this process
sees the workspace copy, the scratch copies, the task's folder and the folder of the `mettlebench` package.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any


def main() -> None:
    """Run and report; whatever is raised ends the process, and then there is no verdict."""
    asks, answers = int(sys.argv[1]), int(sys.argv[2])
    workspace, scratches, task, code = (Path(each) for each in sys.argv[3:7])
    sys.path[:0] = [str(task), str(code)]
    from mettlebench.check.grading import Grading
    from mettlebench.check.outcome import Unmet
    from mettlebench.check.scratch import Broker

    broker = Broker(os.fdopen(asks, "wb"), os.fdopen(answers, "rb"))
    outcomes = []
    for criterion_id, check in _checks(task / "evaluate.py").items():
        # a new view for each, so that no criterion can lean on what another did
        grading = Grading(workspace, scratches=scratches, task=task, broker=broker)
        try:
            check(grading)
        except Unmet as unmet:
            outcomes.append([criterion_id, False, str(unmet)])
        else:
            outcomes.append([criterion_id, True, ""])
    broker.ask(op="report", outcomes=outcomes)


def _checks(path: Path) -> Mapping[str, Callable[[Any], None]]:
    spec = importlib.util.spec_from_file_location("evaluate", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["evaluate"] = module
    spec.loader.exec_module(module)
    checks: Mapping[str, Callable[[Any], None]] = module.CHECKS
    return checks


if __name__ == "__main__":
    main()
