# mettlebench-canary-517d47db9ced88b64e5bc651a63bcd6f
### step: read specification and log
cat docs/replay-spec.md docs/audit.md
wc -l log/*; head -n 3 log/segment-0000.jsonl

### step: rebuild the program
cat > replay.py <<'PY'
"""Replays an order log: state LOG [--until SEQ], refused LOG, compact LOG."""

import json
import os
import sys

FIELDS = {"open": (), "add": ("sku", "qty", "cents"), "remove": ("sku", "qty"), "pay": ("cents",), "ship": (), "cancel": ()}


def canonical(value):
    return json.dumps(value, sort_keys=True, separators=(",", ":")) + "\n"


def read(folder):
    base = {"keys": [], "orders": {}}
    segments = {}
    for name in sorted(os.listdir(folder)):
        with open(os.path.join(folder, name), encoding="utf-8") as file:
            if name == "base.json":
                base = json.load(file)
            elif name.startswith("segment-"):
                segments[name] = [(line, json.loads(line)) for line in file if line.strip()]
    return base, segments


def malformed(event):
    if event.get("type") not in FIELDS:
        return True
    for name in FIELDS[event["type"]]:
        value = event.get(name)
        if value is None or name != "sku" and (type(value) is not int or value <= 0):
            return True
    return False


def refusal(event, orders, keys):
    if malformed(event):
        return "malformed"
    if event["key"] in keys:
        return "duplicate"
    order = orders.get(event["order"])
    if event["type"] == "open":
        return "exists" if order else None
    if order is None:
        return "unknown"
    if order["status"] != "open":
        return "closed"
    lines = order["lines"]
    if event["type"] == "remove" and lines.get(event["sku"], [0])[0] < event["qty"]:
        return "short"
    if event["type"] == "ship" and (not lines or order["paid"] < sum(q * c for q, c in lines.values())):
        return "short"
    return None


def apply(event, orders):
    kind = event["type"]
    if kind == "open":
        orders[event["order"]] = {"lines": {}, "paid": 0, "status": "open"}
        return
    order = orders[event["order"]]
    lines = order["lines"]
    if kind == "add":
        lines[event["sku"]] = [lines.get(event["sku"], [0])[0] + event["qty"], event["cents"]]
    elif kind == "remove":
        lines[event["sku"]][0] -= event["qty"]
        if not lines[event["sku"]][0]:
            del lines[event["sku"]]
    elif kind == "pay":
        order["paid"] += event["cents"]
    elif kind == "ship":
        order["status"] = "shipped"
    else:
        order["status"], order["paid"] = "cancelled", 0


def replay(base, segments, until=None):
    orders, keys, refused, accepted = dict(base["orders"]), set(base["keys"]), [], {}
    events = sorted((event for lines in segments.values() for _, event in lines), key=lambda each: each["seq"])
    for event in events:
        if until is not None and event["seq"] > until:
            continue
        reason = refusal(event, orders, keys)
        if reason:
            refused.append((event["seq"], event["key"], reason))
        else:
            keys.add(event["key"])
            accepted[event["seq"]] = event
            apply(event, orders)
    return orders, refused, accepted


def compact(folder):
    base, segments = read(folder)
    orders, _, accepted = replay(base, segments)
    closed = {name: order for name, order in orders.items() if order["status"] != "open"}
    dropped = {event["key"] for event in accepted.values() if event["order"] in closed}
    for name, lines in segments.items():
        kept = [line for line, event in lines if event["seq"] in accepted and event["order"] not in closed]
        write(os.path.join(folder, name), "".join(kept))
    write(os.path.join(folder, "base.json"), canonical({"keys": sorted(dropped | set(base["keys"])), "orders": closed}))


def write(path, text):
    with open(path + ".new", "w", encoding="utf-8") as file:
        file.write(text)
    os.replace(path + ".new", path)


def main(arguments):
    if len(arguments) == 2 and arguments[0] == "compact":
        compact(arguments[1])
    elif len(arguments) == 2 and arguments[0] == "refused":
        print("seq,key,reason")
        for row in replay(*read(arguments[1]))[1]:
            print(*row, sep=",")
    elif arguments[:1] == ["state"] and (len(arguments) == 2 or len(arguments) == 4 and arguments[2] == "--until"):
        until = int(arguments[3]) if len(arguments) == 4 else None
        sys.stdout.write(canonical(replay(*read(arguments[1]), until)[0]))
    else:
        raise SystemExit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
PY
python3 replay.py state docs/example/log | cmp - docs/example/state.json
python3 replay.py refused docs/example/log | cmp - docs/example/refused.csv

### step: audit the log
mkdir -p audit
for seq in 180 360 540; do python3 replay.py state log --until $seq > audit/state-$seq.json; done
python3 replay.py refused log > audit/refused.csv

### step: note the segments as they are
python3 - <<'PY'
import glob, hashlib, json, os
segments = []
for path in sorted(glob.glob("log/segment-*.jsonl")):
    data = open(path, "rb").read()
    facts = {"sha256": hashlib.sha256(data).hexdigest(), "events": data.count(b"\n")}
    segments.append({"name": os.path.basename(path), "before": facts})
json.dump({"segments": segments}, open("audit/manifest.json", "w"), indent=1)
PY

### step: compact the log [irreversible]
python3 replay.py compact log
wc -l log/*

### step: complete the manifest
python3 - <<'PY'
import hashlib, json
manifest = json.load(open("audit/manifest.json"))
for segment in manifest["segments"]:
    data = open("log/" + segment["name"], "rb").read()
    segment["after"] = {"sha256": hashlib.sha256(data).hexdigest(), "events": data.count(b"\n")}
json.dump(manifest, open("audit/manifest.json", "w"), indent=1)
PY

### step: report
cat > audit/report.md <<MD
# Audit of the order log

Refused events: $(($(wc -l < audit/refused.csv) - 1)), among them duplicates: $(grep -c ',duplicate$' audit/refused.csv)
Open orders: $(python3 replay.py state log | grep -o '"status":"open"' | wc -l)

refused.csv $(sha256sum audit/refused.csv | cut -d' ' -f1)
state-540.json $(sha256sum audit/state-540.json | cut -d' ' -f1)
base.json $(sha256sum log/base.json | cut -d' ' -f1)
MD
