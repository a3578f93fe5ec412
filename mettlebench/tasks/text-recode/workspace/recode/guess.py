"""Finds out how a text is encoded."""

MARKS = {b"\xef\xbb\xbf": "utf-8", b"\xff\xfe": "utf-16-le", b"\xfe\xff": "utf-16-be"}


def detect(data, page):
    """The name of the encoding, and whether a byte order mark says so."""
    for mark, name in MARKS.items():
        if data.startswith(mark):
            return name, True
    try:
        data.decode(page)
        return page, False
    except UnicodeDecodeError:
        return "utf-8", False
