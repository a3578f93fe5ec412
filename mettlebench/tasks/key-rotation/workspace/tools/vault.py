"""Opens and seals the records of the vault. See docs/vault-format.md."""

import hashlib
import hmac
import json
import secrets
import subprocess
from pathlib import Path


def load_keys(folder):
    """Name to hexadecimal digits, for the keys of the ring."""
    ring = json.loads((Path(folder) / "ring.json").read_text())
    return {name: (Path(folder) / f"{name}.key").read_text().strip() for name in ring["keys"]}


def crypt(data, key, iv, *options):
    command = ["openssl", "enc", "-aes-256-ctr", "-K", key, "-iv", iv, *options]
    return subprocess.run(command, input=data, capture_output=True, check=True).stdout


def mac(record, key):
    """The seal that a record should have."""
    text = "|".join((record["key"], record["id"], record["data"], record["iv"]))
    return hmac.new(bytes.fromhex(key), text.encode(), hashlib.sha256).hexdigest()


def open_record(record, keys):
    """The content; ValueError if it was tampered with or its key is unknown."""
    key = keys.get(record["key"])
    if key is None:
        raise ValueError("unknown key " + record["key"])
    if not hmac.compare_digest(record["mac"], mac(record, key)):
        raise ValueError("tampered: " + record["id"])
    return crypt(bytes.fromhex(record["data"]), key, record["iv"], "-d")


def seal(record_id, key_name, keys, content):
    """A new record of format 2."""
    record = {"id": record_id, "format": 2, "key": key_name, "iv": secrets.token_hex(16)}
    record["data"] = crypt(content, keys[key_name], record["iv"]).hex()
    record["mac"] = mac(record, keys[key_name])
    return record
