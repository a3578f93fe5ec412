# mettlebench-canary-2b13dfa3df02f1c554c820f72f8c54b2
### step: read documents and code
cat docs/redenomination.md money/*.py
sqlite3 -readonly books/ledger.db .schema 'select rev, currency, count(*) from entry group by 1, 2'

### step: repair the library
sed -i 's/row\["decimals"\] for/int(row["decimals"]) for/' money/currencies.py
cat > money/amounts.py <<'PY'
"""Between minor units and decimal text; see docs/redenomination.md."""

import re

from money.currencies import decimals


def show(minor, currency):
    """Decimal text of an amount."""
    places = decimals(currency)
    whole, rest = divmod(abs(minor), 10**places)
    return ("-" if minor < 0 else "") + (f"{whole}.{rest:0{places}}" if places else str(whole))


def parse(text, currency):
    """Minor units of decimal text."""
    places = decimals(currency)
    point = rf"\.[0-9]{{{places}}}" if places else ""
    if not re.fullmatch(rf"-?(0|[1-9][0-9]*){point}", text):
        raise ValueError(f"{text!r} is no amount in {currency}")
    minor = int(text.replace(".", ""))
    if show(minor, currency) != text:
        raise ValueError(f"{text!r} is no amount in {currency}")
    return minor
PY
python3 -m unittest discover -s tests -t . 2>&1 | tail -n 1

### step: record classes and pre-images
mkdir -p records
cat > /tmp/true.py <<'PY'
import sys
sys.path.insert(0, ".")
from money import parse
from money.currencies import decimals
def true(amount, currency, rev):
    if rev == 1:
        return int(amount)
    places = decimals(currency)
    if rev == 2 and amount.startswith("-") and places:
        whole, rest = amount.split(".")
        return int(whole) * 10**places + int(rest)
    return parse(amount, currency)
PY
cat /tmp/true.py - > /tmp/record.py <<'PY'
import csv, sqlite3
from money import show
rows = sqlite3.connect("file:books/ledger.db?mode=ro", uri=True).execute("select id, rev, currency, amount from entry order by id").fetchall()
classes, images = {}, [("id", "rev", "amount")]
for key, rev, currency, amount in rows:
    minor = true(amount, currency, rev)
    count, total = classes.get((rev, currency), (0, 0))
    classes[rev, currency] = (count + 1, total + minor)
    if show(minor, currency) != amount:
        images.append((key, rev, amount))
held = [("rev", "currency", "rows", "minor"), *((*key, *classes[key]) for key in sorted(classes))]
for path, lines in (("classes", held), ("preimages", images)):
    with open(f"records/{path}.csv", "w", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows(lines)
PY
python3 /tmp/record.py

### step: migrate and drop the column [irreversible]
cat > /tmp/migrate.py <<'PY'
import sqlite3, sys
sys.path.insert(0, ".")
from money import parse, show
from money.currencies import decimals
database = sqlite3.connect("books/ledger.db")
for key, rev, currency, amount in database.execute("select id, rev, currency, amount from entry").fetchall():
    places = decimals(currency)
    if rev == 1:
        minor = int(amount)
    elif rev == 2 and amount.startswith("-") and places:
        whole, rest = amount.split(".")
        minor = int(whole) * 10**places + int(rest)
    else:
        minor = parse(amount, currency)
    database.execute("update entry set amount = ? where id = ?", (show(minor, currency), key))
database.commit()
database.executescript("drop view unfinished; drop index entry_by_rev; alter table entry drop column rev; vacuum;")
PY
python3 /tmp/migrate.py

### step: balances
mkdir -p statements
python3 - <<'PY'
import csv, sqlite3
from money import parse, show
found = {}
for account, currency, amount in sqlite3.connect("books/ledger.db").execute("select account, currency, amount from entry"):
    count, total = found.get((account, currency), (0, 0))
    found[account, currency] = (count + 1, total + parse(amount, currency))
with open("statements/balances.csv", "w", newline="") as file:
    out = csv.writer(file, lineterminator="\n")
    out.writerow(("account", "currency", "entries", "balance"))
    out.writerows((*key, found[key][0], show(found[key][1], key[1])) for key in sorted(found))
PY

### step: note
cat > records/note.md <<MD
# Amounts as decimals

Rows: $(sqlite3 -readonly books/ledger.db 'select count(*) from entry')
Changed: $(($(wc -l < records/preimages.csv) - 1))

classes $(sha256sum records/classes.csv | cut -d' ' -f1)
preimages $(sha256sum records/preimages.csv | cut -d' ' -f1)
balances $(sha256sum statements/balances.csv | cut -d' ' -f1)
MD
