"""Path rules, roots and locks."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from agentrewind.errors import DamagedError, UsageError, WorkspaceBusyError, WorkspaceRefusedError
from agentrewind.workspace.attributes import Attributes
from agentrewind.workspace.lock import WorkspaceLock, lock_directory, owner_of
from agentrewind.workspace.policy import TEMPORARY_PREFIX, PathClass, Policy
from agentrewind.workspace.policy_text import decode_policy, encode_policy
from agentrewind.workspace.roots import check_root, workspace_directory, workspace_identity
from agentrewind.workspace.sidecar import (
    FileFacts,
    FileKind,
    Omission,
    Sidecar,
    decode_sidecar,
    encode_sidecar,
)

names = st.binary(min_size=1, max_size=20).filter(lambda name: not {0, 47} & set(name))
times = st.integers(-(10**18), 10**19)
attributes = st.dictionaries(
    st.binary(min_size=1, max_size=20).filter(lambda name: 0 not in name), st.binary(max_size=30)
).map(lambda found: tuple(sorted(found.items())))


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (b".env", PathClass.EXCLUDED),
        (b"a/.env.production", PathClass.EXCLUDED),
        (b".envrc/x", PathClass.EXCLUDED),
        (b"keys/id_rsa", PathClass.EXCLUDED),
        (b"id_rsa.pub", PathClass.TRACKED),
        (b"server.pem", PathClass.EXCLUDED),
        (b"a/__pycache__/b.pyc", PathClass.VOLATILE),
        (b".mypy_cache", PathClass.VOLATILE),
        (b"node_modules/x/index.js", PathClass.TRACKED),
        (b".venv/bin/python", PathClass.TRACKED),
        (b"dist/app.js", PathClass.TRACKED),
        (b".git/config", PathClass.TRACKED),
        (b".git/refs/heads/a.key", PathClass.TRACKED),
        (b"__pycache__/a.key", PathClass.EXCLUDED),
        (b"\xff\xfe", PathClass.TRACKED),
    ],
)
def test_default_classes(path: bytes, expected: PathClass) -> None:
    assert Policy.default().classify(path, is_dir=False) is expected


def test_patterns_with_a_slash_match_from_the_root() -> None:
    policy = Policy(excluded=("data/*.db",))
    assert policy.classify(b"data/x.db", is_dir=False) is PathClass.EXCLUDED
    assert policy.classify(b"other/data/x.db", is_dir=False) is PathClass.TRACKED
    assert Policy(track_everything=True).classify(b".env", is_dir=False) is PathClass.TRACKED


components = st.sampled_from(
    ["a", ".git", ".env", "x.key", "__pycache__", f"{TEMPORARY_PREFIX}1", "data", "b.db", "\udcff"]
)


@given(
    st.lists(components, max_size=3),
    components,
    st.booleans(),
    st.builds(
        Policy,
        excluded=st.sampled_from([(), (".env*", "*.key"), ("data/*.db", "a")]),
        volatile=st.sampled_from([(), ("__pycache__",), ("data/__pycache__", "*.db")]),
        track_everything=st.booleans(),
        inner_repositories=st.booleans(),
    ),
)
def test_many_names_of_a_tracked_directory_are_judged_as_one(
    above: list[str], name: str, is_dir: bool, policy: Policy
) -> None:
    directory = os.fsencode("/".join(above))
    for end in range(1, len(above) + 1):
        assume(policy.classify(os.fsencode("/".join(above[:end])), is_dir=True) is PathClass.TRACKED)
    path = os.fsencode("/".join([*above, name]))
    assert policy.judge_in(directory)(name, is_dir) is policy.classify(path, is_dir)


def test_rules_survive_writing_and_bad_ones_are_named() -> None:
    policy = Policy(excluded=("a*", "ü"), track_everything=True, max_file_bytes=7, inner_repositories=False)
    assert Policy.from_json(policy.to_json()) == policy
    assert decode_policy(encode_policy(policy)) == policy
    for bad in (
        {"excluded": "x"},
        {"excluded": [""]},
        {"track_everything": 1},
        {"max_file_bytes": -1},
        {"x": 1},
    ):
        with pytest.raises(UsageError, match="path rules"):
            Policy.from_json(bad)  # type: ignore[arg-type]
    with pytest.raises(DamagedError):
        decode_policy(b"[]")


@given(
    st.dictionaries(
        names,
        st.builds(
            lambda kind, mode, mtime, size, attributes: FileFacts(
                kind=kind,
                mode=mode,
                mtime_ns=mtime,
                size=size if kind is FileKind.PIECES else 0,
                attributes=attributes,
            ),
            st.sampled_from(FileKind),
            st.integers(0, 0o7777),
            times,
            st.integers(0, 1 << 50),
            attributes,
        ),
    ),
    st.dictionaries(names, names),
    st.dictionaries(names, st.sampled_from(Omission)),
    st.integers(0, 0o7777),
    times,
    attributes,
)
def test_decoding_a_sidecar_inverts_encoding(
    files: dict[bytes, FileFacts],
    links: dict[bytes, bytes],
    omitted: dict[bytes, Omission],
    mode: int,
    mtime: int,
    own: Attributes,
) -> None:
    for name, leader in links.items():
        files[name] = FileFacts(kind=FileKind.FILE, mode=0, mtime_ns=0, leader=leader)
    sidecar = Sidecar(mode=mode, mtime_ns=mtime, attributes=own, files=files, omitted=omitted)
    assert decode_sidecar(encode_sidecar(sidecar)) == sidecar


@given(st.binary(max_size=60))
def test_any_other_bytes_are_no_sidecar(data: bytes) -> None:
    for candidate in (data, b"agentrewind-sidecar 1\n" + data):
        try:
            decode_sidecar(candidate)
        except ValueError:
            continue


def test_roots_that_are_refused(tmp_path: Path) -> None:
    home, user = tmp_path / "state", tmp_path / "user"
    (user / "project").mkdir(parents=True)
    (user / "file").write_text("x")
    assert check_root(user / "project", home=home, user_home=user) == (user / "project").resolve()
    (tmp_path / "link").symlink_to(user / "project")
    assert check_root(tmp_path / "link", home=home, user_home=user) == (user / "project").resolve()
    for bad in (user / "absent", user / "file"):
        with pytest.raises(UsageError) as caught:
            check_root(bad, home=home, user_home=user)
        assert caught.value.exit_code == 2
    for refused in (Path("/"), Path("/proc/self"), Path("/sys"), user, tmp_path):
        with pytest.raises(WorkspaceRefusedError) as denied:
            check_root(refused, home=home, user_home=user)
        assert denied.value.exit_code == 5
    for inside in (user / "project", user / "project" / "a" / "b"):
        with pytest.raises(WorkspaceRefusedError, match="snapshots are kept"):
            check_root(user / "project", home=inside, user_home=None)


def test_identities_differ_with_the_root() -> None:
    assert workspace_identity(Path("/a/x")) != workspace_identity(Path("/b/x"))
    assert workspace_directory(Path("/h"), Path("/a/x")).parent == Path("/h/workspaces")


def test_a_lock_names_its_owner_also_to_nested_roots(tmp_path: Path) -> None:
    home, root = tmp_path / "home", tmp_path / "w"
    with WorkspaceLock.acquire(home, root, owner={"pid": os.getpid(), "run": "r1"}) as lock:
        assert lock.taken_over is None
        assert owner_of(lock_directory(home, root)) == {"pid": os.getpid(), "run": "r1"}
        for other in (root, root / "inner", tmp_path):
            with pytest.raises(WorkspaceBusyError, match="r1"):
                WorkspaceLock.acquire(home, other, owner={"pid": 1, "run": "r2"})
        WorkspaceLock.acquire(home, tmp_path / "w2", owner={"run": "r3"}).release()
    assert owner_of(lock_directory(home, root)) is None
    with WorkspaceLock.acquire(home, root, owner={"run": "r4"}) as lock:
        assert lock.taken_over is None


def test_the_lock_of_a_dead_owner_is_taken_over(tmp_path: Path) -> None:
    child = os.fork()
    if child == 0:
        WorkspaceLock.acquire(tmp_path, tmp_path / "w", owner={"pid": os.getpid(), "run": "dead"})
        os._exit(0)
    os.waitpid(child, 0)
    assert owner_of(lock_directory(tmp_path, tmp_path / "w")) is None
    with WorkspaceLock.acquire(tmp_path, tmp_path / "w", owner={"run": "new"}) as lock:
        assert lock.taken_over == f"run dead, pid {child}"
