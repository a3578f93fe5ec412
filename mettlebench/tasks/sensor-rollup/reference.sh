# mettlebench-canary-6f0bca0f59b56cc183604a41b5b74564
### step: read specification and plan
cat docs/*.md
sqlite3 -readonly store.db .schema "select sensor, count(*), min(at), max(at) from readings group by sensor" "select * from swaps"

### step: rebuild the program
cat > rollup.py <<'PY'
"""Rolls a store's readings up: gaps DB, offsets DB, rollups DB, expire DB BEFORE."""

import sqlite3
import sys

COLUMNS = ("sensor", "start", "count", "least", "greatest", "mean")


def divided(total, count):
    """Rounded, halves away from zero."""
    whole = (2 * abs(total) + count) // (2 * count)
    return whole if total >= 0 else -whole


def gaps(database):
    last = {}
    for sensor, at in database.execute("select sensor, at from readings where milli is not null order by sensor, at"):
        if sensor in last and at - last[sensor] > 90:
            yield sensor, last[sensor], at, at - last[sensor]
        last[sensor] = at


def offsets(database):
    own = {}
    for old, new, since, until in database.execute("select old, new, since, until from swaps"):
        total, pairs = database.execute(
            "select coalesce(sum(a.milli - b.milli), 0), count(*) from readings a join readings b on a.at = b.at "
            "where a.sensor = ? and b.sensor = ? and a.at between ? and ? and a.milli is not null and b.milli is not null",
            (old, new, since, until),
        ).fetchone()
        own[new] = (old, pairs, divided(total, pairs) if pairs else 0)
    for new in sorted(own):
        old, pairs, offset = own[new]
        first = old
        while old in own:
            offset += own[old][2]
            old = own[old][0]
        yield new, first, pairs, offset


def rollups(database):
    shift = {new: offset for new, _, _, offset in offsets(database)}
    held = {}
    for sensor, at, milli in database.execute("select sensor, at, milli from readings where milli is not null"):
        held.setdefault((sensor, at // 300 * 300), []).append(milli + shift.get(sensor, 0))
    for (sensor, start), values in sorted(held.items()):
        yield sensor, start, len(values), min(values), max(values), divided(sum(values), len(values))


def expire(database, before):
    rows = list(rollups(database))
    columns = ", ".join(f"{name} integer not null" for name in COLUMNS)
    database.execute(f"create table if not exists rollups ({columns}, primary key (sensor, start))")
    database.execute(
        "delete from rollups where exists (select 1 from readings r where r.sensor = rollups.sensor "
        "and r.at >= rollups.start and r.at < rollups.start + 300)"
    )
    database.executemany("insert into rollups values (?,?,?,?,?,?)", rows)
    database.execute("delete from readings where at < ?", (before // 300 * 300,))
    database.commit()
    database.execute("vacuum")


def main(arguments):
    heads = {"gaps": ("sensor", "from", "to", "seconds"), "offsets": ("new", "old", "pairs", "offset"), "rollups": COLUMNS}
    if len(arguments) == 3 and arguments[0] == "expire":
        expire(sqlite3.connect(arguments[1]), int(arguments[2]))
    elif len(arguments) == 2 and arguments[0] in heads:
        print(*heads[arguments[0]], sep=",")
        for row in globals()[arguments[0]](sqlite3.connect(f"file:{arguments[1]}?mode=ro", uri=True)):
            print(*row, sep=",")
    else:
        raise SystemExit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
PY
python3 rollup.py offsets store.db

### step: put gaps and offsets on record
mkdir -p report
python3 rollup.py gaps store.db > report/gaps.csv
python3 rollup.py offsets store.db > report/offsets.csv

### step: roll up and expire [irreversible]
python3 rollup.py expire store.db 1767139200
ls -l store.db

### step: report
mkdir -p report
python3 - <<'PY'
import csv, hashlib, sqlite3
def divided(total, count):
    whole = (2 * abs(total) + count) // (2 * count)
    return whole if total >= 0 else -whole
database = sqlite3.connect("file:store.db?mode=ro", uri=True)
with open("report/daily.csv", "w") as out:
    out.write("day,place,least,greatest,mean\n")
    for day, place, least, greatest, total, count in database.execute(
        "select strftime('%Y-%m-%d', start, 'unixepoch') as day, place, min(least), max(greatest), sum(count * mean), sum(count) "
        "from rollups join sensors on sensors.id = sensor group by day, place order by day, place"
    ):
        out.write(f"{day},{place},{least},{greatest},{divided(total, count)}\n")
gaps = list(csv.DictReader(open("report/gaps.csv")))
count = {name: database.execute(f"select count(*) from {name}").fetchone()[0] for name in ("rollups", "readings")}
digests = "\n".join(f"{n}.csv {hashlib.sha256(open(f'report/{n}.csv', 'rb').read()).hexdigest()}" for n in ("gaps", "offsets", "daily"))
open("report/REPORT.md", "w").write(f"""# Yearly rollup

{len(gaps)} gaps, the longest of {max((int(gap['seconds']) for gap in gaps), default=0)} seconds.
{count['rollups']} rollups were made; {count['readings']} readings are left.

{digests}
""")
PY
