"""What a Ray worker does for one try: unpacks its order, runs the cell's process, sends back what it left.

No file system is shared: tasks and endpoints travel with the order, the cell's folder comes back as bytes.
"""

from __future__ import annotations

import io
import shutil
import tarfile
import tempfile
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from agentrewind.errors import DamagedError
from runner.executors.local import start_cell
from runner.order import ORDER_FILE, Order, load_order, save_order
from runner.result_form import RESULT_FILE

_ORDER, _TASKS, _ENDPOINT = "order", "tasks", "endpoint"


def pack_order(order: Order, folder: Path) -> bytes:
    """An order with the task and the endpoint that it needs."""
    parts = [(folder / ORDER_FILE, f"{_ORDER}/{ORDER_FILE}")]
    parts.append((order.tasks / order.cell.task, f"{_TASKS}/{order.cell.task}"))
    if order.endpoint is not None:
        parts.append((order.endpoint, _ENDPOINT))
    return _packed(parts)


def run_packed(packed: bytes, place: str) -> bytes:
    """Run the try below the temporary directory `place`; returns the cell's folder for `unpack_folder`."""
    root = Path(tempfile.gettempdir()) / place
    shutil.rmtree(root, ignore_errors=True)  # of a try on this machine whose worker was killed
    root.mkdir(parents=True, mode=0o700)
    try:
        _unpack(packed, root)
        order = load_order(root / _ORDER)
        endpoint = root / _ENDPOINT if order.endpoint is not None else None
        folder = root / "cell"
        folder.mkdir()
        save_order(replace(order, tasks=root / _TASKS, endpoint=endpoint), folder)
        process = start_cell(folder, None)
        try:
            process.wait()
        finally:
            process.kill()
        (folder / ORDER_FILE).unlink()
        return _packed([(folder, ".")])
    finally:
        shutil.rmtree(root, ignore_errors=True)
        for parent in root.parents[: len(Path(place).parts) - 1]:
            with suppress(OSError):  # another cell of the campaign is at work beside it
                parent.rmdir()


def unpack_folder(packed: bytes, folder: Path) -> None:
    """Put what a try has left into the cell's folder, the result last."""
    incoming = folder / ".incoming"
    shutil.rmtree(incoming, ignore_errors=True)
    _unpack(packed, incoming)
    found = sorted(incoming.iterdir(), key=lambda path: path.name == RESULT_FILE)
    for path in found:
        target = folder / path.name
        if target.is_dir():
            shutil.rmtree(target)
        path.rename(target)
    incoming.rmdir()


def _packed(parts: list[tuple[Path, str]]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz", compresslevel=1) as archive:
        for path, name in parts:
            archive.add(path, name, filter=lambda info: None if "__pycache__" in info.name else info)
    return buffer.getvalue()


def _unpack(packed: bytes, target: Path) -> None:
    try:
        with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
            archive.extractall(target, filter="data")
    except tarfile.TarError as error:
        raise DamagedError(f"what a worker sent back cannot be read: {error}") from error
