"""Builds two releases of a library, a queue of patches, and the tree that came of them."""

from __future__ import annotations

import difflib
import hashlib

from mettlebench.craft import Craft

INIT = """\
\"\"\"Plain text tables.\"\"\"

from tabula.render import render

__all__ = ["render"]
__version__ = "{}"
"""

WIDTH = '''"""How much room a text takes."""


def width(text):
    """Columns of a terminal."""
    return len(text)


def widest(cells):
    """Columns of the widest of some texts."""
    return max((width(cell) for cell in cells), default=0)
'''
WIDTH_1 = WIDTH.replace(
    '"""How much room a text takes."""\n', '"""How much room a text takes."""\n\nimport unicodedata\n'
).replace(
    "    return len(text)",
    '    return sum(2 if unicodedata.east_asian_width(each) in "WF" else 1 for each in text)',
)

RENDER = '''"""Renders rows of cells."""

from tabula.width import widest, width


def render(rows, sep=" | "):
    """The rows as lines, their cells padded to columns."""
    table = [[show(cell) for cell in row] for row in rows]
    widths = [widest(column) for column in zip(*table)]
    return "\\n".join(line(row, widths, sep) for row in table)


def line(row, widths, sep):
    """One row."""
    return sep.join(pad(cell, room) for cell, room in zip(row, widths))


def pad(cell, room):
    """A cell with blanks behind it."""
    return cell + " " * (room - width(cell))


def show(cell):
    """A cell as text."""
    return str(cell)
'''
RENDER_2 = RENDER.replace("    return str(cell)\n", '    return "" if cell is None else str(cell)\n')
RENDER_3 = RENDER_2.replace(
    '    return "\\n".join(line(row, widths, sep) for row in table)\n',
    '    if sep == "markdown":\n'
    '        return "\\n".join("| " + line(row, widths, " | ") + " |" for row in table)\n'
    '    return "\\n".join(line(row, widths, sep) for row in table)\n',
)
RENDER_4 = RENDER_2.replace(
    '''    """A cell with blanks behind it."""
    return cell + " " * (room - width(cell))
''',
    '''    """A cell with blanks behind it, or before it if it is a number."""
    blanks = " " * (room - width(cell))
    try:
        float(cell)
    except ValueError:
        return cell + blanks
    return blanks + cell
''',
)

TEXT_15 = '''"""Texts and the room they take."""


def columns(text):
    """Columns of a terminal that a text takes."""
    return len(text)


def widest(cells):
    """Columns of the widest of some texts."""
    return max(map(columns, cells), default=0)


def clip(text, room):
    """A text cut to some columns, with a mark where something is missing."""
    if columns(text) <= room:
        return text
    while text and columns(text) > room - 1:
        text = text[:-1]
    return text + "~"
'''
RENDER_15 = '''"""Renders rows of cells."""

from tabula.text import clip, columns, widest


def render(rows, sep=" | ", padding=0, limit=None):
    """The rows as lines; `padding` blanks around each cell, cells clipped to `limit` columns."""
    table = [[show(cell, limit) for cell in row] for row in rows]
    widths = [widest(column) for column in zip(*table)]
    return "\\n".join(line(row, widths, sep, padding) for row in table)


def line(row, widths, sep, padding):
    """One row."""
    return sep.join(pad(cell, room, padding) for cell, room in zip(row, widths))


def pad(cell, room, padding):
    """A cell with blanks behind and around it."""
    margin = " " * padding
    return margin + cell + " " * (room - columns(cell)) + margin


def show(cell, limit):
    """A cell as text, empty for None."""
    text = "" if cell is None else str(cell)
    return text if limit is None else clip(text, limit)
'''
CHANGES_14 = "1.4\n---\n#71 Rows may be any iterable.\n"
CHANGES_15 = """1.5
---
#83 New options `padding` and `limit`.
#88 None is rendered as an empty cell.
#90 `tabula.width` has become `tabula.text`, and `width` is called `columns`.

1.4
---
#71 Rows may be any iterable.
"""

RELEASE_14 = {
    "CHANGES": CHANGES_14,
    "__init__.py": INIT.format("1.4"),
    "render.py": RENDER,
    "width.py": WIDTH,
}
RELEASE_15 = {
    "CHANGES": CHANGES_15,
    "__init__.py": INIT.format("1.5"),
    "render.py": RENDER_15,
    "text.py": TEXT_15,
}
TREE = RELEASE_14 | {"render.py": RENDER_4, "width.py": WIDTH_1}
"""The vendored tree as it is handed out."""


def difference(before: str, after: str, name: str) -> str:
    lines = difflib.unified_diff(
        before.splitlines(keepends=True), after.splitlines(keepends=True), f"a/{name}", f"b/{name}"
    )
    return "".join(lines)


QUEUE = {
    "0001-wide.patch": "Wide characters take two columns.\n\n" + difference(WIDTH, WIDTH_1, "width.py"),
    "0002-none.patch": "None is an empty cell.\n\n" + difference(RENDER, RENDER_2, "render.py"),
    "0003-markdown.patch": "Tables for our wiki.\n\n" + difference(RENDER_2, RENDER_3, "render.py"),
}


def tree_digest(files: dict[str, str]) -> str:
    lines = [f"{hashlib.sha256(files[name].encode()).hexdigest()}  ./{name}\n" for name in sorted(files)]
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def build(craft: Craft) -> None:
    for version, files in (("1.4", RELEASE_14), ("1.5", RELEASE_15)):
        held: dict[str, str | bytes] = {f"tabula-{version}/{name}": text for name, text in files.items()}
        craft.tar(f"vendor/archives/tabula-{version}.tar.gz", held)
    for name, text in TREE.items():
        craft.write(f"vendor/tabula/{name}", text)
    for name, text in QUEUE.items():
        craft.write(f"patches/1.4/{name}", text)
    craft.write("patches/1.4/series", "".join(f"{name}\n" for name in QUEUE))
