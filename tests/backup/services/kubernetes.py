"""A stand-in for a Kubernetes API server, driven by the real kubectl; no controllers but those named below.

Deleting a namespace deletes what is in it; deleting a claim deletes its volume, or releases it where the
volume's reclaim policy says Retain. Secrets' `stringData` become `data`.
"""

from __future__ import annotations

import base64
import copy
import json
import re
import shutil
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import parse_qs, urlsplit

import pytest

Body = dict[str, Any]

_KINDS = {
    ("v1", "namespaces"): ("Namespace", False),
    ("v1", "persistentvolumes"): ("PersistentVolume", False),
    ("v1", "persistentvolumeclaims"): ("PersistentVolumeClaim", True),
    ("v1", "configmaps"): ("ConfigMap", True),
    ("v1", "secrets"): ("Secret", True),
    ("v1", "services"): ("Service", True),
    ("v1", "serviceaccounts"): ("ServiceAccount", True),
    ("v1", "pods"): ("Pod", True),
    ("v1", "events"): ("Event", True),
    ("apps/v1", "deployments"): ("Deployment", True),
    ("apps/v1", "statefulsets"): ("StatefulSet", True),
    ("autoscaling/v2", "horizontalpodautoscalers"): ("HorizontalPodAutoscaler", True),
}
_SHORT = {
    "namespaces": ["ns"],
    "persistentvolumes": ["pv"],
    "persistentvolumeclaims": ["pvc"],
    "configmaps": ["cm"],
    "services": ["svc"],
    "deployments": ["deploy"],
}
_VERBS = ["create", "delete", "deletecollection", "get", "list", "patch", "update"]
_PATH = re.compile(
    r"(?:/api/(?P<core>v1)|/apis/(?P<group>[^/]+/[^/]+))(?:/namespaces/(?P<namespace>[^/]+)(?=/))?"
    r"/(?P<plural>[a-z]+)(?:/(?P<name>[^/]+))?(?:/(?P<sub>[a-z]+))?"
)


@dataclass
class State:
    """All objects, by API version, plural, namespace and name."""

    objects: dict[tuple[str, str, str, str], Body] = field(default_factory=dict)
    version: int = 1
    lock: threading.Lock = field(default_factory=threading.Lock)

    def stamp(self, body: Body) -> None:
        self.version += 1
        body["metadata"]["resourceVersion"] = str(self.version)


@dataclass(frozen=True)
class Kubernetes:
    """A running stand-in and the configuration that leads to it."""

    kubeconfig: Path
    state: State

    @property
    def env(self) -> dict[str, str]:
        return {"KUBECONFIG": str(self.kubeconfig)}

    def everything(self) -> list[str]:
        """Every object without what a server gives it, sorted."""
        found = []
        for body in self.state.objects.values():
            plain = copy.deepcopy(body)
            plain.pop("status", None)
            for name in ("uid", "resourceVersion", "creationTimestamp"):
                plain["metadata"].pop(name, None)
            claim = plain.get("spec", {}).get("claimRef")
            if claim:
                claim.pop("uid", None)
                # kept back on purpose before a deletion, and said so
            found.append(json.dumps(plain, sort_keys=True))
        return sorted(found)


