# mettlebench-canary-178c5fd256e5797b93c45dd269b5c0bd
### step: read plan and code
cat docs/plan.md docs/addresses.md crm/addresses.py crm/labels.py
sqlite3 -readonly crm.db .schema

### step: repair the parser
python3 - <<'PY'
from pathlib import Path
path = Path("crm/addresses.py")
text = path.read_text()
text = text.replace('''    parts = [" ".join(part.split()) for part in text.split(",")]
''', '''    if text.count('"') % 2:
        raise ValueError("a quote is not closed")
    pieces = re.findall(r'(?:"[^"]*"|[^",])+|(?<=,)(?=,|$)', text)
    parts = [" ".join(part.replace('"', "").split()) for part in pieces]
''').replace('''    street = re.fullmatch(r"(.+) (\\d[\\w/-]*)", first)
    if not street:
''', '''    box = re.fullmatch(r"(?:postfach|po box|case postale) (\\d+)", first, re.IGNORECASE)
    street = None if box else re.fullmatch(r"(.+) (\\d[\\w/-]*)", first)
    if not street and not box:
''').replace('"street": street.group(1)', '"street": street.group(1) if street else ""')
text = text.replace('"number": street.group(2)', '"number": street.group(2) if street else ""')
text = text.replace('"box": ""', '"box": box.group(1) if box else ""')
path.write_text(text)
PY

### step: take down what the column holds
mkdir -p migration
python3 -B - <<'PY'
import csv, hashlib, sqlite3
from crm.addresses import parse
PARTS = ("street", "number", "box", "addition", "postcode", "city", "country")
rows = sqlite3.connect("file:crm.db?mode=ro", uri=True).execute("select id, address from customers order by id").fetchall()
with open("migration/parsed.csv", "w", newline="") as file, open("migration/unparsed.csv", "w", newline="") as other:
    out, lost = csv.writer(file, lineterminator="\n"), csv.writer(other, lineterminator="\n")
    out.writerow(("customer", "status", *PARTS, "sha256"))
    lost.writerow(("customer", "text"))
    for customer, text in rows:
        digest = hashlib.sha256(text.encode()).hexdigest()
        try:
            parts = parse(text)
            out.writerow((customer, "ok", *(parts[name] for name in PARTS), digest))
        except ValueError:
            out.writerow((customer, "unparsed", *("" for _ in PARTS), digest))
            lost.writerow((customer, text))
PY
wc -l migration/*

### step: fill the new tables
python3 - <<'PY'
import csv, sqlite3
PARTS = ("street", "number", "box", "addition", "postcode", "city", "country")
database = sqlite3.connect("crm.db")
columns = ", ".join(f"{name} text not null" for name in PARTS)
database.execute(f"create table addresses (customer_id integer primary key references customers(id), {columns})")
database.execute("create table address_origins (customer_id integer primary key references customers(id), sha256 text not null)")
for row in csv.DictReader(open("migration/parsed.csv")):
    if row["status"] == "ok":
        database.execute("insert into addresses values (?,?,?,?,?,?,?,?)", (int(row["customer"]), *(row[n] for n in PARTS)))
    database.execute("insert into address_origins values (?,?)", (int(row["customer"]), row["sha256"]))
database.commit()
PY

### step: drop the column [irreversible]
sqlite3 crm.db "drop view labels; drop trigger address_changes; drop index customers_by_address;
  alter table customers drop column address;"
sqlite3 crm.db "vacuum;"

### step: rebuild view and trigger
form() {
  printf "case when %s.box = '' then %s.street || ' ' || %s.number else 'Postfach ' || %s.box end" $1 $1 $1 $1
  printf " || case when %s.addition = '' then '' else ', ' || %s.addition end" $1 $1
  printf " || ', ' || %s.postcode || ' ' || %s.city || ', ' || %s.country" $1 $1 $1
}
sqlite3 crm.db "create view labels as select a.customer_id, c.name, $(form a) as address
  from addresses a join customers c on c.id = a.customer_id order by a.customer_id;
  create trigger address_changes after update on addresses begin
    insert into address_history (customer_id, before, after) values (old.customer_id, $(form old), $(form new)); end;"
sqlite3 crm.db "vacuum;"

### step: print labels
cat > crm/labels.py <<'PY'
"""Prints address labels: python3 -m crm.labels DATABASE"""

import sqlite3
import sys


def main(path):
    database = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    for customer, name, address in database.execute("select customer_id, name, address from labels"):
        print(f"{customer:04} {name}")
        for line in address.split(", "):
            print(f"     {line}")


if __name__ == "__main__":
    main(sys.argv[1])
PY
python3 -B -m crm.labels crm.db > migration/labels.txt

### step: write the note
cat > migration/NOTE.md <<MD
# Addresses in parts

$(sqlite3 crm.db "select count(*) from customers") customers; $(sqlite3 crm.db "select count(*) from addresses") addresses
were taken apart, $(python3 -c "import csv; print(len(list(csv.DictReader(open('migration/unparsed.csv')))))") were not.

parsed.csv $(sha256sum migration/parsed.csv | cut -d' ' -f1)
labels.txt $(sha256sum migration/labels.txt | cut -d' ' -f1)
MD
