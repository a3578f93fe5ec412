"""Tells quickly what a restore need not look at: names under which workspace and snapshot say the same."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

from agentrewind.workspace.inventory import Directory, FileEntry
from agentrewind.workspace.sidecar import FileFacts, FileKind
from agentrewind.workspace.trees import DirectoryIds, StoredDirectory


def unchanged(
    present: Directory, stored: StoredDirectory, is_same: Callable[[Directory, DirectoryIds], bool]
) -> Iterator[tuple[bytes, FileEntry | None]]:
    """The names, with the entry where it is a file or link; of hard links none is told."""
    blobs, facts, directories = stored.blobs, stored.sidecar.files, stored.directories
    for text, child in present.children.items():
        name = os.fsencode(text)
        if type(child) is Directory:
            inner = directories.get(name)
            if inner is not None and is_same(child, inner):
                yield name, None
        elif (
            type(child) is FileEntry
            and child.nlink == 1
            and blobs.get(name) == child.oid
            and _says(facts[name], child)
        ):
            yield name, child


def _says(facts: FileFacts, child: FileEntry) -> bool:
    """Whether a sidecar says of a file what it is, its contents aside."""
    return (
        (facts.kind, facts.mtime_ns, facts.attributes) == (child.kind, child.mtime_ns, child.attributes)
        and (facts.mode == child.mode or child.kind is FileKind.LINK)
        and facts.leader is None
    )
