"""Packages of npm come back: those of the machine with their commands, and those of a project elsewhere."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from agentrewind.backup.kinds.table import kind_of
from agentrewind.backup.store import BackupStore
from agentrewind.backup.values import Context
from tests.backup.trial import command, perform, preserve

pytestmark = pytest.mark.skipif(shutil.which("npm") is None, reason="needs npm")


def package(directory: Path, name: str, version: str) -> Path:
    """A package with a module and a command."""
    root = directory / f"{name}-{version}"
    root.mkdir()
    (root / "package.json").write_text(
        json.dumps({"name": name, "version": version, "bin": {f"{name}-tool": "tool.js"}})
    )
    (root / "tool.js").write_text(f"#!/usr/bin/env node\nconsole.log({version!r})\n")
    done = subprocess.run(
        ["npm", "pack", str(root), "--silent"], cwd=directory, check=True, capture_output=True, text=True
    )
    return directory / done.stdout.strip()


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    directory = tmp_path_factory.mktemp("packages")
    wanted = [("one", "1.0.0"), ("one", "2.0.0"), ("two", "1.0.0")]
    return {f"{name}@{version}": package(directory, name, version) for name, version in wanted}


@pytest.fixture
def context(tmp_path: Path, packages: dict[str, Path], clean_env: dict[str, str]) -> Context:
    env = {**clean_env, "npm_config_prefix": str(tmp_path / "prefix"), "HOME": str(tmp_path),
           "npm_config_offline": "true", "npm_config_audit": "false", "npm_config_fund": "false"}  # fmt: skip
    context = Context(cwd=tmp_path, env=env, home=tmp_path)
    (tmp_path / "prefix" / "lib").mkdir(parents=True)
    perform(command(f"npm install -g {packages['one@1.0.0']}", tmp_path), context)
    return context


LOSSES = {
    "an upgrade": "npm install -g {two_}",
    "an addition": "npm i -g {other}",
    "a removal": "npm uninstall --global one",
}


@pytest.mark.parametrize("loss", LOSSES)
def test_global_packages_come_back(
    loss: str, packages: dict[str, Path], store: BackupStore, context: Context
) -> None:
    prefix = context.cwd / "prefix"
    before = files_of(prefix)
    text = LOSSES[loss].format(two_=packages["one@2.0.0"], other=packages["two@1.0.0"])
    call = command(text, context.cwd)
    kept = preserve("npm", call, store, context)
    [fingerprint] = kept.fingerprints()

    perform(call, context)

    assert files_of(prefix) != before
    assert kept.plan()
    [outcome] = kept.restore()
    assert outcome.missing == ()
    assert files_of(prefix) == before
    assert kept.fingerprints() == [fingerprint]


def test_a_projects_packages_elsewhere_come_back(
    packages: dict[str, Path], store: BackupStore, context: Context, tmp_path: Path
) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (project / "package.json").write_text('{"name": "mine", "version": "0.0.1"}\n')
    before = files_of(project)
    call = command(f"npm install {packages['two@1.0.0']}", project)
    kept = preserve("npm", call, store, context)
    perform(call, context)
    assert files_of(project) != before

    kept.restore()

    assert files_of(project) == before


def test_a_project_in_the_workspace_is_the_snapshots_business(context: Context, tmp_path: Path) -> None:
    inside = Context(cwd=tmp_path, env=context.env, home=tmp_path, workspace=tmp_path)
    assert kind_of("npm").targets(command("npm install x", tmp_path), {}, inside) == ()


def files_of(root: Path) -> dict[str, str]:
    return {
        str(each.relative_to(root)): str(each.readlink()) if each.is_symlink() else each.read_text()
        for each in sorted(root.rglob("*"))
        if each.is_symlink() or each.is_file()
    }
