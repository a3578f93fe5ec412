"""Where a story plays: a workspace, a store, a scripted model that is counted, a file outside for effects."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agentrewind.records import RunId
from agentrewind.run_store import Run, RunStore
from agentrewind.timeline import Timeline
from harness_adapters.scripted import Policy, ScriptedAnswer, ScriptedModel, ScriptedRequest
from tests.workspace.disk import Fact, manifest

REPOSITORY = Path(__file__).parents[2]
DRIVE = Path(__file__).with_name("drive.py")
KEY = "sk-scripted-5a1e7c0ffee"
TIMEOUT_S = 120

Manifest = dict[bytes, Fact]


@dataclass(frozen=True, kw_only=True)
class Ended:
    """How a supervisor process ended, and what it said."""

    code: int
    said: list[dict[str, Any]]
    stderr: str

    @property
    def result(self) -> dict[str, Any]:
        assert self.said, self.stderr
        assert "result" in self.said[-1], (self.said, self.stderr)
        found: dict[str, Any] = self.said[-1]["result"]
        return found

    @property
    def error(self) -> tuple[str, str]:
        assert self.said, self.stderr
        return self.said[-1]["error"], self.said[-1]["message"]

    @property
    def told(self) -> list[str]:
        return [each["told"] for each in self.said if "told" in each]


@dataclass(frozen=True, kw_only=True)
class Arrived:
    """A request at the server: what it was, what it got, and the workspace while the agent waited."""

    request: ScriptedRequest
    answer: ScriptedAnswer
    files: Manifest


@dataclass(kw_only=True)
class Stage:
    """One story's place. The policy may be replaced while the server runs.

    `skip` leaves paths out of the manifests that are taken at every request.
    """

    base: Path
    policy: Policy
    skip: Callable[[bytes], bool] | None = None
    arrivals: list[Arrived] = field(default_factory=list)
    extra: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.root = self.base / "ws"
        self.home = self.base / "store"
        self.user_home = self.base / "user"
        self.side = self.base / "side.txt"
        for directory in (self.root, self.user_home):
            directory.mkdir()
        self.side.touch()
        self.server = ScriptedModel(self._answer)

    def __enter__(self) -> Stage:
        return self

    def __exit__(self, *_: object) -> None:
        self.server.close()

    def _answer(self, request: ScriptedRequest) -> ScriptedAnswer:
        files = manifest(self.root, skip=self.skip)
        answer = self.policy(request)
        self.arrivals.append(Arrived(request=request, answer=answer, files=files))
        return answer

    @property
    def environment(self) -> dict[str, str]:
        """What the agent process is given."""
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(self.user_home),
            "OPENAI_API_KEY": KEY,
            "OPENAI_BASE_URL": self.server.base_url,
            "OPENAI_API_BASE": self.server.base_url,
            "PYTHONPATH": str(REPOSITORY),
            "SIDE": str(self.side),
            "MSWEA_MODEL_RETRY_STOP_AFTER_ATTEMPT": "1",
            **self.extra,
        }

    def start(self, *, task: str = "do it", **given: Any) -> Ended:
        """Start a run and wait for its supervisor; options as `RunOptions.to_json` names them."""
        return finish(self.launch(task=task, **given))

    def resume(self, *, on_divergence: str | None = None, **given: Any) -> Ended:
        """Resume the only run and wait for its supervisor."""
        return finish(self.launch(run_id=self.run.run_id, on_divergence=on_divergence, **given))

    def launch(
        self,
        *,
        harness: str = "mini-swe-agent",
        model: str = "openai/scripted",
        root: Path | None = None,
        home: Path | None = None,
        user_home: Path | None = None,
        policy: Mapping[str, Any] | None = None,
        run_id: str | None = None,
        on_divergence: str | None = None,
        supervisor_environment: Mapping[str, str] | None = None,
        agent_environment: Mapping[str, str] | None = None,
        **options: Any,
    ) -> subprocess.Popen[bytes]:
        """Start the supervisor's process."""
        order = {
            "home": str(home or self.home),
            "user_home": str(user_home or self.user_home),
            "environment": {**self.environment, **(agent_environment or {})},
            "run_id": run_id,
            "on_divergence": on_divergence,
            "policy": policy,
            "root": str(root or self.root),
            "harness": harness,
            "model": model,
            "options": options,
        }
        path = self.base / f"order-{len(list(self.base.glob('order-*')))}.json"
        path.write_text(json.dumps(order), encoding="utf-8")
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.user_home),
            "PYTHONPATH": str(REPOSITORY),
            **(supervisor_environment or {}),
        }
        return subprocess.Popen(
            [sys.executable, str(DRIVE), str(path)],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    @property
    def run(self) -> Run:
        """The only run in the store."""
        (run,) = RunStore(self.home).runs()
        return run

    def run_of(self, ended: Ended) -> Run:
        return Run(self.home / "runs" / RunId(ended.result["run_id"]))

    @property
    def timeline(self) -> Timeline:
        return self.run.timeline()

    @property
    def marks(self) -> list[str]:
        """What the commands left outside the workspace, in order: one word for each that ran."""
        return self.side.read_text(encoding="utf-8").split()

    def write(self, name: str, text: str) -> Path:
        """A file of the workspace."""
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    def read(self, name: str) -> str:
        return (self.root / name).read_text(encoding="utf-8")


def finish(process: subprocess.Popen[bytes]) -> Ended:
    """Wait for a supervisor and read what it said."""
    try:
        stdout, stderr = process.communicate(timeout=TIMEOUT_S)
    except subprocess.TimeoutExpired:
        process.kill()
        stdout, stderr = process.communicate()
        raise AssertionError(f"the supervisor hangs: {stdout!r} {stderr!r}") from None
    said = [json.loads(line) for line in stdout.splitlines() if line.startswith(b"{") and line.endswith(b"}")]
    return Ended(code=process.returncode, said=said, stderr=stderr.decode("utf-8", "replace"))
