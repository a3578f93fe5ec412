"""Checks a store: every object that a ref leads to is there and is what its id says, and nothing was lost."""

from __future__ import annotations

from agentrewind.errors import AgentRewindError
from agentrewind.records import CommitId
from agentrewind.workspace.objects import KIND_NAMES, MODE_DIRECTORY, TREE, object_id
from agentrewind.workspace.power import losses
from agentrewind.workspace.snapshots import SnapshotStore
from agentrewind.workspace.views import shown


def verify(store: SnapshotStore) -> list[str]:
    """Every damage in words, each naming the ref or commit and the path; empty for a sound store."""
    damages = losses(store)
    checked: set[bytes] = set()
    for name, tip in sorted(store.refs().items()):
        pending = [tip]
        while pending:
            commit = pending.pop()
            oid = bytes.fromhex(commit)
            if oid in checked:
                continue
            checked.add(oid)
            try:
                _check(store, oid)
                links = store.commit_links(oid)
            except AgentRewindError as error:
                damages.append(f"{name}: {error}")
                continue
            pending += [CommitId(parent.hex()) for parent in links.parents]
            _check_tree(store, links.tree, f"snapshot {commit}", damages, checked)
    return damages


def _check_tree(
    store: SnapshotStore, tree: bytes, where: str, damages: list[str], checked: set[bytes]
) -> None:
    pending = [(tree, MODE_DIRECTORY, b"")]
    while pending:
        oid, mode, path = pending.pop()
        if oid in checked:
            continue
        try:
            kind = _check(store, oid)
        except AgentRewindError as error:
            damages.append(f"{where}, {shown(path)}: {error}")
            continue
        checked.add(oid)
        if mode == MODE_DIRECTORY and kind == TREE:
            pending += [(item.oid, item.mode, path + b"/" + item.name) for item in store.tree(oid)]


def _check(store: SnapshotStore, oid: bytes) -> int:
    kind, data = store.read(oid)
    if kind not in KIND_NAMES or object_id(kind, data) != oid:
        raise AgentRewindError(f"object {oid.hex()} is damaged")
    return kind
