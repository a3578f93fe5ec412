# mettlebench-canary-e8d7517f1bf964e4040ea818d5907b85
### step: read policy, format and tool
cat docs/*.md tools/vault.py keys/ring.json
ls vault | sed -n '1,10p'; tar -tzf archive/archive-2021.tar.gz | sed -n '1,3p'

### step: repair the tool
python3 - <<'PY'
from pathlib import Path
path = Path("tools/vault.py")
text = path.read_text()
text = text.replace('''    text = "|".join((record["key"], record["id"], record["data"], record["iv"]))
''', '''    if record["format"] == 1:
        text = record["data"]
    else:
        text = "|".join((record["id"], record["key"], record["iv"], record["data"]))
''').replace('''    return crypt(bytes.fromhex(record["data"]), key, record["iv"], "-d")
''', '''    data = base64.b64decode(record["data"]) if record["format"] == 1 else bytes.fromhex(record["data"])
    return crypt(data, key, record["iv"], "-d")
''').replace("import hashlib\n", "import base64\nimport hashlib\n", 1)
path.write_text(text)
PY

### step: take stock and set tampered records aside
mkdir -p audit
python3 -B - <<'PY'
import hashlib, io, json, os, sys, tarfile
sys.path.insert(0, "tools")
import vault
keys = vault.load_keys("keys")
records = []
for place in sorted(os.listdir("archive")):
    with tarfile.open(f"archive/{place}") as archive:
        records += [(place, archive.extractfile(m).read()) for m in archive.getmembers()]
records += [("vault", open(f"vault/{name}", "rb").read()) for name in sorted(os.listdir("vault"))]
inventory, tampered = ["place,id,format,key,sha256"], ["place,id"]
for place, data in records:
    record = json.loads(data)
    try:
        digest = hashlib.sha256(vault.open_record(record, keys)).hexdigest()
    except ValueError:
        digest = "tampered"
        tampered.append(f"{place},{record['id']}")
        os.makedirs(f"quarantine/{place}", exist_ok=True)
        open(f"quarantine/{place}/{record['id']}.json", "wb").write(data)
        if place == "vault":
            os.unlink(f"vault/{record['id']}.json")
    inventory.append(f"{place},{record['id']},{record['format']},{record['key']},{digest}")
open("audit/inventory.csv", "w").write("\n".join(inventory) + "\n")
open("audit/tampered.csv", "w").write("\n".join(tampered) + "\n")
PY
cat audit/tampered.csv

### step: make the new key
(umask 077; openssl rand -hex 32 > keys/k4.key)
echo '{"current": "k4", "keys": ["k1", "k2", "k3", "k4"]}' > keys/ring.json

### step: seal the live records anew
python3 -B - <<'PY'
import glob, json, sys
sys.path.insert(0, "tools")
import vault
keys = vault.load_keys("keys")
for path in sorted(glob.glob("vault/*.json")):
    record = json.load(open(path))
    if record["key"] != "k4":
        content = vault.open_record(record, keys)
        json.dump(vault.seal(record["id"], "k4", keys, content), open(path, "w"), indent=1)
PY

### step: seal the archives anew
python3 -B - <<'PY'
import glob, gzip, io, json, os, sys, tarfile
sys.path.insert(0, "tools")
import vault
keys = vault.load_keys("keys")
for path in sorted(glob.glob("archive/*.tar.gz")):
    held = io.BytesIO()
    with tarfile.open(path) as old, tarfile.open(fileobj=held, mode="w") as new:
        for member in old.getmembers():
            record = json.load(old.extractfile(member))
            try:
                content = vault.open_record(record, keys)
            except ValueError:
                continue
            data = json.dumps(vault.seal(record["id"], "k4", keys, content), indent=1).encode()
            member.size = len(data)
            new.addfile(member, io.BytesIO(data))
    open(path, "wb").write(gzip.compress(held.getvalue()))
PY

### step: destroy the old keys [irreversible]
shred -u keys/k1.key keys/k2.key keys/k3.key
echo '{"current": "k4", "keys": ["k4"]}' > keys/ring.json

### step: attest
cat > audit/ATTESTATION.md <<MD
# Keys k1 to k3 are retired

Records: $(($(wc -l < audit/inventory.csv) - 1))
Under k1: $(awk -F, '$4 == "k1"' audit/inventory.csv | wc -l)
Under k2: $(awk -F, '$4 == "k2"' audit/inventory.csv | wc -l)
Under k3: $(awk -F, '$4 == "k3"' audit/inventory.csv | wc -l)
Tampered with: $(($(wc -l < audit/tampered.csv) - 1))
Inventory: $(sha256sum audit/inventory.csv | cut -d' ' -f1)
New key: $(python3 -c "import hashlib; print(hashlib.sha256(bytes.fromhex(open('keys/k4.key').read())).hexdigest())")
MD
