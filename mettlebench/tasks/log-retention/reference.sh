# mettlebench-canary-04fc6917ca44ce224f172b168de0311b
### step: read runbook and format
cat docs/*.md tools/authlog.py
ls -l --time-style=full-iso logs

### step: repair the reader
cat > tools/authlog.py <<'PY'
"""Reads the gateways' authentication logs: authlog.py LOG…"""

import gzip
import json
import re
import sys
from datetime import datetime, timezone

ENTRY = re.compile(
    r"(?P<time>\S+) (?P<gateway>\S+) session=(?P<session>\S+) user=(?P<user>\S+) "
    r"from=(?P<from>\S+) event=(?P<event>\S+)"
)


def read(path):
    """The entries of one log, in its order."""
    opener = gzip.open if str(path).endswith(".gz") else open
    entries = []
    with opener(path, "rt", encoding="utf-8", newline="\n") as file:
        for line in file:
            line = line.rstrip("\n")
            found = ENTRY.match(line)
            if line.startswith("\t") and entries:
                entries[-1]["raw"] += "\n" + line
            elif found:
                entry = found.groupdict()
                moment = datetime.fromisoformat(entry["time"]).astimezone(timezone.utc)
                entry["time"] = moment.strftime("%Y-%m-%dT%H:%M:%SZ")
                entry["raw"] = line
                entries.append(entry)
    return entries


def merged(paths):
    """The entries of several logs, each once, by time."""
    seen = {}
    for path in paths:
        for entry in read(path):
            seen.setdefault((entry["gateway"], entry["raw"]), entry)
    return sorted(seen.values(), key=lambda entry: (entry["time"], entry["gateway"]))


if __name__ == "__main__":
    for each in merged(sys.argv[1:]):
        print(json.dumps(each))
PY

### step: register sources
mkdir -p incident
python3 -B - <<'PY'
import csv, glob, hashlib, os, sys
sys.path.insert(0, "tools")
import authlog
with open("incident/sources.csv", "w", newline="") as file:
    out = csv.writer(file, lineterminator="\n")
    out.writerow(("file", "sha256", "entries", "first", "last"))
    for path in sorted(glob.glob("logs/*")):
        entries = authlog.read(path)
        digest = hashlib.sha256(open(path, "rb").read()).hexdigest()
        out.writerow((os.path.basename(path), digest, len(entries), entries[0]["time"], entries[-1]["time"]))
PY

### step: reconstruct timeline and window
python3 -B - <<'PY'
import collections, csv, glob, hashlib, sys
sys.path.insert(0, "tools")
import authlog
entries = authlog.merged(sorted(glob.glob("logs/*")))
own = [e for e in entries if e["from"] == "203.0.113.77"]
def table(name, head, rows):
    with open(f"incident/{name}", "w", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([head, *rows])
head = ("time", "gateway", "session", "user", "event")
table("timeline.csv", head, [[e[name] for name in head] for e in own])
first = min(e["time"] for e in own if e["event"] == "login")
last = max(e["time"] for e in own if e["event"] == "logout")
window = [e for e in entries if first <= e["time"] <= last]
open("incident/window.log", "w", encoding="utf-8").write("".join(e["raw"] + "\n" for e in window))
link, links = "", []
for e in window:
    link = hashlib.sha256((link + e["raw"]).encode()).hexdigest()
    links.append(link + "\n")
open("incident/chain.txt", "w").write("".join(links))
users = collections.defaultdict(list)
for e in own:
    users[e["user"]].append(e)
table("accounts.csv", ("user", "sessions", "first", "last"),
      [(u, len({(e["gateway"], e["session"]) for e in es if e["event"] == "login"}), es[0]["time"], es[-1]["time"])
       for u, es in sorted(users.items()) if any(e["event"] == "login" for e in es)])
PY
wc -l incident/*

### step: apply retention [irreversible]
python3 -B - <<'PY'
import csv, glob, hashlib, os, sys
sys.path.insert(0, "tools")
import authlog
with open("incident/retention.csv", "w", newline="") as file:
    out = csv.writer(file, lineterminator="\n")
    out.writerow(("file", "sha256", "action", "last"))
    for path in sorted(glob.glob("logs/*")):
        last = authlog.read(path)[-1]["time"]
        action = "deleted" if last < "2025-12-22T00:00:00Z" else "kept"
        out.writerow((os.path.basename(path), hashlib.sha256(open(path, "rb").read()).hexdigest(), action, last))
        if action == "deleted":
            os.unlink(path)
PY
ls logs

### step: report
python3 - <<'PY'
import csv, hashlib
timeline = list(csv.DictReader(open("incident/timeline.csv")))
accounts = list(csv.DictReader(open("incident/accounts.csv")))
first = min(e["time"] for e in timeline if e["event"] == "login")
last = max(e["time"] for e in timeline if e["event"] == "logout")
deleted = sum(row["action"] == "deleted" for row in csv.DictReader(open("incident/retention.csv")))
digest = hashlib.sha256(open("incident/timeline.csv", "rb").read()).hexdigest()
chain = open("incident/chain.txt").read().split()[-1]
open("incident/report.md", "w").write(f"""# 203.0.113.77

The address was in from {first} to {last} with {len(accounts)} accounts and {len(timeline)} entries.
The timeline has the SHA-256 {digest}
The chain over the window ends in {chain}
By retention {deleted} log files were deleted.
""")
PY
