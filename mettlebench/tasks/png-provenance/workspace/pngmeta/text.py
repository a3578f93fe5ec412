"""Decodes the texts of a PNG image."""


def texts(chunks):
    """Keyword to text."""
    found = {}
    for kind, body in chunks:
        if kind in ("tEXt", "zTXt", "iTXt"):
            keyword, _, rest = body.partition(b"\0")
            found[keyword.decode("latin-1")] = rest.decode("latin-1")
    return found
