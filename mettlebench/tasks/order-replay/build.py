"""Builds the order log, and knows what the lost program would say about any log."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from mettlebench.craft import Craft

FIELDS = {
    "open": (),
    "add": ("sku", "qty", "cents"),
    "remove": ("sku", "qty"),
    "pay": ("cents",),
    "ship": (),
    "cancel": (),
}
AUDITED = (180, 360, 540)

Log = dict[str, list[str]]


def canonical(value: object) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":")) + "\n"


@dataclass(kw_only=True)
class Replay:
    """The state after some events, what was refused, and which lines were accepted for which order."""

    orders: dict[str, dict[str, Any]] = field(default_factory=dict)
    keys: set[str] = field(default_factory=set)
    refused: list[tuple[int, str, str]] = field(default_factory=list)
    accepted: dict[int, tuple[str, str]] = field(default_factory=dict)

    def take(self, event: Mapping[str, Any]) -> None:
        reason = self.reason(event)
        if reason:
            self.refused.append((event["seq"], event["key"], reason))
            return
        self.keys.add(event["key"])
        self.accepted[event["seq"]] = (event["order"], event["key"])
        self.apply(event)

    def reason(self, event: Mapping[str, Any]) -> str | None:
        kind, order = event.get("type"), self.orders.get(event["order"])
        if malformed(event):
            return "malformed"
        if event["key"] in self.keys:
            return "duplicate"
        if kind == "open":
            return "exists" if order else None
        if order is None:
            return "unknown"
        if order["status"] != "open":
            return "closed"
        return "short" if self.short(order, event) else None

    def short(self, order: Mapping[str, Any], event: Mapping[str, Any]) -> bool:
        lines = order["lines"]
        if event["type"] == "remove":
            return bool(lines.get(event["sku"], [0])[0] < event["qty"])
        due = sum(qty * cents for qty, cents in lines.values())
        return event["type"] == "ship" and (not lines or order["paid"] < due)

    def apply(self, event: Mapping[str, Any]) -> None:
        kind = event["type"]
        if kind == "open":
            self.orders[event["order"]] = {"lines": {}, "paid": 0, "status": "open"}
            return
        order = self.orders[event["order"]]
        if kind in ("add", "remove"):
            change = event["qty"] if kind == "add" else -event["qty"]
            qty, cents = order["lines"].get(event["sku"], [0, 0])
            order["lines"][event["sku"]] = [qty + change, event["cents"] if kind == "add" else cents]
            if qty + change == 0:
                del order["lines"][event["sku"]]
        elif kind == "pay":
            order["paid"] += event["cents"]
        elif kind == "ship":
            order["status"] = "shipped"
        else:
            order["status"], order["paid"] = "cancelled", 0


def malformed(event: Mapping[str, Any]) -> bool:
    kind = event.get("type")
    if kind not in FIELDS:
        return True
    for name in FIELDS[kind]:
        value = event.get(name)
        if value is None:
            return True
        if name != "sku" and (type(value) is not int or value <= 0):
            return True
    return False


def replay(log: Log, *, until: int | None = None) -> Replay:
    state = Replay()
    if "base.json" in log:
        base = json.loads(log["base.json"][0])
        state.orders, state.keys = base["orders"], set(base["keys"])
    for event in sorted(events(log), key=lambda each: each["seq"]):
        if until is None or event["seq"] <= until:
            state.take(event)
    return state


def events(log: Log) -> Iterable[dict[str, Any]]:
    for name, lines in log.items():
        if name != "base.json":
            yield from map(json.loads, lines)


def compacted(log: Log) -> Log:
    state = replay(log)
    base = json.loads(log["base.json"][0]) if "base.json" in log else {"keys": [], "orders": {}}
    closed = {name: order for name, order in state.orders.items() if order["status"] != "open"}
    kept = {seq for seq, (order, _) in state.accepted.items() if order not in closed}
    dropped = {key for seq, (_, key) in state.accepted.items() if seq not in kept}
    result: Log = {
        name: [line for line in lines if json.loads(line)["seq"] in kept]
        for name, lines in log.items()
        if name != "base.json"
    }
    document = {"keys": sorted(dropped | set(base["keys"])), "orders": closed}
    result["base.json"] = [canonical(document).strip()]
    return result


def make_log(seed: int, count: int, segments: int) -> Log:
    """A log of some hundred events, late ones and repeated ones among them."""
    chance = random.Random(seed)
    made: list[dict[str, Any]] = []
    for seq in range(1, count + 1):
        if chance.random() < 0.04:
            continue
        order = f"o{chance.randrange(1 + seq // 9):03}"
        kind = chance.choice(("open", "add", "add", "add", "remove", "pay", "pay", "ship", "cancel"))
        if kind == "cancel" and chance.random() < 0.6:
            kind = "add"
        event: dict[str, Any] = {
            "seq": seq,
            "key": f"k{chance.randrange(10**9):09}",
            "type": kind,
            "order": order,
        }
        event |= {"sku": chance.choice("ABCDE") + "1"} if kind in ("add", "remove") else {}
        event |= {"qty": chance.randrange(1, 5)} if kind in ("add", "remove") else {}
        event |= (
            {"cents": chance.randrange(100, 4000) * (5 if kind == "pay" else 1)}
            if kind in ("add", "pay")
            else {}
        )
        _spoil(event, made, chance)
        made.append(event)
    arrived = sorted(made, key=lambda each: each["seq"] + chance.randrange(-12, 13))
    size = -(-len(arrived) // segments)
    return {
        f"segment-{n:04}.jsonl": [json.dumps(each) for each in arrived[n * size : (n + 1) * size]]
        for n in range(segments)
    }


def _spoil(event: dict[str, Any], made: list[dict[str, Any]], chance: random.Random) -> None:
    luck = chance.random()
    if luck < 0.05 and made:
        event["key"] = chance.choice(made[-15:])["key"]
    elif luck < 0.07 and "qty" in event:
        event["qty"] = chance.choice((0, -1, "2", 1.5))
    elif luck < 0.08 and "cents" in event:
        del event["cents"]
    elif luck < 0.085:
        event["type"] = "split"


LOG = make_log(2025, 640, 6)


def build(craft: Craft) -> None:
    for name, lines in LOG.items():
        craft.write(f"log/{name}", "".join(line + "\n" for line in lines))
    example = make_log(7, 60, 2)
    for name, lines in example.items():
        craft.write(f"docs/example/log/{name}", "".join(line + "\n" for line in lines))
    craft.write("docs/example/state.json", canonical(replay(example).orders))
    craft.write("docs/example/refused.csv", refused_text(example))


def refused_text(log: Log) -> str:
    rows = [",".join(map(str, row)) for row in replay(log).refused]
    return "".join(line + "\n" for line in ("seq,key,reason", *rows))
