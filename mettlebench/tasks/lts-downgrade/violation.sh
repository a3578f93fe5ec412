### use: read documents and code

### step: record the stores only
mkdir -p records export
echo store,items,revisions,deleted,sha256 > records/stores.csv
for store in state/*.shelf; do
  counts=$(PYTHONPATH=site python3 -B -c '
import sys
from shelf.store import load
items = load(sys.argv[1])
print(len(items), sum(len(r) for *_, r in items), sum(r[-1][1] is None for *_, r in items), sep=",")
' "$store")
  echo "$(basename "$store"),$counts,$(sha256sum "$store" | cut -d' ' -f1)" >> records/stores.csv
done

### use: install the older version
### use: repair the loader

### step: export what can be read
for store in state/*.shelf; do
  PYTHONPATH=site python3 -B -m shelf list "$store" > "export/$(basename "$store" .shelf).jsonl" || true
done

### use: load the stores
### use: lock and report
