# mettlebench-canary-fa947d3895f0d524258ea6d6f60a63b7
### step: read what there is
cat docs/runbook.md docs/wal-format.md tools/waltool.py
ls -l till

### step: repair the frame reader
python3 - <<'PY'
from pathlib import Path
tool = Path("tools/waltool.py")
text = tool.read_text()
text = text.replace(
    'def checksum(data, start=(0, 0)):',
    'def checksum(data, start=(0, 0), order=">"):',
).replace('struct.iter_unpack(">II", data)', 'struct.iter_unpack(order + "II", data)')
text = text.replace(
    "    running = checksum(log[:24])\n",
    '    order = "<" if magic == MAGIC[0] else ">"\n    running = checksum(log[:24], order=order)\n',
).replace(
    "running = checksum(data, checksum(log[place : place + 8], running))",
    "running = checksum(data, checksum(log[place : place + 8], running, order), order)",
)
text = text.replace(
    "        frame.committed = True\n        frames.append(frame)\n",
    "        frames.append(frame)\n        if size:\n            for each in frames:\n                each.committed = True\n",
)
tool.write_text(text)
PY
python3 tools/waltool.py frames till/till.db-wal | tail -n 3

### step: register what came from the till
mkdir -p evidence report
(cd till && sha256sum till.db till.db-wal) > evidence/originals.sha256
python3 tools/waltool.py frames till/till.db-wal > evidence/frames.csv

### step: take sales and corrections out of the log
python3 -B - <<'PY'
import csv, sqlite3, sys
sys.path.insert(0, "tools")
import waltool
database = open("till/till.db", "rb").read()
frames = waltool.read_frames(open("till/till.db-wal", "rb").read())

def sales(last):
    connection = sqlite3.connect(":memory:")
    connection.deserialize(waltool.image(database, frames, last))
    return {row[0]: row for row in connection.execute("select * from sales order by id")}

old = now = sales(0)
corrections = []
for frame in frames:
    if frame.size:
        then, now = now, sales(frame.number)
        corrections += [(frame.number, key, then[key][4], row[4]) for key, row in now.items()
                        if key in then and then[key][4] != row[4]]
with open("evidence/corrections.csv", "w", newline="") as file:
    csv.writer(file, lineterminator="\n").writerows([("frame", "id", "before", "after"), *corrections])
with open("evidence/sales.csv", "w", newline="") as file:
    out = csv.writer(file, lineterminator="\n")
    out.writerow(("id", "receipt", "sku", "qty", "cents", "sold_at"))
    out.writerows(row for key, row in now.items() if key not in old)
PY

### step: bring the database back into service [irreversible]
sqlite3 till/till.db "pragma journal_mode=delete; pragma integrity_check; select count(*) from sales;"
rm -f till/till.db-wal till/till.db-shm
ls till

### step: report
mkdir -p report
sqlite3 -csv -header till/till.db \
  "select substr(sold_at, 1, 10) as day, count(*) as sales, sum(cents) as cents from sales group by day order by day" \
  | tr -d '\r' > report/daily.csv
frames=$(($(wc -l < evidence/frames.csv) - 1))
open=$(awk -F, '$3 == "0"' evidence/frames.csv | wc -l)
cat > report/handover.md <<MD
# Till 4

The log had $frames valid frames; $open of them belong to work that was never committed.
The log as it came: $(awk '$2 == "till.db-wal" {print $1}' evidence/originals.sha256)
The ledger of frames: $(sha256sum evidence/frames.csv | cut -d' ' -f1)
Amounts were corrected $(($(wc -l < evidence/corrections.csv) - 1)) times.
All sales together come to $(sqlite3 till/till.db "select sum(cents) from sales") cents.
MD
