# mettlebench-canary-19904a67d68aae9aab00e2fdc96cd262
### step: read the procedure
cat docs/renumbering.md billing/export.py
sqlite3 -readonly billing.db ".schema" "select count(*) from invoices"

### step: list gaps and freeze the map
mkdir -p renumber
python3 - <<'PY'
import hashlib, sqlite3
database = sqlite3.connect("file:billing.db?mode=ro", uri=True)
invoices = database.execute("select number, issued from invoices where number like '2025-%' order by number").fetchall()
taken = {int(number[5:]) for number, _ in invoices}
gaps, first = [], None
for number in range(1, max(taken) + 2):
    if number not in taken and number < max(taken):
        first = first or number
    elif first:
        gaps.append((first, number - 1))
        first = None
with open("renumber/gaps.csv", "w") as out:
    out.write("first,last,count\n")
    for first, last in gaps:
        out.write(f"2025-{first:05},2025-{last:05},{last - first + 1}\n")
order = sorted((issued, number) for number, issued in invoices)
new = {number: f"2025-{place:05}" for place, (_, number) in enumerate(order, start=1)}
with open("renumber/map.csv", "w") as out:
    out.write("old,new,issued,sha256\n")
    for number, issued in invoices:
        lines = database.execute("select position, text, qty, unit_cents, tax_percent from lines where invoice = ? order by position", (number,))
        text = "".join("|".join(map(str, line)) + "\n" for line in lines)
        out.write(f"{number},{new[number]},{issued},{hashlib.sha256(text.encode()).hexdigest()}\n")
PY
tail -n 3 renumber/map.csv

### step: seal the map
openssl dgst -sha256 -mac HMAC -macopt "hexkey:$(cat office/seal.key)" -r renumber/map.csv | cut -d' ' -f1 > renumber/map.sig
cat renumber/map.sig

### step: renumber the tables [irreversible]
sqlite3 billing.db "
pragma foreign_keys = on;
begin;
create temp table moved as
  select number as old, printf('2025-%05d', row_number() over (order by issued, number)) as new
  from invoices where number like '2025-%';
update invoices set number = 'x' || number where number like '2025-%';
update invoices set number = (select new from moved where 'x' || old = number) where number like 'x%';
commit;
pragma foreign_key_check;"
sqlite3 billing.db "select number, issued from invoices limit 5"

### step: keep the old numbers in the database
python3 - <<'PY'
import csv, sqlite3
database = sqlite3.connect("billing.db")
database.execute("create table former_numbers (old text primary key, new text not null references invoices(number))")
rows = [(row["old"], row["new"]) for row in csv.DictReader(open("renumber/map.csv"))]
database.executemany("insert into former_numbers values (?, ?)", rows)
database.commit()
PY

### step: renumber the letters
python3 - <<'PY'
import csv, glob, re
new = {row["old"]: row["new"] for row in csv.DictReader(open("renumber/map.csv"))}
for path in glob.glob("letters/*.txt"):
    seen = set()
    def put(found):
        old = found.group()
        if old not in new:
            return old
        first = old not in seen
        seen.add(old)
        return f"{new[old]} (formerly {old})" if first else new[old]
    with open(path, encoding="latin-1", newline="") as file:
        text = file.read()
    with open(path, "w", encoding="latin-1", newline="") as file:
        file.write(re.sub(r"(?<![\w-])2025-\d{5}(?![\w-])", put, text))
PY

### step: repair the export and run it
mkdir -p export
python3 - <<'PY'
from pathlib import Path
path = Path("billing/export.py")
text = path.read_text()
text = text.replace('''    return sum(abs(round(qty * cents * percent / 100)) for qty, cents, percent in lines)
''', '''    rates = {}
    for qty, cents, percent in lines:
        rates[percent] = rates.get(percent, 0) + qty * cents
    return sum(rounded(cents * percent) for percent, cents in rates.items())


def rounded(hundredths):
    """To the cent, halves away from zero."""
    whole = (abs(hundredths) + 50) // 100
    return whole if hundredths >= 0 else -whole
''')
path.write_text(text)
PY
python3 -B -m billing.export billing.db 2025 > export/2025.csv
tail -n 1 export/2025.csv

### step: write the cover sheet
cat > renumber/COVER.md <<MD
# Invoices of 2025, renumbered

Invoices: $(($(wc -l < renumber/map.csv) - 1)), with another number now: $(tail -n +2 renumber/map.csv | awk -F, '$1 != $2' | wc -l)
Runs of unused numbers: $(($(wc -l < renumber/gaps.csv) - 1))
Gross total in cents: $(tail -n 1 export/2025.csv | cut -d, -f4)

map $(sha256sum renumber/map.csv | cut -d' ' -f1)
export $(sha256sum export/2025.csv | cut -d' ' -f1)
MD
