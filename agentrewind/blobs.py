"""Payloads by the hash of their bytes, one file each."""

from __future__ import annotations

import re
from hashlib import sha256
from pathlib import Path

from agentrewind.durable import make_directory, write_file
from agentrewind.errors import DamagedError

_NAME = re.compile(r"sha256:([0-9a-f]{64})")
_CACHE_BYTES = 8 * 1024 * 1024


class Blobs:
    """The payloads of one run. A name is `sha256:` and 64 hex digits; what `get` gives has that hash."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._known: set[str] = set()
        self._cache: dict[str, bytes] = {}
        self._cached = 0

    def put(self, data: bytes) -> str:
        """The name of the bytes, which are durable on return. Raises StorageError."""
        digest = sha256(data).hexdigest()
        name = f"sha256:{digest}"
        if name not in self._known:
            # a file that is there but damaged is written again
            if self._read(digest) != data:
                make_directory(self._directory)
                write_file(self._directory / digest, data)
            self._known.add(name)
        return name

    def get(self, name: str) -> bytes:
        """The bytes of this name. Raises DamagedError where they are missing or altered."""
        if name in self._cache:
            return self._cache[name]
        match = _NAME.fullmatch(name)
        if match is None:
            raise DamagedError(f"{name!r} is no name of a blob")
        data = self._read(match[1])
        if data is None:
            raise DamagedError(f"the blob {name} is missing")
        if sha256(data).hexdigest() != match[1]:
            raise DamagedError(f"the blob {name} was altered: its hash does not match")
        self._remember(name, data)
        return data

    def _read(self, digest: str) -> bytes | None:
        try:
            return (self._directory / digest).read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise DamagedError(f"the blob sha256:{digest} cannot be read: {error}") from error

    def _remember(self, name: str, data: bytes) -> None:
        # lists of tools are asked for with every node; large payloads are not worth keeping
        if self._cached + len(data) <= _CACHE_BYTES:
            self._cache[name] = data
            self._cached += len(data)
