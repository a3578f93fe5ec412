"""Python environments come back: replaced, removed and added distributions, without a network."""

from __future__ import annotations

import shlex
import shutil
import subprocess
import sys
import zipfile
from base64 import urlsafe_b64encode
from hashlib import sha256
from pathlib import Path

import pytest

from agentrewind.backup.kind import UnclearError
from agentrewind.backup.kinds.table import kind_of
from agentrewind.backup.store import BackupStore
from agentrewind.backup.values import Context
from tests.backup.trial import command, perform, preserve


def wheel(directory: Path, name: str, version: str, *, needs: str = "") -> Path:
    """A wheel with one module, one script and, where it needs one, a requirement."""
    info = f"{name}-{version}.dist-info"
    requires = f"Requires-Dist: {needs}\n" if needs else ""
    members = {
        f"{name}/__init__.py": f"VERSION = {version!r}\n\n\ndef main():\n    print(VERSION)\n",
        f"{name}/data/only-{version}.txt": f"{name} {version}\n",
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{requires}",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/entry_points.txt": f"[console_scripts]\n{name}-tool = {name}:main\n",
    }
    record = [f"{info}/RECORD,,"]
    for path, text in members.items():
        digest = urlsafe_b64encode(sha256(text.encode()).digest()).rstrip(b"=").decode()
        record.append(f"{path},sha256={digest},{len(text.encode())}")
    made = directory / f"{name}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(made, "w") as archive:
        for path, text in members.items():
            archive.writestr(path, text)
        archive.writestr(f"{info}/RECORD", "\n".join(record) + "\n")
    return made


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("wheels")
    wheel(directory, "tool", "1.0")
    wheel(directory, "tool", "2.0", needs="helper")
    wheel(directory, "helper", "0.3")
    wheel(directory, "other", "5.0")
    return directory


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory, wheels: Path) -> tuple[Path, Path]:
    """Where the environment lies, since it cannot be moved, and a copy of its first state."""
    place = tmp_path_factory.mktemp("pip") / "an environment"
    subprocess.run([sys.executable, "-m", "venv", str(place)], check=True)
    _pip(place, wheels, "install", "tool==1.0", "other")
    first = place.with_name("first")
    shutil.copytree(place, first, symlinks=True)
    return place, first


@pytest.fixture
def environment(made: tuple[Path, Path]) -> Path:
    place, first = made
    shutil.rmtree(place)
    shutil.copytree(first, place, symlinks=True)
    return place


@pytest.fixture
def context(tmp_path: Path, environment: Path, wheels: Path, clean_env: dict[str, str]) -> Context:
    path = f"{environment}/bin:{clean_env['PATH']}"
    settings = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(wheels), "PIP_CONFIG_FILE": "/dev/null"}
    return Context(cwd=tmp_path, env={**clean_env, "PATH": path, **settings}, home=tmp_path)


LOSSES = {
    "an upgrade that adds another": "pip install -q -U tool",
    "a removal": "pip uninstall -q -y tool",
    "two removals": "python -m pip uninstall -q -y tool other",
    "an addition": "pip3 install -q helper",
    "a reinstallation": "pip install -q --force-reinstall --no-deps tool==2.0",
    "pip itself": "python -m pip uninstall -q -y pip",
}


@pytest.mark.parametrize("loss", LOSSES)
def test_an_environment_comes_back(
    loss: str, environment: Path, store: BackupStore, context: Context
) -> None:
    before = _files(environment)
    call = command(LOSSES[loss], context.cwd)
    kept = preserve("pip", call, store, context)
    [fingerprint] = kept.fingerprints()

    perform(call, context)

    assert kept.fingerprints() != [fingerprint]
    assert kept.plan()
    [outcome] = kept.restore()
    assert outcome.missing == ()
    assert _files(environment) == before
    assert kept.fingerprints() == [fingerprint]
    assert kept.plan() == []
    told = subprocess.run([environment / "bin" / "tool-tool"], check=True, capture_output=True, text=True)
    assert told.stdout == "1.0\n"


def test_a_file_edited_by_hand_comes_back_as_it_was(
    environment: Path, store: BackupStore, context: Context
) -> None:
    [module] = environment.rglob("tool/__init__.py")
    edited = module.read_text() + "# a local change\n"
    module.write_text(edited)
    call = command("pip uninstall -q -y tool", context.cwd)
    kept = preserve("pip", call, store, context)
    perform(call, context)

    kept.restore()

    assert module.read_text() == edited


def test_an_environment_inside_the_workspace_is_the_snapshots_business(
    environment: Path, context: Context
) -> None:
    inside = Context(cwd=context.cwd, env=context.env, home=context.home, workspace=environment.parent)
    assert kind_of("pip").targets(command("pip install x", context.cwd), {}, inside) == ()


def test_a_script_that_stands_for_pip_is_asked(environment: Path, context: Context, tmp_path: Path) -> None:
    shim = tmp_path / "shims" / "pip"
    shim.parent.mkdir()
    shim.write_text(f'#!/usr/bin/env bash\nexec {shlex.quote(str(environment))}/bin/pip "$@"\n')
    shim.chmod(0o755)
    [target] = kind_of("pip").targets(command(f"{shim} install x", tmp_path), {}, context)
    assert str(environment) in target.name


def test_a_script_that_stands_for_python_is_asked(
    environment: Path, context: Context, tmp_path: Path
) -> None:
    shim = tmp_path / "shims" / "python"
    shim.parent.mkdir()
    shim.write_text(f'#!/usr/bin/env bash\nexec {shlex.quote(str(environment))}/bin/python "$@"\n')
    shim.chmod(0o755)
    [target] = kind_of("pip").targets(command(f"{shim} -m pip install x", tmp_path), {}, context)
    assert target.name == f"Python packages of {environment}"


@pytest.mark.parametrize(
    "call", ["pip install --target /opt/x y", "pip install --user y", "no-such/pip install y"]
)
def test_other_places_are_unclear(call: str, context: Context) -> None:
    with pytest.raises(UnclearError):
        kind_of("pip").targets(command(call, context.cwd), {}, context)


def _pip(place: Path, wheels: Path, *words: str) -> None:
    subprocess.run(
        [place / "bin" / "pip", *words, "-q", "--no-index", "--find-links", str(wheels)],
        check=True,
        env={"PATH": "/usr/bin:/bin", "PIP_CONFIG_FILE": "/dev/null"},
    )


def _files(place: Path) -> dict[str, bytes | str]:
    """Every file that Python did not compile by itself."""
    return {
        str(each.relative_to(place)): str(each.readlink()) if each.is_symlink() else each.read_bytes()
        for each in sorted(place.rglob("*"))
        if (each.is_file() or each.is_symlink()) and each.suffix != ".pyc"
    }
