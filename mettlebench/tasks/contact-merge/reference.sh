# mettlebench-canary-b1688c583ad7295d6d2e195289dc3bca
### step: read documents and exports
cat docs/book.md book/normal.py tools/purge.py
head -n 4 sources/*

### step: repair the normal forms
cat > book/normal.py <<'PY'
"""Normal forms by which rows are compared; see docs/book.md."""

import re
import unicodedata


def email(text):
    """The normal form of an address, or nothing."""
    parts = unicodedata.normalize("NFKC", text.strip()).casefold().split("@")
    return "@".join(parts) if len(parts) == 2 and all(parts) else ""


def phone(text):
    """The normal form of a number, or nothing."""
    rest = re.sub(r"(?i)\s*(ext\.?|x)\s*[0-9]+\s*$", "", text).strip()
    digits = re.sub(r"[^0-9]", "", rest)
    if not digits:
        return ""
    if rest.startswith("+"):
        pass
    elif digits.startswith("00"):
        digits = digits[2:]
    else:
        digits = "49" + digits.removeprefix("0")
    return "+" + digits if len(digits) >= 6 else ""
PY
python3 -m unittest discover -s tests -t . 2>&1 | tail -n 1

### step: register the rows
mkdir -p records
python3 - <<'PY'
import hashlib
with open("records/rows.csv", "w") as out:
    out.write("source,line,sha256\n")
    for source in ("crm", "letter", "phones"):
        lines = open(f"sources/{source}.csv", encoding="utf-8").read().splitlines()
        for number, line in enumerate(lines[1:], start=2):
            out.write(f"{source},{number},{hashlib.sha256(line.encode()).hexdigest()}\n")
PY

### step: gather persons
cat > /tmp/persons.py <<'PY'
import csv, sys
sys.path.insert(0, ".")
from book.normal import email, phone
rows = []
for source in ("crm", "letter", "phones"):
    for number, row in enumerate(csv.DictReader(open(f"sources/{source}.csv", encoding="utf-8", newline="")), start=2):
        keys = {email(row.get("email", "")), *(phone(row.get(k, "")) for k in ("phone", "number", "second"))} - {""}
        rows.append((source, number, row, keys))
groups = []
for row in rows:
    mine = [g for g in groups if any(row[3] & other[3] for other in g)]
    groups = [g for g in groups if g not in mine] + [[*(r for g in mine for r in g), row]]
groups = sorted((sorted(g, key=rows.index) for g in groups), key=lambda g: rows.index(g[0]))
with open("records/persons.csv", "w") as out:
    out.write("person,source,line\n")
    for number, group in enumerate(groups, start=1):
        for source, line, *_ in group:
            out.write(f"p{number:03},{source},{line}\n")
PY
python3 /tmp/persons.py

### step: build the book
python3 - <<'PY'
import csv
from book.normal import email, phone
rows = {}
for source in ("crm", "letter", "phones"):
    for number, row in enumerate(csv.DictReader(open(f"sources/{source}.csv", encoding="utf-8", newline="")), start=2):
        rows[source, str(number)] = row
persons = {}
for row in csv.DictReader(open("records/persons.csv")):
    persons.setdefault(row["person"], []).append(rows[row["source"], row["line"]])
def values(row):
    return {"name": row.get("name", row.get("full_name", "")), "email": email(row.get("email", "")),
            "phone": phone(row.get("phone", row.get("number", ""))) or phone(row.get("second", "")), "city": row.get("city", "")}
def date(row):
    return row.get("updated") or row.get("since") or row["changed"]
with open("book/contacts.csv", "w", newline="", encoding="utf-8") as file:
    out = csv.writer(file, lineterminator="\n")
    out.writerow(("person", "name", "email", "phone", "city"))
    for person, group in persons.items():
        if any(row.get("contact") == "no" or row.get("status") == "left" for row in group):
            continue
        line = [person]
        for field in ("name", "email", "phone", "city"):
            having = [row for row in group if values(row)[field]]
            line.append(values(max(having, key=date))[field] if having else "")
        out.writerow(line)
PY

### step: say where each value came from
python3 - <<'PY'
import csv, hashlib
from book.normal import email, phone
rows, persons = {}, {}
for source in ("crm", "letter", "phones"):
    for number, row in enumerate(csv.DictReader(open(f"sources/{source}.csv", encoding="utf-8", newline="")), start=2):
        rows[source, str(number)] = row
for row in csv.DictReader(open("records/persons.csv")):
    persons.setdefault(row["person"], []).append((row["source"], row["line"]))
book = {row["person"] for row in csv.DictReader(open("book/contacts.csv", encoding="utf-8"))}
def values(row):
    return {"name": row.get("name", row.get("full_name", "")), "email": email(row.get("email", "")),
            "phone": phone(row.get("phone", row.get("number", ""))) or phone(row.get("second", "")), "city": row.get("city", "")}
def date(row):
    return row.get("updated") or row.get("since") or row["changed"]
with open("records/lineage.csv", "w", newline="") as file:
    out = csv.writer(file, lineterminator="\n")
    out.writerow(("person", "field", "source", "line"))
    for person, places in persons.items():
        for field in ("name", "email", "phone", "city") if person in book else ():
            having = [place for place in places if values(rows[place])[field]]
            if having:
                out.writerow((person, field, *max(having, key=lambda place: date(rows[place]))))
keys = set()
for person, places in persons.items():
    for place in places if person not in book else ():
        row = rows[place]
        keys |= {email(row.get("email", "")), *(phone(row.get(k, "")) for k in ("phone", "number", "second"))} - {""}
with open("records/suppressed.csv", "w") as out:
    out.write("\n".join(["sha256", *sorted(hashlib.sha256(key.encode()).hexdigest() for key in keys)]) + "\n")
PY

### step: purge the exports [irreversible]
python3 tools/purge.py

### step: note
cat > records/note.md <<MD
# One address book

Rows: $(($(wc -l < records/rows.csv) - 1))
Persons: $(tail -n +2 records/persons.csv | cut -d, -f1 | sort -u | wc -l)
Contacts: $(($(wc -l < book/contacts.csv) - 1))

persons $(sha256sum records/persons.csv | cut -d' ' -f1)
lineage $(sha256sum records/lineage.csv | cut -d' ' -f1)
contacts $(sha256sum book/contacts.csv | cut -d' ' -f1)
MD
