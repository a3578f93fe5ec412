"""The demo's workspace: always the same, small, and built on any machine."""

from __future__ import annotations

import os
import stat
import subprocess
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from agentrewind.errors import UsageError
from harness_adapters.demo import build_workspace, checker
from harness_adapters.demo.orders import orders

Bash = Callable[[Path, str], subprocess.CompletedProcess[str]]


def described(root: Path) -> dict[str, tuple[int, int, bytes]]:
    """Mode, modification time in nanoseconds and content of every path."""
    found = {}
    for path in [root, *sorted(root.rglob("*"))]:
        status = path.lstat()
        content = path.read_bytes() if path.is_file() else b""
        found[str(path.relative_to(root))] = (stat.S_IMODE(status.st_mode), status.st_mtime_ns, content)
    return found


def test_the_same_workspace_each_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    build_workspace(tmp_path / "one")
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "elsewhere"))
    monkeypatch.setenv("GIT_AUTHOR_NAME", "Somebody Else")
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".gitconfig").write_text("[init]\n\tdefaultBranch = other\n[commit]\n\tgpgsign = true\n")
    before = os.umask(0o077)
    try:
        build_workspace(tmp_path / "two")
    finally:
        os.umask(before)
    one, two = described(tmp_path / "one"), described(tmp_path / "two")
    del one["."], two["."]
    assert one == two


def test_a_dozen_files_under_a_clean_history(workspace: Path, bash: Bash) -> None:
    files = [path for path in workspace.rglob("*") if path.is_file() and ".git" not in path.parts]
    assert len(files) == 12
    assert bash(workspace, "git status --porcelain").stdout == ""
    assert bash(workspace, "git fsck --strict").returncode == 0
    assert bash(workspace, "git ls-files data").stdout == ""


def test_an_empty_directory_will_do_and_a_used_one_will_not(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    build_workspace(tmp_path / "empty")
    with pytest.raises(UsageError, match="is in use"):
        build_workspace(tmp_path / "empty")
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match="is in use"):
        build_workspace(tmp_path / "file")


def test_git_has_to_be_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UsageError, match="install it"):
        build_workspace(tmp_path / "workspace")
    assert not (tmp_path / "workspace").exists()


def test_the_checker_knows_the_orders_only_by_digest() -> None:
    module: ModuleType = checker
    source = Path(str(module.__file__)).read_text()
    assert len(orders()) == checker.ORDERS
    assert checker.fingerprint((o.order_id, o.entered) for o in orders()) == checker.ENTRIES_DIGEST
    meanings = ((o.order_id, o.customer, o.placed_on, o.cents, o.currency, o.status) for o in orders())
    assert checker.fingerprint(meanings) == checker.ORDERS_DIGEST
    assert not any(order.entered.strip() in source for order in orders() if len(order.entered) > 5)


def test_entries_are_not_to_be_guessed_from_their_meaning() -> None:
    """Each of the usual notations writes only a small part of the entries as the clerks did."""
    notations: list[Callable[[int, str], str]] = [
        lambda cents, currency: f"{cents // 100}.{cents % 100:02}",
        lambda cents, currency: f"{cents // 100},{cents % 100:02}",
        lambda cents, currency: f"{currency} {cents // 100:,}.{cents % 100:02}",
        lambda cents, currency: f"{cents // 100}",
    ]
    for notation in notations:
        hits = sum(notation(o.cents, o.currency) == o.entered for o in orders())
        assert hits < len(orders()) / 4
