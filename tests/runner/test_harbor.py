"""An agent in a Harbor environment and its submit loop; the container is made of folders."""

from __future__ import annotations

import asyncio
import importlib.util
import io
import shutil
import sys
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from agentrewind.records import JsonObject
from harness_adapters.demo.command import local_provider
from harness_adapters.scripted import Policy, ScriptedModel
from mettlebench.build import build_workspace
from mettlebench.evaluate import evaluate
from mettlebench.load import load_task, read_task
from mettlebench.task import Task
from runner.cell import Strategy
from runner.check import read_verdicts
from runner.harbor import submissions
from runner.harbor.drive import STORE, Drive, _settings, drive, provider_variables, usage_in
from runner.harbor.environment import PLACE, EnvironmentFailedError
from runner.harbor.install import install, requirements
from runner.harbor.submissions import Judge, task_of, unpack
from runner.simulation.serving import AGENT, simulated_models
from tests.runner.small import NAME
from tests.runner.stage import REPOSITORY, TASK, Stage, cell_of, commands

LOGS = "/logs/agent"


@dataclass(frozen=True, slots=True)
class Said:
    stdout: str | None
    stderr: str | None
    return_code: int


@dataclass(slots=True)
class Folders:
    """A container whose places are folders below `root`; commands run in a file system of their own."""

    root: Path
    processes: list[asyncio.subprocess.Process] = field(default_factory=list)

    def __post_init__(self) -> None:
        for inner in (PLACE, LOGS, "/tmp"):
            self.outside(inner).mkdir(parents=True)

    def outside(self, inner: str) -> Path:
        return self.root / inner.lstrip("/")

    async def exec(
        self,
        command: str,
        cwd: str | None = None,
        env: dict[str, str] | None = None,
        timeout_sec: int | None = None,
        user: str | int | None = None,
    ) -> Said:
        box = ["bwrap", "--die-with-parent", "--ro-bind", "/usr", "/usr"]
        for name in ("bin", "sbin", "lib", "lib64"):
            box += ["--symlink", f"usr/{name}", f"/{name}"]
        for place in (str(REPOSITORY), sys.prefix, sys.base_prefix, "/etc/passwd", "/etc/alternatives"):
            box += ["--ro-bind", place, place]
        for inner in ("/workspace", "/opt", "/logs", "/tmp"):
            box += ["--bind", str(self.outside(inner)), inner]
        box += ["--proc", "/proc", "--dev", "/dev", "--clearenv", "--chdir", cwd or "/workspace"]
        variables = {"PATH": "/usr/bin:/bin", "HOME": "/tmp", "PYTHONPATH": str(REPOSITORY), **(env or {})}
        for name, value in variables.items():
            box += ["--setenv", name, value]
        process = await asyncio.create_subprocess_exec(
            *(*box, "bash", "-c", command),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        self.processes.append(process)
        # as in a container, a command goes on when nobody waits for it any more
        out, err = await process.communicate()
        return Said(out.decode(), err.decode(), process.returncode or 0)

    async def upload_file(self, source_path: Path | str, target_path: str) -> None:
        shutil.copy(source_path, self.outside(target_path))

    async def upload_dir(self, source_dir: Path | str, target_dir: str) -> None:
        shutil.copytree(source_dir, self.outside(target_dir), dirs_exist_ok=True)

    async def download_file(self, source_path: str, target_path: Path | str) -> None:
        shutil.copy(self.outside(source_path), target_path)


@pytest.fixture
def task(stage: Stage) -> Task:
    return load_task(TASK, stage.tasks)


@pytest.fixture
def container(task: Task, tmp_path: Path) -> Folders:
    made = Folders(tmp_path / "container")
    build_workspace(task, made.outside("/workspace"))
    return made


@pytest.fixture
def judge(task: Task, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Judge:
    monkeypatch.setattr(submissions, "LOOK_SECONDS", 0.3)
    (tmp_path / "trial").mkdir()
    return Judge(task=task, folder=tmp_path / "trial")


def driven(
    container: Folders,
    variables: Mapping[str, str],
    judge: Judge | None,
    *,
    instruction: str = "Close the quarter.",
    strategy: Strategy = Strategy.REWIND,
) -> JsonObject:
    wanted = Drive(
        harness=NAME, model=AGENT, strategy=strategy, logs=LOGS, workspace=None, variables=variables
    )

    async def all_of_it() -> JsonObject:
        python = await install(container, harness=NAME, python=sys.executable)
        return await drive(container, instruction, wanted, judge, python=python)

    return asyncio.run(all_of_it())


def scripted(container: Folders, policy: Policy, judge: Judge | None) -> JsonObject:
    with ScriptedModel(policy) as server:
        return driven(container, local_provider(server.base_url), judge)


def test_an_agent_submits_is_told_the_first_failure_and_goes_back(
    stage: Stage, task: Task, container: Folders, judge: Judge
) -> None:
    order = stage.order(cell_of(Strategy.REWIND, model="simulated:early=1,learn=1"))
    with simulated_models(order, task, {}) as variables:
        report = driven(container, variables, judge, instruction=task.instruction)
    assert (report["state"], report["rewinds"], report["submissions"]) == ("accepted", 1, 2)
    assert [each.first_failure for each in read_verdicts(judge.folder)] == [task.violation.fails, None]
    assert evaluate(task, container.outside("/workspace")).accepted
    usage, figures = usage_in(container.outside(LOGS) / STORE)
    assert figures["run_id"] == report["run_id"]
    assert usage.tokens_in
    # what the agent could see holds no word of the criteria that it was not told about
    seen = b"".join(path.read_bytes() for path in container.root.rglob("*") if path.is_file())
    told = task.criterion(task.violation.fails).feedback.encode()
    hidden = [each.feedback.encode() for each in task.criteria if each.id != task.violation.fails]
    assert told in seen
    assert not any(each in seen for each in hidden)


def test_without_a_judge_a_submission_is_the_end(container: Folders) -> None:
    report = scripted(container, commands("echo begun > begun"), None)
    assert (report["state"], report["rewinds"], report["submissions"]) == ("accepted", 0, 1)
    assert (container.outside("/workspace") / "begun").is_file()


def test_a_judge_that_cannot_judge_and_a_provider_that_is_gone_are_no_results(
    container: Folders, judge: Judge, tmp_path: Path
) -> None:
    broken = shutil.copytree(judge.task.folder, tmp_path / "tasks" / TASK)
    (broken / "evaluate.py").write_text("CHECKS = {'C01': 1 / 0}\n")
    with pytest.raises(EnvironmentFailedError, match="ZeroDivisionError"):
        scripted(container, commands(), replace(judge, task=read_task(broken)))
    with pytest.raises(EnvironmentFailedError, match="the agent's run failed"):
        driven(container, local_provider("http://127.0.0.1:9"), None)


def test_a_run_that_is_cancelled_ends_in_the_container_and_keeps_its_log(container: Folders) -> None:
    ready = container.outside("/workspace") / "ready"

    async def all_of_it(variables: Mapping[str, str]) -> None:
        python = await install(container, harness=NAME, python=sys.executable)
        wanted = Drive(
            harness=NAME,
            model=AGENT,
            strategy=Strategy.REWIND,
            logs=LOGS,
            workspace=None,
            variables=variables,
        )
        driving = asyncio.create_task(drive(container, "Wait.", wanted, None, python=python))
        while not ready.exists():
            await asyncio.sleep(0.05)
        driving.cancel()
        with pytest.raises(asyncio.CancelledError):
            await driving
        for process in container.processes:
            await asyncio.wait_for(process.wait(), 10)

    with ScriptedModel(commands(": > ready; sleep 600")) as server:
        asyncio.run(all_of_it(local_provider(server.base_url)))
    assert usage_in(container.outside(LOGS) / STORE)[1]["nodes"] == 1


def test_a_workspace_is_named_where_the_task_works_in_the_root(container: Folders) -> None:
    wanted = Drive(
        harness=NAME, model=AGENT, strategy=Strategy.REWIND, logs=LOGS, workspace="/", variables={}
    )
    with pytest.raises(EnvironmentFailedError, match="name its folder with workspace="):
        asyncio.run(drive(container, "x", wanted, None, python=sys.executable))


def test_what_a_command_of_the_setup_says_is_told(container: Folders) -> None:
    with pytest.raises(EnvironmentFailedError, match=r"importing agentrewind with /no/python"):
        asyncio.run(install(container, harness=NAME, python="/no/python"))
    with pytest.raises(EnvironmentFailedError, match="python="):
        asyncio.run(install(container, harness=NAME, python=None))


def test_a_harness_brings_its_own_extra_and_no_other() -> None:
    wanted = " ".join(requirements("smolagents"))
    assert "smolagents" in wanted
    assert "dulwich" in wanted
    assert "langchain" not in wanted
    assert "pytest" not in wanted


def test_no_harness_is_given_a_shell_that_has_no_time() -> None:
    wanted = Drive(
        harness="mini-swe-agent",
        model="m",
        strategy=Strategy.CONTINUE,
        logs=LOGS,
        workspace=None,
        variables={},
        settings=("agent.step_limit=7",),
    )
    found = dict(text.split("=", 1) for text in _settings(wanted))
    assert int(found["environment.timeout"]) > 3600
    assert found["agent.step_limit"] == "7"


def test_a_task_is_known_by_its_instruction(task: Task) -> None:
    assert task_of(f"\n{task.instruction}\n\n", task.folder.parent) == task
    assert task_of("something else", task.folder.parent) is None


def test_only_the_models_provider_is_handed_on() -> None:
    found = provider_variables("my-host/m", {"MY_HOST_BASE_URL": "b", "OPENAI_API_KEY": "k", "API_KEY": "x"})
    assert found == {"MY_HOST_BASE_URL": "b"}


def test_an_archive_from_the_container_stays_in_its_place(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "a.tar", "w") as archive:
        for name, kind, link in (
            ("./kept", tarfile.REGTYPE, ""),
            ("./away", tarfile.SYMTYPE, "/etc"),
            ("./pipe", tarfile.FIFOTYPE, ""),
            ("./hard", tarfile.LNKTYPE, "/etc/passwd"),
        ):
            entry = tarfile.TarInfo(name)
            entry.type, entry.linkname, entry.mode = kind, link, 0o6666
            archive.addfile(entry, io.BytesIO())
    unpack(tmp_path / "a.tar", tmp_path / "to")
    assert sorted(path.name for path in (tmp_path / "to").iterdir()) == ["away", "kept"]
    assert (tmp_path / "to/kept").stat().st_mode & 0o7777 == 0o666
    assert (tmp_path / "to/away").is_symlink()
    with tarfile.open(tmp_path / "b.tar", "w") as archive:
        entry = tarfile.TarInfo("away")
        entry.type, entry.linkname = tarfile.SYMTYPE, str(tmp_path)
        archive.addfile(entry)
        archive.addfile(tarfile.TarInfo("away/planted"), io.BytesIO())
    with pytest.raises(tarfile.OutsideDestinationError):
        unpack(tmp_path / "b.tar", tmp_path / "there")
    assert not (tmp_path / "planted").exists()


@pytest.mark.skipif(importlib.util.find_spec("harbor") is not None, reason="Harbor is installed here")
def test_without_harbor_the_agent_says_what_is_missing() -> None:
    with pytest.raises(ImportError, match=r"pip install harbor"):
        importlib.import_module("runner.harbor.agent")
