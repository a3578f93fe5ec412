"""Answers the submissions of an agent in a Harbor environment: the checklist stays with this process."""

from __future__ import annotations

import asyncio
import tarfile
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from agentrewind.submission import CANNOT_JUDGE
from mettlebench.errors import MettleBenchError
from mettlebench.load import BUILT_IN, load_tasks
from mettlebench.sandbox import SandboxMode
from mettlebench.task import Task
from mettlebench.tree import remove_tree
from runner import check
from runner.harbor.environment import PLACE, ROOT, Environment, must

LOOK_SECONDS = 1.0
"""How often it is asked whether the agent has submitted."""

_ARCHIVE = "/tmp/agentrewind-submission.tar"


@dataclass(frozen=True, slots=True, kw_only=True)
class Judge:
    """Grades what is submitted. `folder` keeps the verdicts, out of the environment's sight."""

    task: Task
    folder: Path
    mode: SandboxMode = SandboxMode.BUBBLEWRAP


def task_of(instruction: str, tasks: Path = BUILT_IN) -> Task | None:
    """The task of a folder that gives this instruction, if there is one: Harbor tells an agent no more."""
    return next((task for task in load_tasks(tasks) if task.instruction.strip() == instruction.strip()), None)


async def serve(environment: Environment, judge: Judge, workspace: str) -> None:
    """Answer one submission after the other, until this is cancelled."""
    answered = 0
    while True:
        count = await environment.exec(f"cat {PLACE}/asked/count 2>/dev/null || :", user=ROOT)
        asked = (count.stdout or "").strip()
        if asked.isdecimal() and int(asked) > answered:
            answered = int(asked)
            code, said = await _verdict(environment, judge, workspace)
            await _tell(environment, answered, code, said)
        await asyncio.sleep(LOOK_SECONDS)


async def _verdict(environment: Environment, judge: Judge, workspace: str) -> tuple[int, str]:
    place = Path(tempfile.mkdtemp(prefix="harbor-submission-"))
    try:
        archive, tree = place / "workspace.tar", place / "workspace"
        pack = ("tar", "--hard-dereference", "-cf", _ARCHIVE, "-C", workspace, ".")
        await must(environment, "packing the workspace", *pack, user=ROOT)
        await environment.download_file(_ARCHIVE, archive)
        await must(environment, "removing the archive", "rm", "-f", _ARCHIVE, user=ROOT)
        await asyncio.to_thread(unpack, archive, tree)
        return await asyncio.to_thread(check.judge, judge.task, tree, folder=judge.folder, mode=judge.mode)
    except (OSError, tarfile.TarError, MettleBenchError) as error:
        return CANNOT_JUDGE, f"{type(error).__name__}: {error}"
    finally:
        remove_tree(place)


async def _tell(environment: Environment, number: int, code: int, said: str) -> None:
    with tempfile.TemporaryDirectory() as place:
        # the code last: it is what the submission waits for
        for name, text in ((f"{number}.said", f"{said}\n"), (f"{number}.code", f"{code}\n")):
            (Path(place) / name).write_text(text, encoding="utf-8")
            (Path(place) / name).chmod(0o644)
            await environment.upload_file(Path(place) / name, f"{PLACE}/answers/{name}")


def unpack(archive: Path, target: Path) -> None:
    """Unpack a workspace that somebody else packed: nothing is written outside `target`, no link followed.

    Links stay as they are. Devices, pipes and hard links are left out, and set-id bits go. Raises
    tarfile.TarError for a name that leads out.
    """
    target.mkdir()
    with tarfile.open(archive) as packed:
        packed.extractall(target, members=_plain(packed), filter=_within)


def _plain(packed: Iterable[tarfile.TarInfo]) -> Iterable[tarfile.TarInfo]:
    return (each for each in packed if each.isfile() or each.isdir() or each.issym())


def _within(entry: tarfile.TarInfo, target: str) -> tarfile.TarInfo:
    checked = tarfile.tar_filter(entry, target)
    return checked.replace(mode=entry.mode & 0o777, uid=-1, gid=-1, uname="", gname="", deep=False)
