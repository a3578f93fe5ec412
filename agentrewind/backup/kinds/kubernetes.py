"""Kubernetes objects that a kubectl call changes, with what depends on them.

Volumes' data stay where they are: before a deletion that would take them, their reclaim policy is set to
Retain, and a restore binds them again.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from hashlib import sha256

import orjson

from agentrewind.backup.kind import Captured, CaptureError, Outcome, Parameters, Store
from agentrewind.backup.kinds.kubernetes_call import read_call
from agentrewind.backup.kinds.kubernetes_cluster import (
    Body,
    Cluster,
    Key,
    body_from,
    key_from,
    plain,
)
from agentrewind.backup.values import Command, Context, Target
from agentrewind.errors import DamagedError
from agentrewind.records import Json

_SHOWN = 5


class KubernetesObjects:
    """The kind `kubernetes`."""

    def targets(self, command: Command, parameters: Parameters, context: Context) -> tuple[Target, ...]:
        """The objects that the call may change, as one target; kubectl is asked which these are."""
        call = read_call(command, context)
        if call is None or not call.keys:
            return ()
        keys: list[Json] = [key.to_json() for key in call.keys]
        options: list[Json] = [*call.cluster.options]
        volumes: list[Json] = [*call.volumes]
        shown = ", ".join(map(str, call.keys[:_SHOWN]))
        if len(keys) > _SHOWN:
            shown += f" and {len(keys) - _SHOWN} more"
        where = call.cluster.options[-1] if "--context" in call.cluster.options else "the cluster"
        return (
            Target(
                kind="kubernetes",
                name=f"{shown} ({where})",
                detail={"options": options, "keys": keys, "volumes": volumes},
            ),
        )

    def capture(self, target: Target, store: Store, context: Context) -> Captured:
        """Each object as the API gives it, or that it is not there; bound volumes are kept from deletion."""
        cluster, keys = _cluster(target, context), _keys(target)
        found = cluster.find(keys)
        objects: list[Json] = []
        blobs: list[str] = []
        size = 0
        for key in keys:
            body = found.get(key)
            name = digest = None
            if body is not None:
                data = orjson.dumps(body)
                name = store.put(data)
                if store.get(name) != data:
                    raise CaptureError(f"the copy of {key} cannot be read back")
                blobs.append(name)
                size += len(data)
                digest = _digest(body)
            objects.append([key.to_json(), name, digest])
        notes = []
        for volume in _volumes(target):
            body = found.get(Key(namespace="", version="v1", kind="PersistentVolume", name=volume))
            if body is None or body["spec"].get("persistentVolumeReclaimPolicy") == "Retain":
                continue
            cluster.keep_volume(volume)
            notes.append(f"the reclaim policy of volume {volume} was set to Retain")
        return Captured(
            manifest={"objects": objects}, blobs=tuple(blobs), bytes=size, notes=(*notes, *_status(keys))
        )

    def fingerprint(self, target: Target, context: Context) -> str:
        """Digest of the objects without what the server gave them; "" where none exists."""
        found = _cluster(target, context).find(_keys(target))
        if not found:
            return ""
        objects = sorted((key.to_json(), _digest(body)) for key, body in found.items())
        return sha256(orjson.dumps(objects)).hexdigest()

    def restore(self, target: Target, captured: Captured, store: Store, context: Context) -> Outcome:
        """Delete what was not there, make or replace the rest, what others need first; then compare."""
        cluster, wanted = _cluster(target, context), _wanted(captured, store)
        present = cluster.find(wanted)
        done: list[str] = []
        missing: list[str] = []
        for key in sorted(wanted, key=lambda each: -each.place):
            if wanted[key] is None and key in present:
                _attempt(partial(cluster.delete, key), f"delete {key}", done, missing)
        for key in sorted(wanted, key=lambda each: each.place):
            body = wanted[key]
            if body is None or (key in present and plain(present[key]) == plain(body)):
                continue
            _attempt(
                partial(cluster.put, plain(body), exists=key in present),
                f"{'replace' if key in present else 'make'} {key}",
                done,
                missing,
            )
        now = cluster.find(wanted)
        for key, body in wanted.items():
            same = (plain(now[key]) if key in now else None) == (plain(body) if body else None)
            if not same and not any(str(key) in line for line in missing):
                missing.append(f"{key} differs")
        return Outcome(restored=tuple(done), missing=tuple(missing), notes=_status(list(wanted)))

    def plan(self, target: Target, captured: Captured, context: Context) -> tuple[str, ...]:
        """A line for each object that is to be made or deleted, or may be replaced."""
        keys = {key_from(key): digest for key, _, digest in _objects(captured)}
        present = _cluster(target, context).find(keys)
        lines = []
        for key, digest in keys.items():
            if digest is None:
                lines += [f"delete {key}"] if key in present else []
            elif key not in present:
                lines.append(f"make {key}")
            elif digest != _digest(present[key]):
                lines.append(f"replace {key}")
        return tuple(lines)

    def describe(self, target: Target) -> tuple[str, str]:
        """What is captured and how it comes back."""
        return (
            f"{target.name}, whole, as the API gives it",
            "made again or replaced with kubectl, volumes bound again; what was not there deleted",
        )


def _attempt(act: Callable[[], None], what: str, done: list[str], missing: list[str]) -> None:
    try:
        act()
    except CaptureError as error:
        missing.append(f"{what}: {error}")
    else:
        done.append(what)


def _cluster(target: Target, context: Context) -> Cluster:
    options = target.detail["options"]
    assert isinstance(options, list)
    return Cluster(options=tuple(map(str, options)), context=context)


def _keys(target: Target) -> list[Key]:
    keys = target.detail["keys"]
    assert isinstance(keys, list)
    return [key_from(each) for each in keys]


def _volumes(target: Target) -> list[str]:
    volumes = target.detail["volumes"]
    assert isinstance(volumes, list)
    return list(map(str, volumes))


def _objects(captured: Captured) -> list[list[Json]]:
    objects = captured.manifest["objects"]
    if not isinstance(objects, list):
        raise DamagedError("the backup's list of objects cannot be read")
    return [each for each in objects if isinstance(each, list)]


def _wanted(captured: Captured, store: Store) -> dict[Key, Body | None]:
    return {
        key_from(key): body_from(store.get(str(name))) if name else None
        for key, name, _ in _objects(captured)
    }


def _digest(body: Body) -> str:
    return sha256(orjson.dumps(plain(body), option=orjson.OPT_SORT_KEYS)).hexdigest()


def _status(keys: list[Key]) -> tuple[str, ...]:
    return ("uids, times, revisions and status are the server's own",) if keys else ()