@contextmanager
def kubernetes(directory: Path) -> Iterator[Kubernetes]:
    """Start the stand-in, and stop it."""
    if shutil.which("kubectl") is None:
        pytest.fail("kubectl is not installed: apt-get install kubernetes-client")
    state = State()

    class Bound(_Handler):
        pass

    Bound.state = state
    server = ThreadingHTTPServer(("127.0.0.1", 0), Bound)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    for name in ("default", "kube-system"):
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "uid": str(uuid.uuid4())}}
        state.stamp(body)
        state.objects["v1", "namespaces", "", name] = body
    place = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": {"server": f"http://127.0.0.1:{server.server_port}"}}],
        "users": [{"name": "u", "user": {"token": "t0ken"}}],
        "contexts": [{"name": "stand-in", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "stand-in",
    }
    kubeconfig = directory / "kubeconfig"
    kubeconfig.write_text(json.dumps(place))
    try:
        yield Kubernetes(kubeconfig=kubeconfig, state=state)
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Handler(BaseHTTPRequestHandler):
    state: ClassVar[State]
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        return

    def do_GET(self) -> None:
        self._answer("GET")

    def do_POST(self) -> None:
        self._answer("POST")

    def do_PUT(self) -> None:
        self._answer("PUT")

    def do_PATCH(self) -> None:
        self._answer("PATCH")

    def do_DELETE(self) -> None:
        self._answer("DELETE")

    def _answer(self, verb: str) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        raw = self.rfile.read(length) if length else b""
        parts = urlsplit(self.path)
        found = _discovery(parts.path.rstrip("/"))
        if verb == "GET" and found is not None:
            self._send(200, found)
            return
        match = _PATH.fullmatch(parts.path.rstrip("/"))
        version = (match["core"] or match["group"]) if match else ""
        if match is None or (version, match["plural"]) not in _KINDS:
            self._refuse(404, "NotFound", "the server could not find the requested resource")
            return
        query = {name: values[-1] for name, values in parse_qs(parts.query).items()}
        if "protobuf" in self.headers.get("Content-Type", ""):
            self._refuse(415, "UnsupportedMediaType", "only JSON is understood here")
            return
        body = json.loads(raw) if raw.strip() else {}
        with self.state.lock:
            self._act(verb, version, match, body, query)

    def _act(self, verb: str, version: str, match: re.Match[str], body: Any, query: dict[str, str]) -> None:
        plural, name = match["plural"], match["name"]
        namespace = (match["namespace"] or "") if _KINDS[version, plural][1] else ""
        if name is None and verb == "POST":
            self._create(version, plural, namespace, body, query)
        elif name is None:
            self._list(verb, version, plural, namespace, query)
        else:
            self._one(verb, (version, plural, namespace, name), match["sub"] == "scale", body, query)

    def _list(self, verb: str, version: str, plural: str, namespace: str, query: dict[str, str]) -> None:
        objects = self.state.objects
        chosen = [
            key
            for key in sorted(objects)
            if key[:2] == (version, plural)
            and (not namespace or key[2] == namespace)
            and _selected(objects[key], query)
        ]
        found = [objects[key] for key in chosen]
        if verb == "DELETE":
            for key in chosen:
                self._remove(key)
        kind = _KINDS[version, plural][0]
        self._send(200, {"kind": f"{kind}List", "apiVersion": version, "metadata": {}, "items": found})

    def _one(
        self, verb: str, key: tuple[str, str, str, str], scale: bool, body: Any, query: dict[str, str]
    ) -> None:
        objects = self.state.objects
        if key not in objects:
            self._refuse(404, "NotFound", f'{key[1]} "{key[3]}" not found')
        elif verb == "GET":
            self._send(200, _scale(objects[key]) if scale else objects[key])
        elif verb == "DELETE":
            if "dryRun" not in query:
                self._remove(key)
            self._send(200, {"kind": "Status", "apiVersion": "v1", "status": "Success", "metadata": {}})
        elif scale:
            objects[key]["spec"]["replicas"] = body["spec"]["replicas"]
            self.state.stamp(objects[key])
            self._send(200, _scale(objects[key]))
        else:
            self._update(verb, key, body, query)

    def _create(self, version: str, plural: str, namespace: str, body: Body, query: dict[str, str]) -> None:
        kind, namespaced = _KINDS[version, plural]
        body = _completed(body, kind, version)
        if namespaced:
            body["metadata"]["namespace"] = namespace
        key = (version, plural, namespace, body["metadata"]["name"])
        if key in self.state.objects:
            self._refuse(409, "AlreadyExists", f'{plural} "{key[3]}" already exists')
            return
        body["metadata"] |= {"uid": str(uuid.uuid4()), "creationTimestamp": "2026-01-02T03:04:05Z"}
        self.state.stamp(body)
        if "dryRun" not in query:
            self.state.objects[key] = body
        self._send(201, body)

    def _update(self, verb: str, key: tuple[str, str, str, str], body: Any, query: dict[str, str]) -> None:
        old = self.state.objects[key]
        if verb == "PUT":
            new = body
        elif "json-patch" in self.headers.get("Content-Type", ""):
            new = _json_patched(old, body)
        else:
            new = _merged(old, body)
        new = _completed(copy.deepcopy(new), old["kind"], key[0])
        new["metadata"] |= {name: old["metadata"][name] for name in ("uid", "creationTimestamp", "namespace")
                            if name in old["metadata"]}  # fmt: skip
        self.state.stamp(new)
        if "dryRun" not in query:
            self.state.objects[key] = new
        self._send(200, new)

    def _remove(self, key: tuple[str, str, str, str]) -> None:
        removed = self.state.objects.pop(key)
        if removed["kind"] == "Namespace":
            for inner in [each for each in self.state.objects if each[2] == key[3]]:
                self._remove(inner)
        volume = removed.get("spec", {}).get("volumeName")
        place = ("v1", "persistentvolumes", "", volume or "")
        if removed["kind"] == "PersistentVolumeClaim" and place in self.state.objects:
            kept = self.state.objects[place]
            if kept["spec"].get("persistentVolumeReclaimPolicy") == "Retain":
                kept["status"] = {"phase": "Released"}
            else:
                del self.state.objects[place]

    def _send(self, status: int, body: Any) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _refuse(self, status: int, reason: str, message: str) -> None:
        body = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "metadata": {}}
        self._send(status, {**body, "message": message, "reason": reason, "code": status})


