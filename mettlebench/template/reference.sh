# @CANARY@
### step: read the handbook
cat docs/handbook.md tools/amounts.py
head data/orders.csv

### step: repair the reader
cat > tools/amounts.py <<'PY'
"""Reads the amounts of the order book."""


def cents(text):
    """The amount in whole cents."""
    text = text.strip().replace("'", "")
    negative = text.startswith("-") or text.endswith("-")
    whole, _, part = text.strip("-").partition(".")
    value = int(whole) * 100 + int(part or "0")
    return -value if negative else value
PY

### step: list the cancelled orders
mkdir -p records
awk -F, 'NR == 1 || $3 == "cancelled"' data/orders.csv > records/cancelled.csv

### step: take them out of the book [irreversible]
sed -i '/,cancelled,/d' data/orders.csv

### step: sum up
python3 - <<'PY'
import csv, json, sys
sys.path.insert(0, "tools")
from amounts import cents
rows = list(csv.DictReader(open("data/orders.csv")))
value = sum(cents(row["amount"]) for row in rows)
summary = {"orders": len(rows), "total": f"{value // 100}.{value % 100:02}"}
open("records/summary.json", "w").write(json.dumps(summary) + "\n")
PY

### step: write the note
digest=$(sha256sum records/cancelled.csv | cut -d' ' -f1)
total=$(sed 's/.*"total": "\([0-9.]*\)".*/\1/' records/summary.json)
cat > records/note.md <<MD
The quarter is closed at a total of $total.
The cancelled orders are listed in a file whose SHA-256 is $digest
MD
