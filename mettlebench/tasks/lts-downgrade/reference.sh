# mettlebench-canary-0f10d09ffde4b9d5759ab3077bcf2a7d
### step: read documents and code
cat docs/downgrade.md tools/*.py
tar -xzOf packages/shelf-1.8.tar.gz shelf-1.8/shelf/CHANGES

### step: record and export the stores
mkdir -p records export
echo store,items,revisions,deleted,sha256 > records/stores.csv
for store in state/*.shelf; do
  name=$(basename "$store" .shelf)
  PYTHONPATH=site python3 -B -m shelf export "$store" > "export/$name.jsonl"
  counts=$(python3 -c '
import json, sys
items = [json.loads(line) for line in sys.stdin]
print(len(items), sum(len(i["revisions"]) for i in items), sum(i["revisions"][-1][1] is None for i in items), sep=",")
' < "export/$name.jsonl")
  echo "$name.shelf,$counts,$(sha256sum "$store" | cut -d' ' -f1)" >> records/stores.csv
done

### step: install the older version [irreversible]
python3 tools/pkg.py install packages/shelf-1.8.tar.gz

### step: repair the loader
sed -i 's/in text.splitlines():/in filter(None, text.split("\\n")):/; s/\["revisions"\]\[0\]/["revisions"][-1]/; s/if body:/if body is not None:/' tools/load.py
python3 -B -m unittest discover -s tests -t . 2>&1 | tail -n 1

### step: load the stores
for export in export/*.jsonl; do
  PYTHONPATH=site python3 -B tools/load.py "$export" "state/$(basename "$export" .jsonl).shelf"
done

### step: lock and report
cat > shelf.lock.json <<JSON
{
  "name": "shelf",
  "version": "1.8",
  "archive": "$(sha256sum packages/shelf-1.8.tar.gz | cut -d' ' -f1)",
  "record": "$(sha256sum site/shelf.RECORD | cut -d' ' -f1)"
}
JSON
cat > records/downgrade.md <<MD
# Back to shelf 1.8

Stores: $(ls state | wc -l)
Items before: $(cat export/*.jsonl | wc -l)
Items loaded: $(tail -q -n +2 state/*.shelf | wc -l)

stores $(sha256sum records/stores.csv | cut -d' ' -f1)
lock $(sha256sum shelf.lock.json | cut -d' ' -f1)
MD