def _discovery(path: str) -> Body | None:
    groups = sorted({version for version, _ in _KINDS if "/" in version})
    if path == "/version":
        return {"major": "1", "minor": "32", "gitVersion": "v1.32.0"}
    if path == "/api":
        return {"kind": "APIVersions", "versions": ["v1"]}
    if path == "/apis":
        named = [
            {
                "name": each.partition("/")[0],
                "versions": [{"groupVersion": each, "version": each.partition("/")[2]}],
                "preferredVersion": {"groupVersion": each, "version": each.partition("/")[2]},
            }
            for each in groups
        ]
        return {"kind": "APIGroupList", "apiVersion": "v1", "groups": named}
    version = path.removeprefix("/apis/").removeprefix("/api/")
    resources = [
        {
            "name": plural,
            "singularName": kind.lower(),
            "namespaced": namespaced,
            "kind": kind,
            "verbs": _VERBS,
            "shortNames": _SHORT.get(plural, []),
        }
        for (served, plural), (kind, namespaced) in _KINDS.items()
        if served == version
    ]
    if not resources:
        return None
    if version == "apps/v1":
        resources += [
            {"name": f"{each['name']}/scale", "singularName": "", "namespaced": True, "group": "autoscaling",
             "version": "v1", "kind": "Scale", "verbs": ["get", "patch", "update"]}
            for each in list(resources)
        ]  # fmt: skip
    return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": version, "resources": resources}


def _completed(body: Body, kind: str, version: str) -> Body:
    body |= {"kind": kind, "apiVersion": version}
    for name, text in body.pop("stringData", {}).items():
        body.setdefault("data", {})[name] = base64.b64encode(text.encode()).decode()
    return body


def _selected(body: Body, query: dict[str, str]) -> bool:
    labels = body["metadata"].get("labels") or {}
    wanted = [each.partition("=") for each in query.get("labelSelector", "").split(",") if each]
    fields = [each.partition("=") for each in query.get("fieldSelector", "").split(",") if each]
    return all(labels.get(name) == value for name, _, value in wanted) and all(
        body["metadata"].get(name.removeprefix("metadata.")) == value for name, _, value in fields
    )


def _scale(body: Body) -> Body:
    return {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": body["metadata"],
        "spec": {"replicas": body["spec"].get("replicas", 1)},
    }


def _merged(old: Any, new: Any) -> Any:
    if not isinstance(old, dict) or not isinstance(new, dict):
        return new
    result = dict(old)
    for name, value in new.items():
        if value is None:
            result.pop(name, None)
        elif isinstance(value, list) and _named(value) and _named(result.get(name)):
            # as kubectl's strategic patches do: lists of named things by their names
            merged = {each["name"]: each for each in result[name]}
            for each in value:
                merged[each["name"]] = _merged(merged.get(each["name"], {}), each)
            result[name] = list(merged.values())
        elif not name.startswith("$"):
            result[name] = _merged(result.get(name), value)
    return result


def _named(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(each, dict) and "name" in each for each in value)


def _json_patched(old: Body, operations: list[Body]) -> Body:
    new = copy.deepcopy(old)
    for each in operations:
        *parents, last = [part.replace("~1", "/") for part in each["path"].split("/")[1:]]
        place: Any = new
        for parent in parents:
            place = place[int(parent)] if isinstance(place, list) else place.setdefault(parent, {})
        if each["op"] == "remove":
            del place[int(last) if isinstance(place, list) else last]
        else:
            place[int(last) if isinstance(place, list) else last] = each["value"]
    return new
