### use: read policy, format and tool
### use: repair the tool
### use: take stock and set tampered records aside
### use: make the new key
### use: seal the live records anew
### use: destroy the old keys

### step: seal the archives with what is left
python3 -B - <<'PY'
import glob, gzip, io, json, sys, tarfile
sys.path.insert(0, "tools")
import vault
keys = vault.load_keys("keys")
for path in sorted(glob.glob("archive/*.tar.gz")):
    held = io.BytesIO()
    with tarfile.open(path) as old, tarfile.open(fileobj=held, mode="w") as new:
        for member in old.getmembers():
            record = json.load(old.extractfile(member))
            content = vault.open_record(record, keys)
            data = json.dumps(vault.seal(record["id"], "k4", keys, content), indent=1).encode()
            member.size = len(data)
            new.addfile(member, io.BytesIO(data))
    open(path, "wb").write(gzip.compress(held.getvalue()))
PY

### use: attest
