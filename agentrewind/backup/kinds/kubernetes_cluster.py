"""Asks and changes a Kubernetes cluster through kubectl; objects as plain JSON."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from agentrewind.backup.kind import CaptureError
from agentrewind.backup.programs import run
from agentrewind.backup.values import Context
from agentrewind.errors import DamagedError
from agentrewind.records import Json, JsonObject

Body = dict[str, Any]
"""One object as the API gives it."""

_SERVERS_OWN = ("uid", "resourceVersion", "creationTimestamp", "managedFields", "generation", "selfLink")
_BINDING = ("pv.kubernetes.io/", "volume.kubernetes.io/", "volume.beta.kubernetes.io/")
_FIRST = (
    "Namespace",
    "CustomResourceDefinition",
    "StorageClass",
    "PersistentVolume",
    "ServiceAccount",
    "Secret",
    "ConfigMap",
    "PersistentVolumeClaim",
    "Role",
    "ClusterRole",
    "RoleBinding",
    "ClusterRoleBinding",
    "Service",
)


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Key:
    """Which object: `apps/v1`, `Deployment`, namespace (empty for the cluster's own), name."""

    namespace: str
    version: str
    kind: str
    name: str

    @property
    def resource(self) -> str:
        """Its kind as kubectl takes it: `Deployment.v1.apps`."""
        group, slash, version = self.version.partition("/")
        return f"{self.kind}.{version}.{group}" if slash else self.kind

    @property
    def place(self) -> int:
        """Where it stands in the order of making: what others need comes first."""
        return _FIRST.index(self.kind) if self.kind in _FIRST else len(_FIRST)

    def __str__(self) -> str:
        where = f" in {self.namespace}" if self.namespace else ""
        return f"{self.kind} {self.name}{where}"

    def to_json(self) -> list[Json]:
        return [self.namespace, self.version, self.kind, self.name]


def key_from(value: Json) -> Key:
    """The key that `to_json` wrote. Raises DamagedError."""
    if not isinstance(value, list) or len(value) != 4:
        raise DamagedError("the backup's list of objects cannot be read")
    namespace, version, kind, name = map(str, value)
    return Key(namespace=namespace, version=version, kind=kind, name=name)


def key_of(body: Body) -> Key:
    """The key of an object."""
    metadata = body["metadata"]
    return Key(
        namespace=metadata.get("namespace", ""),
        version=body["apiVersion"],
        kind=body["kind"],
        name=metadata["name"],
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """One cluster: kubectl's options that choose it, none of them a credential."""

    options: tuple[str, ...]
    context: Context

    def kubectl(self, *words: str, stdin: bytes | None = None) -> bytes:
        """What kubectl prints. Raises CaptureError."""
        return run(["kubectl", *self.options, *words], self.context, stdin=stdin)

    def get(self, *words: str) -> list[Body]:
        """The objects that `kubectl get` finds, none where there is none."""
        output = self.kubectl("get", *words, "--ignore-not-found", "-o", "json")
        return items(output)

    def find(self, keys: Iterable[Key]) -> dict[Key, Body]:
        """Those of the objects that exist, asked kind by kind."""
        found: dict[Key, Body] = {}
        groups: dict[tuple[str, str], list[Key]] = {}
        for key in keys:
            groups.setdefault((key.resource, key.namespace), []).append(key)
        for (resource, namespace), wanted in groups.items():
            where = ["-n", namespace] if namespace else []
            for body in self.get(resource, *(key.name for key in wanted), *where):
                found[key_of(body)] = body
        return found

    def everything_in(self, namespace: str) -> list[Body]:
        """Every object of a namespace that no controller makes again by itself."""
        listed = self.kubectl("api-resources", "--namespaced", "--verbs=list,create", "-o", "name")
        kinds = [name for name in listed.decode().split() if not name.startswith("events")]
        if not kinds:
            return []
        return [body for body in self.get(",".join(kinds), "-n", namespace) if not is_derived(body)]

    def put(self, body: Body, *, exists: bool) -> None:
        """Create the object, or replace the one that is there. Raises CaptureError."""
        verb = "replace" if exists else "create"
        self.kubectl(verb, "--validate=false", "-f", "-", stdin=orjson.dumps(body))

    def delete(self, key: Key) -> None:
        """Delete one object and wait until it is gone."""
        where = ["-n", key.namespace] if key.namespace else []
        words = [key.resource, key.name, *where, "--ignore-not-found", "--timeout=120s"]
        self.kubectl("delete", *words, "--wait=false" if key.kind == "Namespace" else "--wait=true")

    def keep_volume(self, name: str) -> None:
        """Let a volume outlive its claim."""
        patch = '{"spec":{"persistentVolumeReclaimPolicy":"Retain"}}'
        self.kubectl("patch", "persistentvolume", name, "--type=merge", "-p", patch)


def items(output: bytes) -> list[Body]:
    """The objects in kubectl's JSON: one, a list, several documents, or nothing."""
    text = output.decode("utf-8", "replace").strip()
    found: list[Body] = []
    try:
        for document in _documents(text):
            found += document["items"] if str(document.get("kind", "")).endswith("List") else [document]
    except (orjson.JSONDecodeError, AttributeError) as error:
        raise CaptureError(f"kubectl printed no JSON: {error}") from error
    return found


def plain(body: Body) -> Body:
    """The object as it can be created again: without what the server gave it."""
    copy: Body = orjson.loads(orjson.dumps(body))
    copy.pop("status", None)
    metadata = copy["metadata"]
    for name in _SERVERS_OWN:
        metadata.pop(name, None)
    annotations = metadata.get("annotations")
    if isinstance(annotations, dict) and copy["kind"] in ("PersistentVolume", "PersistentVolumeClaim"):
        for name in [each for each in annotations if each.startswith(_BINDING)]:
            del annotations[name]
    if annotations == {}:
        del metadata["annotations"]
    claim = copy.get("spec", {}).get("claimRef") if copy["kind"] == "PersistentVolume" else None
    if isinstance(claim, dict):
        # a claim of the same name that is made again has another uid
        claim.pop("uid", None)
        claim.pop("resourceVersion", None)
    return copy


def is_derived(body: Body) -> bool:
    """A controller owns it and makes it again, or the cluster does so in every namespace."""
    key = key_of(body)
    if (key.kind, key.name) in (("ConfigMap", "kube-root-ca.crt"), ("ServiceAccount", "default")):
        return True
    return any(owner.get("controller") for owner in body["metadata"].get("ownerReferences", ()))


def _documents(text: str) -> Sequence[Body]:
    if not text:
        return []
    try:
        return [orjson.loads(text)]
    except orjson.JSONDecodeError:
        # several files give several documents, one after the other
        return [orjson.loads(part) for part in text.replace("}\n{", "}\x00{").split("\x00")]


def body_from(data: bytes) -> Body:
    """An object of a backup. Raises DamagedError."""
    found: JsonObject | Any = orjson.loads(data)
    if not isinstance(found, dict):
        raise DamagedError("an object of the backup cannot be read")
    return found
