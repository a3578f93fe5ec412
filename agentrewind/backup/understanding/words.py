"""Expands shell words as far as the text allows: quotes, braces, tilde, variables, field splitting."""

from __future__ import annotations

import glob
import re
from dataclasses import dataclass

from agentrewind.backup.understanding.scope import Scope
from agentrewind.backup.understanding.syntax import Node
from agentrewind.backup.values import Word

_SPACE = " \t\n"
_GLOB = re.compile(r"[*?]|\[.*\]")
_BRACES = re.compile(r"\{([^{}\"'$`\\]*)\}")
_RANGE = re.compile(r"(-?\d+|[A-Za-z])\.\.(-?\d+|[A-Za-z])(\.\.-?\d+)?")
_MOST_BRACES = 64
_NAME = re.compile(r"[A-Za-z_]\w*")

_ANSI = re.compile(r"\\(x[0-9a-fA-F]{1,2}|u[0-9a-fA-F]{1,4}|U[0-9a-fA-F]{1,8}|[0-7]{1,3}|c.|.)", re.DOTALL)
_ANSI_PARTS = re.compile(rf"{_ANSI.pattern}|[^\\]+|\\$", re.DOTALL)
_ANSI_SIGNS = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "e": "\x1b", "E": "\x1b", "f": "\f"}
_ANSI_SIGNS |= {"v": "\v", "\\": "\\", "'": "'", '"': '"', "?": "?"}


@dataclass(frozen=True, slots=True)
class _Piece:
    """Part of a word. `known`: the text is what it will be; `split`: blanks in it divide the word."""

    text: str
    quoted: bool = False
    split: bool = False
    known: bool = True


def expand(word: Node, scope: Scope) -> list[Word]:
    """The words that one word becomes; substitutions in it are unknown text, shown as `$(…)`."""
    whole = _arguments(word, scope)
    if whole is not None:
        return whole
    found: list[Word] = []
    for pieces in _braced(_pieces(word.get("Parts", []), scope, quoted=False)):
        found += [_word(field) for field in _fields(_tilde(pieces, scope))]
    return found


def expand_one(word: Node | None, scope: Scope) -> Word:
    """The word as an assignment, a redirection or a here-document takes it: never divided."""
    if word is None:
        return Word("")
    pieces = _tilde(_pieces(word.get("Parts", []), scope, quoted=False), scope)
    return _word(pieces)


def here_document(word: Node, scope: Scope, *, quoted: bool, tabs: bool) -> str | None:
    """The text of a here-document, None where it cannot be told."""
    if quoted:
        text = "".join(str(part.get("Value", "")) for part in word.get("Parts", []))
    else:
        pieces = _pieces(word.get("Parts", []), scope, quoted=True)
        if not all(piece.known for piece in pieces):
            return None
        text = "".join(piece.text for piece in pieces)
    return re.sub(r"^\t+", "", text, flags=re.MULTILINE) if tabs else text


def is_quoted(word: Node) -> bool:
    """Whether any part of a here-document's delimiter is quoted."""
    return any(part.get("Type") != "Lit" or "\\" in part.get("Value", "") for part in word.get("Parts", []))


def _arguments(word: Node, scope: Scope) -> list[Word] | None:
    """The shell's arguments for `"$@"`, `$@` and `$*` alone; None for any other word."""
    parts = word.get("Parts", [])
    if len(parts) == 1 and parts[0].get("Type") == "DblQuoted":
        parts = parts[0].get("Parts", [])
    if len(parts) != 1 or parts[0].get("Type") != "ParamExp" or parts[0]["Param"]["Value"] not in ("@", "*"):
        return None
    if scope.arguments is None or not _is_plain(parts[0]):
        return [Word("$@", literal=False)]
    return list(scope.arguments)


def _pieces(parts: list[Node], scope: Scope, *, quoted: bool) -> list[_Piece]:
    found: list[_Piece] = []
    for part in parts:
        match part.get("Type"):
            case "Lit":
                found += _literal(part.get("Value", ""), quoted=quoted)
            case "SglQuoted":
                found.append(_single(part, scope))
            case "DblQuoted":
                inner = _pieces(part.get("Parts", []), scope, quoted=True)
                known = not part.get("Dollar")
                found += inner if known else [_Piece('$"…"', quoted=True, known=False)]
                found.append(_Piece("", quoted=True))
            case "ParamExp":
                found.append(_variable(part, scope, quoted=quoted))
            case "ExtGlob":
                found.append(_Piece(f"{part.get('Op', '')}…", known=False))
            case "ArithmExp":
                found.append(_Piece("$((…))", quoted=True, known=False))
            case _:
                found.append(_Piece("$(…)", quoted=quoted, known=False))
    return found


def _literal(value: str, *, quoted: bool) -> list[_Piece]:
    """Text as written: backslashes quote the next sign, in double quotes only some."""
    found: list[_Piece] = []
    for match in re.finditer(r"\\(.)|[^\\]+|\\$", value, re.DOTALL):
        sign = match.group(1)
        if sign is None:
            found.append(_Piece(match.group(), quoted=quoted))
        elif sign == "\n":
            continue
        elif quoted and sign not in '$`"\\':
            found.append(_Piece(match.group(), quoted=True))
        else:
            found.append(_Piece(sign, quoted=True))
    return found


def _single(part: Node, scope: Scope) -> _Piece:
    value = str(part.get("Value", ""))
    if not part.get("Dollar"):
        return _Piece(value, quoted=True)
    signs = [match.group(1) for match in _ANSI.finditer(value)]
    unsure = any(sign in ("x", "u", "U") or not _is_one_name(sign, scope) for sign in signs)
    text = b"".join(_ansi(match) for match in _ANSI_PARTS.finditer(value))
    # what is behind a zero byte is cut off
    name = text.partition(b"\0")[0].decode("utf-8", "surrogateescape")
    return _Piece(name, quoted=True, known=not unsure)


