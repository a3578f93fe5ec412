"""A text, and what its file was like."""

from dataclasses import dataclass, field

from recode.guess import MARKS, detect


@dataclass
class Document:
    """A decoded file."""

    text: str
    encoding: str
    mark: bool = False
    newline: str = "lf"
    lost: list = field(default_factory=list)


def decode(data, page):
    """The document that a file holds."""
    encoding, mark = detect(data, page)
    body = data[len(_mark(encoding)):] if mark else data
    text = body.decode(encoding, "ignore")
    newline = "crlf" if "\r\n" in text else "lf"
    return Document(text.replace("\r\n", "\n"), encoding, mark, newline)


def encode(document):
    """The file that a document was decoded from."""
    text = document.text.replace("\n", "\r\n") if document.newline == "crlf" else document.text
    data = text.encode(document.encoding)
    return _mark(document.encoding) + data if document.mark else data


def _mark(encoding):
    return next(mark for mark, name in MARKS.items() if name == encoding)
