"""What the files of an exported task say: Harbor's `task.toml`, the image's recipe, the two scripts."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from pathlib import Path

from mettlebench.sandbox import INSIDE, Sandbox, sandbox_environment
from mettlebench.steps import Step
from mettlebench.task import Task

ORGANISATION = "mettlebench"
SCHEMA_VERSION = "1.4"
IMAGE = "debian:bookworm-slim"
"""The image whose tools the gates of our own tasks are run with."""

PACKAGES = (
    "bubblewrap",
    "ca-certificates",
    "diffutils",
    "file",
    "git",
    "make",
    "openssl",
    "patch",
    "procps",
    "python3",
    "python3-venv",
    "sqlite3",
)
AGENT_USER = "dev"
AGENT_USER_ID = 1000
AGENT_MARK = "/etc/mettlebench-agent"
"""In the image: the id of the user whose processes end before the grading."""

AGENT_SECONDS = 4 * 60 * 60
SPARE_SECONDS = 120
"""What the verifier may take besides the evaluation itself."""

_OF_A_USER = ("HOME", "USER", "LOGNAME", "SHELL", "PATH", "TERM")


def task_toml(task: Task, *, network: bool) -> str:
    """Harbor's description of the task; nothing of it is shown to an agent."""
    tables: Mapping[str, Mapping[str, object]] = {
        "task": {
            "name": f"{ORGANISATION}/{task.id}",
            "description": task.title,
            "keywords": [task.family.value, task.category],
        },
        "metadata": {
            "source": "MettleBench",
            "family": task.family.value,
            "category": task.category,
            "licence": task.licence,
            "criteria": len(task.criteria),
            "canary": task.canary,
        },
        "verifier": {"timeout_sec": float(task.evaluation_seconds + SPARE_SECONDS), "user": "root"},
        "agent": {"timeout_sec": float(AGENT_SECONDS), "user": AGENT_USER},
        "environment": {
            "build_timeout_sec": 900.0,
            "cpus": 1,
            "memory_mb": 2048,
            "storage_mb": 10240,
            "workdir": INSIDE,
            "network_mode": "public" if network else "no-network",
        },
    }
    lines = [f"schema_version = {_value(SCHEMA_VERSION)}"]
    for name, table in tables.items():
        lines += ["", f"[{name}]", *(f"{key} = {_value(value)}" for key, value in table.items())]
    return "\n".join(lines) + "\n"


def _value(value: object) -> str:
    # for text, numbers and lists of text, TOML writes what JSON writes
    return json.dumps(value, ensure_ascii=False)


def dockerfile() -> str:
    """The image: the tools, one user without rights, the workspace as the builder made it."""
    everyone = sandbox_environment(Sandbox(workspace=Path(INSIDE)), Path("/nonexistent"))
    settings = " ".join(f"{name}={value}" for name, value in everyone.items() if name not in _OF_A_USER)
    return f"""\
FROM {IMAGE}
RUN apt-get update \\
 && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends {" ".join(PACKAGES)} \\
 && rm -rf /var/lib/apt/lists/*
RUN useradd --uid {AGENT_USER_ID} --create-home --shell /bin/bash {AGENT_USER} \\
 && echo {AGENT_USER_ID} > {AGENT_MARK}
ENV {settings}
# an archive, since times, empty folders and inner repositories do not all survive a copy or a checkout
COPY workspace.tar /tmp/workspace.tar
RUN mkdir -p {INSIDE} && tar -xpf /tmp/workspace.tar -C {INSIDE} --same-owner && rm /tmp/workspace.tar
WORKDIR {INSIDE}
"""


def test_script(task: Task) -> str:
    """The verifier's entry. The variable METTLEBENCH_ISOLATION picks auto, bubblewrap or user."""
    return f"""\
#!/bin/bash
# {task.canary}
# Grades {INSIDE} with the hidden checklist and writes the reward; exit code 0 where there is a verdict.
tests=$(cd "$(dirname "$0")" && pwd)
chmod 700 "$tests"
exec python3 -I -S -B "$tests/mettlebench/harbor/grade_inside.py" \\
    "$tests/{task.id}" {INSIDE} /logs/verifier "${{METTLEBENCH_ISOLATION:-auto}}" {AGENT_MARK}
"""


def solve_script(task: Task) -> str:
    """The reference: every step is a shell of its own, as in the task's gates."""
    return f"""\
#!/bin/bash
# {task.canary}
# Does all of the task in one forward pass.
set -euo pipefail
steps=$(cd "$(dirname "$0")" && pwd)/steps
cd {INSIDE}
for step in "$steps"/*.sh; do
    echo "== ${{step##*/}}"
    bash -euo pipefail "$step" </dev/null
done
"""


def step_script(task: Task, step: Step) -> str:
    """One step of the reference."""
    return f"# {task.canary}\n# {shlex.quote(step.name)}\n{step.script}"