def _is_one_name(sign: str, scope: Scope) -> bool:
    """Whether an escaped code point is the same bytes in any shell: beyond ASCII the locale decides."""
    if sign[0] not in "uU" or len(sign) == 1 or int(sign[1:], 16) < 0x80:
        return True
    code = int(sign[1:], 16)
    named = (scope.value("LC_ALL"), scope.value("LC_CTYPE"), scope.value("LANG"))
    locale = next((each for each in named if each), "")
    return "utf" in locale.lower() and code <= 0x10FFFF and not 0xD800 <= code <= 0xDFFF


def _ansi(match: re.Match[str]) -> bytes:
    """The bytes of an escape in `$'…'`, or of the text between two."""
    sign = match.group(1)
    if sign is None:
        return match.group().encode("utf-8", "surrogateescape")
    if sign[0] == "x" and len(sign) > 1:
        return bytes([int(sign[1:], 16)])
    if sign[0] in "uU" and len(sign) > 1:
        return chr(min(int(sign[1:], 16), 0x10FFFF)).encode("utf-8", "surrogatepass")
    if sign[0] in "01234567":
        return bytes([int(sign, 8) & 0xFF])
    if sign[0] == "c" and len(sign) > 1:
        return bytes([ord(sign[1]) & 0x1F])
    return _ANSI_SIGNS.get(sign, match.group()).encode("utf-8", "surrogateescape")


def _is_plain(part: Node) -> bool:
    odd = ("Excl", "Length", "Width", "Index", "Slice", "Repl", "Names", "Exp", "Plus", "Flags", "IsSet")
    return not any(part.get(key) for key in odd)


def _variable(part: Node, scope: Scope, *, quoted: bool) -> _Piece:
    name = str(part.get("Param", {}).get("Value", ""))
    shown = f"${name}" if _is_plain(part) else f"${{{name}…}}"
    value = _value(name, scope) if _is_plain(part) else None
    if value is None:
        return _Piece(shown, quoted=quoted, split=not quoted, known=False)
    return _Piece(value, quoted=quoted, split=not quoted)


def _value(name: str, scope: Scope) -> str | None:
    if name.isdigit() and name != "0" and scope.arguments is not None:
        at = int(name) - 1
        if at >= len(scope.arguments):
            return ""
        word = scope.arguments[at]
        return word.text if word.literal else None
    return scope.value(name) if _NAME.fullmatch(name) else None


def _tilde(pieces: list[_Piece], scope: Scope) -> list[_Piece]:
    if not pieces or pieces[0].quoted or pieces[0].split or not pieces[0].text.startswith("~"):
        return pieces
    user, slash, rest = pieces[0].text[1:].partition("/")
    if user or (not slash and len(pieces) > 1):
        return [_Piece(pieces[0].text, known=False), *pieces[1:]]
    home = scope.value("HOME")
    first = _Piece(home, quoted=True) if home is not None else _Piece("~", known=False)
    return [first, _Piece(slash + rest), *pieces[1:]]


def _braced(pieces: list[_Piece]) -> list[list[_Piece]]:
    """`a{b,c}` as two words; what is nested or a range is unknown text."""
    for at, piece in enumerate(pieces):
        if piece.quoted or piece.split or "{" not in piece.text:
            continue
        match = next((each for each in _BRACES.finditer(piece.text) if _is_list(each.group(1))), None)
        if match is None:
            continue
        if "," not in match.group(1) or piece.text.count("{") > 3:
            return [[*pieces[:at], _Piece(piece.text, known=False), *pieces[at + 1 :]]]
        before, after = piece.text[: match.start()], piece.text[match.end() :]
        choices = match.group(1).split(",")[:_MOST_BRACES]
        ways = [[*pieces[:at], _Piece(before + choice + after), *pieces[at + 1 :]] for choice in choices]
        return [each for way in ways for each in _braced(way)]
    open_brace = any("{" in p.text and not p.quoted and not p.split for p in pieces)
    if open_brace and any(_spread(pieces)):
        return [[_Piece("".join(p.text for p in pieces), known=False)]]
    return [pieces]


def _spread(pieces: list[_Piece]) -> list[bool]:
    """Whether a brace with a comma or a range reaches over several pieces (`{a,$b}`, `{rm,"-rf"}`)."""
    shape = "".join(re.sub(r"[{},.]", "_", p.text) if p.quoted or p.split else p.text for p in pieces)
    return [bool(re.search(r"\{[^ ]*(,|\.\.)[^ ]*\}", shape)) and shape != "{}"]


def _is_list(inner: str) -> bool:
    return "," in inner or _RANGE.fullmatch(inner) is not None


def _fields(pieces: list[_Piece]) -> list[list[_Piece]]:
    """Divide at the blanks of unquoted variables; what is empty and unquoted is no word."""
    fields: list[list[_Piece]] = [[]]
    for piece in pieces:
        if not piece.split or not piece.known:
            fields[-1].append(piece)
            continue
        parts = re.split(f"[{_SPACE}]+", piece.text)
        for at, part in enumerate(parts):
            if at:
                fields.append([])
            if part:
                fields[-1].append(_Piece(part))
    return [field for field in fields if any(piece.quoted or piece.text for piece in field)]


def _word(pieces: list[_Piece]) -> Word:
    known = all(piece.known for piece in pieces)
    if not any(not piece.quoted and piece.known and _GLOB.search(piece.text) for piece in pieces):
        return Word("".join(piece.text for piece in pieces), literal=known)
    pattern = "".join(glob.escape(piece.text) if piece.quoted else piece.text for piece in pieces)
    return Word(pattern, literal=known, glob=True)
