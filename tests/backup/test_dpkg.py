"""Debian packages come back with the configuration that was edited, without an archive on the network."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from agentrewind.backup.kind import UnclearError
from agentrewind.backup.kinds.table import kind_of
from agentrewind.backup.store import BackupStore
from agentrewind.backup.values import Context
from tests.backup.trial import command, perform, preserve

pytestmark = pytest.mark.skipif(
    os.geteuid() != 0 or shutil.which("dpkg-deb") is None, reason="needs root on a Debian system"
)

NAME = "agentrewind-trial"


def deb(directory: Path, version: str) -> Path:
    """A package with a file, a link, a configuration file and a script."""
    root = directory / f"root-{version}"
    for place in ("DEBIAN", f"etc/{NAME}", f"usr/share/{NAME}"):
        (root / place).mkdir(parents=True)
    (root / "DEBIAN/control").write_text(
        f"Package: {NAME}\nVersion: {version}\nArchitecture: all\nMaintainer: Nobody <nobody@example.org>\n"
        "Description: a trial\n with a second line\n"
    )
    (root / "DEBIAN/conffiles").write_text(f"/etc/{NAME}/settings\n")
    (root / "DEBIAN/postinst").write_text("#!/bin/sh\nexit 0\n")
    (root / "DEBIAN/postinst").chmod(0o755)
    (root / f"etc/{NAME}/settings").write_text(f"default of {version}\n")
    (root / f"usr/share/{NAME}/data").write_text(f"data of {version}\n")
    (root / f"usr/share/{NAME}/link").symlink_to("data")
    made = directory / f"{version}.deb"
    subprocess.run(["dpkg-deb", "--root-owner-group", "-b", str(root), str(made)], check=True,
                   capture_output=True)  # fmt: skip
    return made


@pytest.fixture(autouse=True)
def _gone_afterwards() -> Iterator[None]:
    yield
    subprocess.run(["dpkg", "--purge", NAME], check=False, capture_output=True)


@pytest.fixture
def context(tmp_path: Path, clean_env: dict[str, str]) -> Context:
    deb(tmp_path, "1.0")
    deb(tmp_path, "2.0")
    return Context(cwd=tmp_path, env={**clean_env, "DEBIAN_FRONTEND": "noninteractive"}, home=tmp_path)


LOSSES = {
    "an upgrade": "dpkg --force-confnew -i 2.0.deb",
    "a removal": "dpkg -r {name}",
    "a purge": "dpkg --purge {name}",
    "a removal by apt": "apt-get remove -y {name}",
    "a purge by apt": "apt-get purge -y {name}",
}


@pytest.mark.parametrize("loss", LOSSES)
def test_a_package_comes_back(loss: str, store: BackupStore, context: Context) -> None:
    _install(context.cwd / "1.0.deb")
    settings = Path(f"/etc/{NAME}/settings")
    settings.write_text("my own\n")
    settings.chmod(0o640)
    before = state_of_trial()
    call = command(LOSSES[loss].format(name=NAME), context.cwd)
    kept = preserve("dpkg", call, store, context)
    [fingerprint] = kept.fingerprints()

    perform(call, context)

    assert state_of_trial() != before
    assert kept.fingerprints() != [fingerprint]
    [outcome] = kept.restore()
    assert outcome.missing == ()
    assert state_of_trial() == before
    assert kept.fingerprints() == [fingerprint]


def test_an_added_package_goes_again(store: BackupStore, context: Context) -> None:
    call = command("dpkg -i 1.0.deb", context.cwd)
    kept = preserve("dpkg", call, store, context)
    perform(call, context)
    assert kept.plan() == [f"purge {NAME}"]

    [outcome] = kept.restore()

    assert outcome.missing == ()
    assert state_of_trial() == {}


@pytest.mark.parametrize(
    "call", ["apt-get -s remove dpkg", "dpkg -l", "dpkg --dry-run -i 1.0.deb", "apt list"]
)
def test_reading_needs_no_backup(call: str, context: Context) -> None:
    assert kind_of("dpkg").targets(command(call, context.cwd), {}, context) == ()


@pytest.mark.parametrize(
    "call", ["apt-get install no-such-package-here", "dpkg -i nowhere.deb", "dpkg -i -R ."]
)
def test_what_cannot_be_told_is_said(call: str, context: Context) -> None:
    with pytest.raises(UnclearError):
        kind_of("dpkg").targets(command(call, context.cwd), {}, context)


def _install(file: Path) -> None:
    subprocess.run(["dpkg", "-i", str(file)], check=True, capture_output=True)


def state_of_trial() -> dict[str, object]:
    done = subprocess.run(
        ["dpkg-query", "-W", "-f=${db:Status-Status} ${Version}", NAME],
        capture_output=True,
        text=True,
        check=False,
    )
    found: dict[str, object] = {"package": done.stdout} if done.returncode == 0 else {}
    if str(found.get("package", "")).startswith("not-installed"):
        found = {}
    for root in (Path(f"/etc/{NAME}"), Path(f"/usr/share/{NAME}")):
        for path in sorted(root.rglob("*")) if root.exists() else []:
            content = str(path.readlink()) if path.is_symlink() else path.read_text()
            found[str(path)] = (content, oct(path.lstat().st_mode))
    return found
