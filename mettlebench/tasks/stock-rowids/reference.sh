# mettlebench-canary-ee9c21225d7cd3dd3e2f54230b6c6c13
### step: read documents and schema
cat docs/*.md reports/onhand-2025-03-31.txt
sqlite3 -readonly stock/stock.db .schema 'pragma page_count' 'pragma freelist_count'

### step: record tables, numbers and orphans
mkdir -p records
run() { sqlite3 -readonly stock/stock.db "$@"; }
{
  echo table,rows,numbering
  for table in article movement supplier; do
    numbering=implicit
    if [ "$(run "select count(*) from pragma_table_info('$table') where pk = 1 and lower(type) = 'integer'")" = 1 ]; then numbering=declared; fi
    echo "$table,$(run "select count(*) from $table"),$numbering"
  done
} > records/tables.csv
{
  echo table,number,key
  run -separator , "select 'article', rowid, sku from article order by rowid; select 'supplier', rowid, code from supplier order by rowid"
} > records/numbers.csv
{
  echo id,article,supplier,qty,day
  run -separator , "select * from movement where article not in (select rowid from article) order by id"
} > records/orphans.csv
echo "$(run 'pragma page_count')" > records/pages.tmp

### step: declare the numbers
sqlite3 stock/stock.db <<'SQL'
begin;
alter table article rename to old_article;
alter table supplier rename to old_supplier;
alter table movement rename to old_movement;
create table article (id integer primary key, sku text not null unique, name text not null, unit text not null, bin text not null);
create table supplier (id integer primary key, code text not null unique, name text not null);
create table movement (
  id integer primary key, article integer not null references article (id), supplier integer references supplier (id),
  qty integer not null, day text not null
);
insert into article select rowid, sku, name, unit, bin from old_article;
insert into supplier select rowid, code, name from old_supplier;
insert into movement select id, article, supplier, qty, day from old_movement where article in (select id from article);
drop table old_movement;
drop table old_article;
drop table old_supplier;
commit;
SQL

### step: name articles on labels
python3 - <<'PY'
import json, sqlite3
from pathlib import Path
skus = dict(sqlite3.connect("file:stock/stock.db?mode=ro", uri=True).execute("select id, sku from article"))
for path in Path("labels").glob("*.json"):
    label = json.loads(path.read_text())
    path.write_text(json.dumps({**label, "sku": skus.get(label["article"])}, indent=1) + "\n")
PY

### step: rebuild the stock list
mkdir -p tools
cat > tools/onhand.py <<'PY'
"""Prints what was on hand at the end of a day; see docs/onhand.md."""

import sqlite3
import sys

QUERY = """
select bin, sku, name, sum(qty), unit from movement join article on article.id = movement.article
where day <= ? group by article.id having sum(qty) <> 0 order by bin, sku
"""


def main(database, day):
    rows = sqlite3.connect(f"file:{database}?mode=ro", uri=True).execute(QUERY, (day,)).fetchall()
    print(f"ON HAND {day}")
    for shelf, sku, name, qty, unit in rows:
        short = name if len(name) <= 20 else name[:19] + "~"
        shown = f"{-qty}-" if qty < 0 else str(qty)
        print(f"{shelf:6} {sku:8} {short:20} {shown:>7} {unit}".rstrip())
    print(f"TOTAL {len(rows)}, {sum(row[3] < 0 for row in rows)} short")


main(*sys.argv[1:])
PY
for day in 2025-03-31 2025-06-30 2025-09-30; do python3 tools/onhand.py stock/stock.db $day | diff - reports/onhand-$day.txt; done

### step: compact [irreversible]
sqlite3 stock/stock.db 'pragma journal_mode = delete' vacuum

### step: note
cat > records/note.md <<MD
# Declared numbers

Pages before: $(cat records/pages.tmp)
Pages after: $(sqlite3 -readonly stock/stock.db 'pragma page_count')
Orphans: $(($(wc -l < records/orphans.csv) - 1))
Labels without an article: $(grep -l '"sku": null' labels/*.json | wc -l)

numbers $(sha256sum records/numbers.csv | cut -d' ' -f1)
orphans $(sha256sum records/orphans.csv | cut -d' ' -f1)
MD
rm records/pages.tmp
