"""A copy equals what was copied, and nothing is followed."""

from __future__ import annotations

import os
import stat
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mettlebench.errors import WorkspaceCopyError
from mettlebench.tree import copy_tree, remove_tree, tree_digest, tree_lines

NAMES = st.sampled_from(["a", "b", "sub", "…", "new\nline", ".hidden"])
CONTENT = st.tuples(st.sampled_from(["file", "link", "dir"]), st.binary(max_size=20), st.integers(0, 0o777))


@settings(max_examples=60, deadline=None)
@given(st.dictionaries(st.lists(NAMES, min_size=1, max_size=3).map(tuple), CONTENT, max_size=8))
def test_a_copy_has_the_digest_of_its_source(entries: dict[tuple[str, ...], tuple[str, bytes, int]]) -> None:
    with tempfile.TemporaryDirectory() as place:
        source = Path(place) / "source"
        source.mkdir()
        for parts, (kind, data, mode) in entries.items():
            path = source.joinpath(*parts)
            way = [source.joinpath(*parts[:depth]) for depth in range(1, len(parts))]
            if os.path.lexists(path) or any(
                (os.path.lexists(p) and not p.is_dir()) or p.is_symlink() for p in way
            ):
                continue
            path.parent.mkdir(parents=True, exist_ok=True)
            if kind == "file":
                path.write_bytes(data)
                path.chmod(mode | 0o400)
            elif kind == "link":
                path.symlink_to(f"/nowhere/{data.hex()}")
            else:
                path.mkdir()
        copy_tree(source, Path(place) / "copy")
        assert tree_lines(Path(place) / "copy") == tree_lines(source)
        remove_tree(Path(place) / "copy")
        assert not (Path(place) / "copy").exists()


def test_every_difference_changes_the_digest(tmp_path: Path) -> None:
    (tmp_path / "w").mkdir()
    file = tmp_path / "w" / "file"
    file.write_text("one")
    os.utime(file, (1, 1))
    seen = {tree_digest(tmp_path / "w")}
    for change in (lambda: file.chmod(0o600), lambda: os.utime(file, (2, 2)), lambda: file.write_text("two")):
        change()
        seen.add(tree_digest(tmp_path / "w"))
    assert len(seen) == 4


def test_links_are_copied_as_links_and_pipes_left_out(tmp_path: Path) -> None:
    (tmp_path / "w").mkdir()
    (tmp_path / "secret").write_text("do not copy")
    (tmp_path / "w" / "link").symlink_to("../secret")
    (tmp_path / "w" / "folder").symlink_to("..")
    os.mkfifo(tmp_path / "w" / "pipe")
    copy_tree(tmp_path / "w", tmp_path / "copy")
    assert stat.S_ISLNK((tmp_path / "copy" / "link").lstat().st_mode)
    assert sorted(path.name for path in (tmp_path / "copy").iterdir()) == ["folder", "link"]


def test_a_link_in_place_of_the_workspace_is_refused(tmp_path: Path) -> None:
    (tmp_path / "w").symlink_to("/etc")
    with pytest.raises(WorkspaceCopyError, match="cannot be opened"):
        copy_tree(tmp_path / "w", tmp_path / "copy")
