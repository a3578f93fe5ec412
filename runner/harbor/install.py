"""Brings this very code, and what a harness needs, into a Harbor environment."""

from __future__ import annotations

import importlib.metadata
import re
import shutil
import tempfile
from pathlib import Path

import agentrewind
import harness_adapters
from agentrewind.adapters import ADAPTERS
from runner.harbor.environment import PLACE, ROOT, Environment, EnvironmentFailedError, must

INSTALL_SECONDS = 1200
PYTHON = f"{PLACE}/venv/bin/python"

_SCRIPTS = Path(__file__).parent
_EXTRA = re.compile(r"""extra\s*==\s*["']([\w-]+)["']""")


async def install(environment: Environment, *, harness: str, python: str | None) -> str:
    """The interpreter in the environment that has the layer and the harness.

    With `python` it is that one, which the image brings; else one is set up: that takes root, the network and
    Python 3.11 or apt-get. Raises EnvironmentFailedError.
    """
    await must(environment, "making a place", "mkdir", "-p", f"{PLACE}/answers", f"{PLACE}/asked", user=ROOT)
    await must(environment, "making a place", "chmod", "1777", f"{PLACE}/asked", user=ROOT)
    for script in ("submit.sh", "stop.sh"):
        await environment.upload_file(_SCRIPTS / script, f"{PLACE}/{script}")
    if python is None:
        with tempfile.TemporaryDirectory() as place:
            for package in (agentrewind, harness_adapters):
                source = Path(package.__file__ or "").parent
                target = Path(place) / source.name
                shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
            await environment.upload_dir(place, f"{PLACE}/source")
        await environment.upload_file(_SCRIPTS / "install.sh", f"{PLACE}/install.sh")
        command = ("sh", f"{PLACE}/install.sh", PLACE, *requirements(harness))
        await must(environment, "installing", *command, user=ROOT, seconds=INSTALL_SECONDS)
    await must(environment, "making the place readable", "chmod", "-R", "a+rX", PLACE, user=ROOT)
    found = python or PYTHON
    await must(
        environment, f"importing agentrewind with {found}", found, "-P", "-c", "import agentrewind.cli"
    )
    return found


def requirements(harness: str) -> tuple[str, ...]:
    """What pip is asked for: our own dependencies and those of the harness's extra.

    Raises EnvironmentFailedError for a harness that no table names: what it needs only its image can bring.
    """
    if harness not in ADAPTERS:
        raise EnvironmentFailedError(
            f"what {harness} needs is not known: use one of {', '.join(sorted(ADAPTERS))}, or name with "
            "python= an interpreter of the image that has agentrewind and this harness"
        )
    wanted = ADAPTERS[harness].extra
    found = []
    for each in importlib.metadata.requires("agentrewind") or ():
        requirement, _, condition = each.partition(";")
        extra = _EXTRA.search(condition)
        if extra is None or extra.group(1) == wanted:
            found.append(requirement.strip())
    return tuple(found)
