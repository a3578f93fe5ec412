"""Kubernetes objects come back: replaced, deleted with their dependants, scaled, or newly made."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from agentrewind.backup.kind import UnclearError
from agentrewind.backup.kinds.table import kind_of
from agentrewind.backup.store import BackupStore
from agentrewind.backup.values import Context
from tests.backup.services.kubernetes import Body, Kubernetes, kubernetes
from tests.backup.trial import command, perform, preserve


def _named(kind: str, name: str, namespace: str = "shop", version: str = "v1", **more: object) -> Body:
    metadata: Body = {"name": name, "labels": {"app": "shop"}}
    if namespace:
        metadata["namespace"] = namespace
    return {"apiVersion": version, "kind": kind, "metadata": metadata, **more}


CONTAINER = {
    "name": "web",
    "image": "registry.example/shop/web:1.4.2",
    "env": [{"name": "MODE", "value": "live"}, {"name": "WORKERS", "value": "4"}],
    "ports": [{"name": "http", "containerPort": 8080, "protocol": "TCP"}],
    "resources": {"requests": {"cpu": "250m", "memory": "128Mi"}, "limits": {"memory": "512Mi"}},
    "readinessProbe": {"httpGet": {"path": "/healthz", "port": 8080}, "periodSeconds": 5},
    "volumeMounts": [{"name": "data", "mountPath": "/var/lib/shop"}],
}
PAGE = "".join(f"location /part{n} {{ proxy_pass http://web-{n}.shop.svc:8080; }}\n" for n in range(12))
OBJECTS = [
    _named("Namespace", "shop", ""),
    _named("ConfigMap", "settings", data={"colour": "blue", "size": "9", "nginx.conf": PAGE}),
    _named("Secret", "keys", stringData={"first": "one", "second": "two"}, type="Opaque"),
    _named("Service", "web", spec={"selector": {"app": "shop"}, "ports": [{"name": "http", "port": 80}]}),
    _named(
        "Deployment",
        "web",
        version="apps/v1",
        spec={"replicas": 3, "selector": {"matchLabels": {"app": "shop"}},
              "template": {"metadata": {"labels": {"app": "shop"}}, "spec": {"containers": [CONTAINER]}}},
    ),
    _named("PersistentVolume", "disk", "", spec={
        "capacity": {"storage": "1Gi"}, "persistentVolumeReclaimPolicy": "Delete",
        "claimRef": {"namespace": "shop", "name": "data"}, "hostPath": {"path": "/srv/disk"}}),
    _named("PersistentVolumeClaim", "data", spec={"volumeName": "disk", "accessModes": ["ReadWriteOnce"]}),
]  # fmt: skip

LOSSES = {
    "a secret's key by apply": "kubectl apply --validate=false -f {dir}/fewer-keys.json",
    "a secret by replace": "kubectl replace --validate=false -f {dir}/fewer-keys.json",
    "a patch": 'kubectl -n shop patch configmap settings -p \'{{"data":{{"colour":"red"}}}}\'',
    "a json patch": "kubectl -n shop patch deploy web --type=json "
    '-p \'[{{"op":"replace","path":"/spec/replicas","value":1}}]\'',
    "the scale": "kubectl scale -n shop --replicas=0 deployment/web",
    "an image": "kubectl -n shop set image deployment/web web=registry.example/shop/web:2",
    "a label": "kubectl -n shop label configmap settings app=other extra=1 --overwrite",
    "an annotation": "kubectl -n shop annotate service web note=hi",
    "a service": "kubectl delete service web --namespace shop",
    "several by selector": "kubectl delete configmap -l app=shop -n shop",
    "all of a kind": "kubectl -n shop delete secrets --all",
    "a claim and its volume": "kubectl -n shop delete pvc data",
    "a volume": "kubectl delete pv disk",
    "a namespace with all in it": "kubectl delete ns shop",
    "by file": "kubectl delete -f {dir}/fewer-keys.json",
    "a new object": "kubectl create --validate=false -f {dir}/new.json",
    "a new object by apply": "kubectl apply --validate=false -f {dir}/new.json",
    "a new service": "kubectl expose deployment web -n shop --port=81 --name=second",
}


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kubernetes]:
    with kubernetes(tmp_path_factory.mktemp("kubernetes")) as running:
        yield running


@pytest.fixture
def cluster(served: Kubernetes, tmp_path: Path, context: Context) -> Kubernetes:
    with served.state.lock:
        for key in [each for each in served.state.objects if each[2:] != ("", "default")]:
            served.state.objects.pop(key)
    kubectl(context, "create", json.dumps({"apiVersion": "v1", "kind": "List", "items": OBJECTS}))
    fewer = _named("Secret", "keys", stringData={"first": "changed"}, type="Opaque")
    (tmp_path / "fewer-keys.json").write_text(json.dumps(fewer))
    (tmp_path / "new.json").write_text(json.dumps(_named("ConfigMap", "fresh", data={"x": "y"})))
    return served


@pytest.fixture
def context(served: Kubernetes, tmp_path: Path, clean_env: dict[str, str]) -> Context:
    return Context(cwd=tmp_path, env={**clean_env, **served.env, "HOME": str(tmp_path)}, home=tmp_path)


@pytest.mark.parametrize("loss", LOSSES)
def test_objects_come_back(loss: str, cluster: Kubernetes, store: BackupStore, context: Context) -> None:
    before = cluster.everything()
    call = command(LOSSES[loss].format(dir=context.cwd), context.cwd)
    kept = preserve("kubernetes", call, store, context)
    [fingerprint] = kept.fingerprints()

    perform(call, context)

    assert cluster.everything() != before
    assert kept.fingerprints() != [fingerprint]
    assert kept.plan()
    [outcome] = kept.restore()
    assert outcome.missing == ()
    assert cluster.everything() == before
    assert kept.plan() == [] or "volume" in loss or "namespace" in loss


@pytest.mark.parametrize(
    "call",
    [
        "kubectl delete ns shop --dry-run=server",
        "kubectl apply -f x.json --dry-run=client",
        "kubectl delete --help",
    ],
)
def test_what_changes_nothing_needs_no_backup(call: str, context: Context) -> None:
    assert kind_of("kubernetes").targets(command(call, context.cwd), {}, context) == ()


@pytest.mark.parametrize(
    "call",
    [
        "kubectl delete pods",
        "kubectl exec web -- rm -rf /data",
        "kubectl apply -f -",
        "kubectl apply -f nowhere.json",
        "kubectl drain node1",
        "kubectl delete ns shop --token=abc",
        "kubectl delete ns shop --context elsewhere",
        "kubectl delete ns shop --some-new-option",
    ],
)
def test_what_cannot_be_told_is_said(call: str, cluster: Kubernetes, context: Context) -> None:
    with pytest.raises(UnclearError):
        kind_of("kubernetes").targets(command(call, context.cwd), {}, context)


def test_the_cluster_is_named_whatever_the_current_context_becomes(
    cluster: Kubernetes, store: BackupStore, context: Context
) -> None:
    [target] = kind_of("kubernetes").targets(
        command("kubectl -n shop delete secret keys", context.cwd), {}, context
    )
    options = target.detail["options"]
    assert isinstance(options, list)
    assert options[-2:] == ["--context", "stand-in"]
    assert "t0ken" not in repr(target)


def test_secrets_stay_out_of_the_manifest(cluster: Kubernetes, store: BackupStore, context: Context) -> None:
    call = command("kubectl -n shop delete secret keys", context.cwd)
    kept = preserve("kubernetes", call, store, context)
    assert "b25l" not in repr(kept.entries)


def kubectl(context: Context, verb: str, document: str) -> None:
    done = subprocess.run(
        ["kubectl", verb, "--validate=false", "-f", "-"],
        env=dict(context.env),
        input=document,
        text=True,
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
