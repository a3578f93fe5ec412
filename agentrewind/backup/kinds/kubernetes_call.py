"""Which objects a kubectl call may change: its options, its resources, its files, what depends on them."""

from __future__ import annotations

import getopt
import os
from collections.abc import Sequence
from dataclasses import dataclass, field

from agentrewind.backup.kind import CaptureError, UnclearError
from agentrewind.backup.kinds.kubernetes_cluster import Body, Cluster, Key, items, key_of
from agentrewind.backup.values import Command, Context

_SHORT = "n:f:k:l:o:p:c:s:v:RALit"
_VALUES = (
    "namespace= context= cluster= user= kubeconfig= server= token= as= as-group= as-uid= request-timeout= "
    "certificate-authority= client-certificate= client-key= username= password= tls-server-name= cache-dir= "
    "filename= kustomize= selector= output= patch= patch-file= type= container= replicas= current-replicas= "
    "resource-version= timeout= field-manager= field-selector= grace-period= image= limits= requests= "
    "env= from= keys= prefix= subresource= template= to-revision= port= target-port= name= protocol= "
    "min= max= cpu-percent= prune-allowlist= applyset= local= revision= from-literal= "
    "from-file= from-env-file= class= rule= schedule= verb= resource= resource-name= clusterrole= role= "
    "serviceaccount= tcp= cert= key= command"
)
_FLAGS = (
    "all all-namespaces recursive force wait= cascade= now ignore-not-found= overwrite dry-run= server-side "
    "force-conflicts prune validate= save-config edit-last-applied record "
    "windows-line-endings allow-missing-template-keys show-managed-fields insecure-skip-tls-verify list "
    "help openapi-patch interactive raw="
)
_CHOOSE = ("--context", "--cluster", "--user", "--kubeconfig", "--server", "-s", "--as", "--as-group")
_CREDENTIALS = ("--token", "--password", "--username", "--client-key", "--client-certificate")
_CHANGES = {
    "apply", "create", "replace", "patch", "edit", "scale", "delete", "label", "annotate", "set", "autoscale",
    "expose", "taint", "cordon", "uncordon",
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A kubectl call that changes objects."""

    cluster: Cluster
    verb: str
    namespace: str
    keys: tuple[Key, ...]
    namespaces: tuple[str, ...] = ()
    volumes: tuple[str, ...] = field(default=())


def read_call(command: Command, context: Context) -> Call | None:
    """What the call may change, asked from its cluster; None where it changes nothing.

    Raises UnclearError where that cannot be told, the cluster's silence included.
    """
    if command.host is not None or command.open_ended or not all(word.literal for word in command.argv):
        raise UnclearError("its arguments are only known when it runs")
    try:
        options, operands = getopt.gnu_getopt(
            [word.text for word in command.argv[1:]], _SHORT, [*_VALUES.split(), *_FLAGS.split()]
        )
    except getopt.GetoptError as error:
        raise UnclearError(f"kubectl: {error.msg}") from error
    given = dict(options)
    if _changes_nothing(options, operands):
        return None
    if operands[0] not in _CHANGES and operands[:2] not in (["rollout", "undo"], ["rollout", "restart"]):
        raise UnclearError(f"what kubectl {operands[0]} changes is not known here")
    if any(name in given for name in _CREDENTIALS):
        raise UnclearError("the cluster's credentials stand in the call, and are not kept for a restore")
    try:
        return _asked(command, context, options, operands)
    except CaptureError as error:
        raise UnclearError(f"the cluster cannot be asked what would change: {error}") from error


def _changes_nothing(options: list[tuple[str, str]], operands: list[str]) -> bool:
    if not operands or "--help" in dict(options):
        return True
    # of several, the last one counts
    dry = [value for name, value in options if name == "--dry-run"]
    return bool(dry) and dry[-1] in ("client", "server")


def _asked(command: Command, context: Context, options: list[tuple[str, str]], operands: list[str]) -> Call:
    inside = Context(
        cwd=command.cwd or context.cwd, env=context.env, home=context.home, workspace=context.workspace
    )
    cluster = _cluster(options, inside)
    namespace = _namespace(options, cluster)
    files = _files(options)
    verb = operands[0]
    bodies: list[Body] = []
    keys: list[Key] = []
    if files:
        # without the option each object's own namespace holds
        where = [word for name, value in options if name in ("-n", "--namespace") for word in ("-n", value)]
        keys = _named_in_files(cluster, [*files, *where], command)
    else:
        bodies, keys = _by_resource(cluster, verb, operands, options, namespace)
    found = cluster.find(keys)
    bodies += [body for key, body in found.items() if key not in {key_of(each) for each in bodies}]
    more = _dependants(cluster, bodies) if verb in ("delete", "replace", "apply") else _Dependants()
    return Call(
        cluster=cluster,
        verb=verb,
        namespace=namespace,
        keys=tuple(sorted({*keys, *map(key_of, bodies), *more.keys})),
        namespaces=tuple(more.namespaces),
        volumes=tuple(more.volumes) if verb == "delete" else (),
    )


def _cluster(options: list[tuple[str, str]], context: Context) -> Cluster:
    chosen = [word for name, value in options if name in _CHOOSE for word in (name, value)]
    if "--kubeconfig" not in chosen and context.env.get("KUBECONFIG"):
        named = context.env["KUBECONFIG"]
        if os.pathsep not in named:
            chosen += ["--kubeconfig", str(context.cwd / named)]
    cluster = Cluster(options=tuple(chosen), context=context)
    if "--context" not in chosen and not {"--server", "-s", "--cluster"} & set(chosen):
        # the current context may be another one when the state is to be restored
        current = cluster.kubectl("config", "current-context").decode().strip()
        cluster = Cluster(options=(*chosen, "--context", current), context=context)
    return cluster


def _namespace(options: list[tuple[str, str]], cluster: Cluster) -> str:
    named = [value for name, value in options if name in ("-n", "--namespace")]
    if named:
        return named[-1]
    output = cluster.kubectl("config", "view", "--minify", "-o", "jsonpath={..namespace}")
    return output.decode().strip() or "default"


def _files(options: list[tuple[str, str]]) -> list[str]:
    words: list[str] = []
    for name, value in options:
        if name in ("-f", "--filename"):
            words += ["-f", value]
        elif name in ("-k", "--kustomize"):
            words += ["-k", value]
        elif name in ("-R", "--recursive"):
            words.append("-R")
    return words


def _named_in_files(cluster: Cluster, files: list[str], command: Command) -> list[Key]:
    stdin = command.stdin.encode() if command.stdin is not None else None
    if "-" in files and stdin is None:
        raise UnclearError("the objects come from standard input and are not in the call")
    words = ["--dry-run=client", "--validate=false", "-o", "json"]
    output = cluster.kubectl("create", *files, *words, stdin=stdin)
    return [key_of(body) for body in items(output)]


def _by_resource(
    cluster: Cluster, verb: str, operands: list[str], options: list[tuple[str, str]], namespace: str
) -> tuple[list[Body], list[Key]]:
    if verb == "create":
        return [], _created(cluster, operands, options, namespace)
    words = _resources(verb, operands)
    chosen = [
        word
        for name, value in options
        if name in ("-l", "--selector", "--field-selector")
        for word in (name, value)
    ]
    everywhere = any(name in ("-A", "--all-namespaces") for name, _ in options)
    everything = any(name == "--all" for name, _ in options)
    if not chosen and not everything and len(words) < 2 and "/" not in words[0]:
        raise UnclearError("which objects it is for is not in the call")
    where = ["-A"] if everywhere else ["-n", namespace]
    if chosen and verb in ("delete", "label", "annotate", "scale", "set", "patch") and len(words) > 1:
        words = words[:1]
    bodies = cluster.get(*words, *chosen, *where)
    made = ("expose", "autoscale")
    keys = [_made(verb, body, options, namespace) for body in bodies] if verb in made else []
    return bodies, keys


def _resources(verb: str, operands: list[str]) -> list[str]:
    """`TYPE NAME…` or `TYPE/NAME…` of a call's operands."""
    rest = operands[1:]
    if verb in ("rollout", "set"):
        rest = operands[2:]
    if verb in ("cordon", "uncordon"):
        return ["node", *rest]
    if verb in ("label", "annotate", "taint", "set"):
        # what follows is KEY=VALUE, KEY- or, for taints, KEY=VALUE:EFFECT
        rest = [word for index, word in enumerate(rest) if index == 0 or not _is_setting(word)]
    if not rest:
        raise UnclearError("it names no resource")
    return rest


def _is_setting(word: str) -> bool:
    return "=" in word or word.endswith("-")


def _created(
    cluster: Cluster, operands: list[str], options: list[tuple[str, str]], namespace: str
) -> list[Key]:
    # what it would make is told by kubectl itself
    words = [*operands[1:]]
    passed = [f"{name}={value}" if value else name for name, value in options if name not in _CHOOSE]
    output = cluster.kubectl("create", *words, *passed, "--dry-run=client", "-n", namespace, "-o", "json")
    return [key_of(body) for body in items(output)]


def _made(verb: str, body: Body, options: list[tuple[str, str]], namespace: str) -> Key:
    names = [value for name, value in options if name == "--name"]
    return Key(
        namespace=namespace,
        version="v1" if verb == "expose" else "autoscaling/v2",
        kind="Service" if verb == "expose" else "HorizontalPodAutoscaler",
        name=names[-1] if names else key_of(body).name,
    )


@dataclass(slots=True)
class _Dependants:
    keys: set[Key] = field(default_factory=set)
    namespaces: list[str] = field(default_factory=list)
    volumes: list[str] = field(default_factory=list)


def _dependants(cluster: Cluster, bodies: Sequence[Body]) -> _Dependants:
    found = _Dependants()
    pending = list(bodies)
    while pending:
        body = pending.pop()
        key, spec = key_of(body), body.get("spec", {})
        if key.kind == "Namespace" and key.name not in found.namespaces:
            found.namespaces.append(key.name)
            inner = cluster.everything_in(key.name)
            found.keys |= {key_of(each) for each in inner}
            pending += inner
        elif key.kind == "PersistentVolumeClaim" and spec.get("volumeName"):
            volume = Key(namespace="", version="v1", kind="PersistentVolume", name=spec["volumeName"])
            found.keys.add(volume)
            found.volumes.append(volume.name)
        elif key.kind == "PersistentVolume":
            found.volumes.append(key.name)
            claim = spec.get("claimRef")
            if isinstance(claim, dict):
                found.keys.add(
                    Key(
                        namespace=claim["namespace"],
                        version="v1",
                        kind="PersistentVolumeClaim",
                        name=claim["name"],
                    )
                )
        elif key.kind == "CustomResourceDefinition":
            names = f"{spec['names']['plural']}.{spec['group']}"
            found.keys |= {key_of(each) for each in cluster.get(names, "-A")}
    return found
