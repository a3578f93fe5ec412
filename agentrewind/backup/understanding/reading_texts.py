"""Says whether git, sed, awk, find, curl, tar and the like change nothing, by reading all their words."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from agentrewind.backup.understanding.reading_git import git_reads

Texts = Sequence[str]

_ADDRESS = r"(?:\d+(?:~\d+)?|\$|/(?:[^/\\\n]|\\.)*/I?)"
_SED = re.compile(
    rf"""
    \s*(?:{_ADDRESS}(?:\s*,\s*(?:{_ADDRESS}|[+~]\d+))?)?\s*!?\s*
    (?:[pdqQ=nNhHgGxPDlFz]\d*
     | s(?P<d>[/|,\#@:!%])(?:(?!(?P=d))[^\\\n]|\\.)*(?P=d)(?:(?!(?P=d))[^\\\n]|\\.)*(?P=d)[gpiIM0-9]*)
    \s*(?:[;\n]|$)
    """,
    re.VERBOSE,
)


def _sed(texts: Texts) -> bool:
    scripts: list[str] = []
    rest = list(texts)
    given = False
    while rest:
        text = rest.pop(0)
        if (text in ("-e", "--expression") and rest) or (re.fullmatch(r"-[nErsuz]*e", text) and rest):
            scripts.append(rest.pop(0))
            given = True
        elif re.fullmatch(r"-[nErsuz]+|--(quiet|silent|regexp-extended|posix|separate|null-data)", text):
            continue
        elif text.startswith("-") and text != "-":
            return False
        elif not given:
            scripts.append(text)
            given = True
    return bool(scripts) and all(_sed_script_reads(script) for script in scripts)


def _sed_script_reads(script: str) -> bool:
    position = 0
    while position < len(script):
        match = _SED.match(script, position)
        if match is None or match.end() == position:
            return False
        position = match.end()
    return True


_AWK_RUNS = re.compile(r"system|getline|@|(?<!\|)\|(?!\|)|\bprintf?\b.*>|>>|/inet|fflush|close", re.DOTALL)


def _awk(texts: Texts) -> bool:
    rest = list(texts)
    while rest and rest[0].startswith("-") and rest[0] != "-":
        text = rest.pop(0)
        if text in ("-F", "-v", "--field-separator", "--assign"):
            rest[:1] = []
        elif text == "--":
            break
        elif not re.match(r"-F.|-v.|--field-separator=|--assign=", text):
            return False
    return bool(rest) and not _AWK_RUNS.search(rest[0])


_FIND_CHANGES = re.compile(r"-(delete|exec(dir)?|ok(dir)?|fprint(0|f)?|fls)")


def _find(texts: Texts) -> bool:
    """Find without actions that write; what `-exec` runs is judged as a command of its own."""
    return not any(_FIND_CHANGES.fullmatch(text) and not text.startswith("-exec") for text in texts)


_CURL_FLAGS = re.compile(
    r"-[sSfLkiIvgN46]+|--(silent|show-error|fail|location|insecure|include|head|verbose|globoff|compressed|"
    r"no-buffer|http1\.1|http2|ipv4|ipv6|no-progress-meter|progress-bar|fail-with-body|get)"
)
_CURL_VALUES = re.compile(
    r"-[sSfLkiIvgN46]*[HAumerbw]|--(header|user-agent|user|max-time|connect-timeout|referer|retry|retry-delay|"
    r"range|cookie|write-out|proxy|cacert|resolve|retry-max-time)"
)


def _curl(texts: Texts) -> bool:
    """Requests by GET or HEAD whose answer goes nowhere but to standard output."""
    rest = list(texts)
    while rest:
        text = rest.pop(0)
        name, equals, value = text.partition("=")
        if _CURL_FLAGS.fullmatch(text):
            continue
        if (text in ("-X", "--request") and rest[:1] in (["GET"], ["HEAD"])) or (
            re.fullmatch(r"-[sSfLk]*o", text) and rest[:1] == ["/dev/null"]
        ):
            rest.pop(0)
        elif name == "--url":
            rest.insert(0, value) if equals else None
        elif _CURL_VALUES.fullmatch(name):
            given = value if equals else (rest.pop(0) if rest else "")
            if "%output" in given or given.startswith("@"):
                return False
        elif text.startswith("-") or not re.match(r"https?://|[\w.-]+(:\d+)?(/|$)", text):
            return False
    return bool(texts)


def _wget(texts: Texts) -> bool:
    spider = "--spider" in texts
    rest = list(texts)
    to_stdout = False
    while rest:
        text = rest.pop(0)
        if text in ("-qO-", "-O-", "-nv", "-q", "-S", "--spider", "--quiet", "--server-response"):
            to_stdout = to_stdout or text.endswith("O-")
        elif text in ("-O", "-qO") and rest[:1] in (["-"], ["/dev/null"]):
            rest.pop(0)
            to_stdout = True
        elif text in ("-T", "--timeout", "-t", "--tries") and rest:
            rest.pop(0)
        elif text.startswith("-") and not re.fullmatch(r"--(timeout|tries)=\d+", text):
            return False
    return spider or to_stdout


def _tar(texts: Texts) -> bool:
    """Only the listing of an archive here."""
    if not texts or not re.fullmatch(r"-?[tvzjJfa]+|--list", texts[0]):
        return False
    if "t" not in texts[0] and texts[0] != "--list":
        return False
    allowed = re.compile(r"-[vzjJfa]+|--(verbose|gzip|file(=.*)?|list)")
    rest = texts[1:]
    return all((allowed.fullmatch(text) or not text.startswith("-")) and ":" not in text for text in rest)


def _less(texts: Texts) -> bool:
    return not any(re.match(r"\+|-\w*[oOkTPt]|--(log|lesskey|tag|LOG)", text) for text in texts)


def _python(texts: Texts) -> bool:
    if list(texts[:2]) == ["-m", "json.tool"]:
        return len(texts) <= 3 and not any(text.startswith("-") for text in texts[2:])
    if list(texts[:2]) != ["-m", "pip"]:
        return False
    return (
        len(texts) > 2
        and texts[2] in ("list", "show", "freeze", "check")
        and not any(text.startswith(("--lo", "-o")) for text in texts)
    )


_DPKG_READS = re.compile(
    r"-[lLsSpCVcI]|--(list|listfiles|status|search|print-avail|audit|verify|contents|info|get-selections|"
    r"print-architecture|print-foreign-architectures|compare-versions|version|help)"
)


def _dpkg(texts: Texts) -> bool:
    reading = bool(texts) and bool(_DPKG_READS.fullmatch(texts[0]))
    return reading and not any(text.startswith("-") for text in texts[1:])


def _rpm(texts: Texts) -> bool:
    return (
        bool(texts)
        and bool(re.match(r"-q[a-z]*$|--query$", texts[0]))
        and not any(
            re.match(r"--(import|initdb|rebuilddb|pipe|define|eval|load|rcfile|root|E)", text)
            for text in texts
        )
    )


def _ip(texts: Texts) -> bool:
    """`ip a`, `ip -br link`: what is shown when no word says otherwise."""
    words = [text for text in texts if not text.startswith("-")]
    options = [text for text in texts if text.startswith("-")]
    if not all(re.fullmatch(r"-(4|6|br|brief|c|color|j|json|o|oneline|s|d|p)", text) for text in options):
        return False
    if len(words) <= 1:
        return True
    return words[1] in ("show", "list", "ls", "get") and words[0] not in ("netns", "vrf", "monitor")


def _date(texts: Texts) -> bool:
    """Shows a moment; an operand without a plus sign would set the clock."""
    rest = list(texts)
    while rest:
        text = rest.pop(0)
        if text in ("-d", "--date", "-r", "--reference", "-f", "--file"):
            rest[:1] = []
        elif not re.fullmatch(
            r"\+.*|-[uRI]+|--(utc|universal|rfc-3339=.*|iso-8601(=.*)?|date=.*|reference=.*)", text
        ):
            return False
    return True


def _service(texts: Texts) -> bool:
    return list(texts) == ["--status-all"] or (len(texts) == 2 and texts[1] == "status")


READERS: dict[str, Callable[[Texts], bool]] = {
    "sed": _sed,
    "awk": _awk,
    "gawk": _awk,
    "mawk": _awk,
    "find": _find,
    "git": git_reads,
    "curl": _curl,
    "wget": _wget,
    "tar": _tar,
    "less": _less,
    "more": _less,
    "python": _python,
    "python3": _python,
    "dpkg": _dpkg,
    "rpm": _rpm,
    "ip": _ip,
    "service": _service,
    "date": _date,
}
