"""Keeps credentials out of the log: of parameters a list of harmless names, of texts what looks secret."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from functools import partial
from urllib.parse import quote

from agentrewind.errors import UsageError
from agentrewind.jsonform import to_json
from agentrewind.records import JsonObject

REDACTED = "[redacted]"

HARMLESS = frozenset(
    {
        "audio",
        "drop_params",
        "enable_thinking",
        "frequency_penalty",
        "function_call",
        "functions",
        "logit_bias",
        "logprobs",
        "max_completion_tokens",
        "max_output_tokens",
        "max_retries",
        "max_tokens",
        "min_p",
        "modalities",
        "n",
        "num_retries",
        "parallel_tool_calls",
        "prediction",
        "presence_penalty",
        "reasoning",
        "reasoning_effort",
        "repetition_penalty",
        "request_timeout",
        "response_format",
        "seed",
        "service_tier",
        "stop",
        "stop_sequences",
        "stream",
        "stream_options",
        "temperature",
        "thinking",
        "timeout",
        "tool_choice",
        "top_k",
        "top_logprobs",
        "top_p",
        "truncation",
        "verbosity",
    }
)
"""Parameters that say how to sample or how to format; everything else might authenticate somebody."""

_SHORTEST_SECRET = 6
_VARIABLE = re.compile(r"(?:[\w.-]*[:\s]\s*)?\$(?:\w+|\{\w+\}?|\(.*)@?")
_WORDS = r"passw(?:or)?d|passwort|passphrase|pgpass|_pwd|_pw(?![a-z])|token(?!s)|secret|api[_-]?key"
_VALUE = r"""(?:\\"[^"\\\n]*\\"|"[^"]{0,2000}"|'[^']{0,2000}'|\\[^"\n]|[^\s"'&;|)\\])+"""
_ACCOUNT = r"(?<![A-Za-z0-9_-])(?:--(?:proxy-)?user(?:name)?(?:=|\s+)|-[sSkLfivgG]{0,6}[uU]\s*)"
_SHAPES = (
    # user:password@ in a URL
    (re.compile(r"(://)[^\s/?#'\"<>]+@"), rf"\1{REDACTED}@"),
    # headers and the like, in any spelling of key and value
    (
        re.compile(
            r"((?:proxy-)?authorization[\"']?\s*[:=]\s*[\"']?)(?!\[redacted\])(?:[A-Za-z]+\s+)?"
            r"(?:\[redacted\]|[^\s\"',;}\]]+)",
            re.IGNORECASE,
        ),
        rf"\1{REDACTED}",
    ),
    (
        re.compile(
            r"((?:\b|_)(?:api|access|secret|private)[-_ ]?(?:key|token)[\"']?\s*[:=]\s*[\"']?)"
            r"(?!\[redacted\])[^\s\"',;&}\]]+",
            re.IGNORECASE,
        ),
        rf"\1{REDACTED}",
    ),
    (re.compile(r"(\bbearer\s+)(?!\[redacted\])[A-Za-z0-9._~+/=-]{6,}", re.IGNORECASE), rf"\1{REDACTED}"),
    # variables and parameters, options, accounts, and programs that take a password behind a letter
    (
        re.compile(
            rf"((?<![A-Za-z0-9_])[A-Za-z0-9_-]{{0,64}}(?:{_WORDS})[A-Za-z0-9_]{{0,64}}=)(?!\[redacted\]){_VALUE}",
            re.IGNORECASE,
        ),
        rf"\1{REDACTED}",
    ),
    (
        re.compile(
            rf"((?<![A-Za-z0-9_-])--?(?:[a-z0-9]{{1,32}}-){{0,4}}(?:{_WORDS}|pass)\s+)(?!\[redacted\]){_VALUE}",
            re.IGNORECASE,
        ),
        rf"\1{REDACTED}",
    ),
    (re.compile(rf"({_ACCOUNT}\\?\"[^\s\"':%/]{{1,128}}[:%])(?!\[redacted\])[^\"\\\n]+"), rf"\1{REDACTED}"),
    (re.compile(rf"({_ACCOUNT}'[^\s\"':%/]{{1,128}}[:%])(?!\[redacted\])[^'\n]+"), rf"\1{REDACTED}"),
    (
        re.compile(rf"({_ACCOUNT}(?!\d+:)[^\s:%/]{{1,128}}[:%])(?!\[redacted\]|//|\\?[\"']\s){_VALUE}"),
        rf"\1{REDACTED}",
    ),
    (
        re.compile(
            rf"(\b(?:mysql\w{{0,16}}|mariadb(?:-\w{{1,16}})?)\b[^\n]{{0,600}}?\s-p)(?!\[redacted\]){_VALUE}"
        ),
        rf"\1{REDACTED}",
    ),
    (
        re.compile(
            r"(\b(?:sshpass|(?:docker|podman|registry|az)\s+login|redis-cli|ldap\w{1,16})\b[^\n]{0,600}?\s-[paw]\s*)"
            rf"(?!\[redacted\]){_VALUE}"
        ),
        rf"\1{REDACTED}",
    ),
    (re.compile(r"(\bcookie[\"']?\s*:(?!\s*\[redacted\])\s*)[^\"'\n]+", re.IGNORECASE), rf"\1{REDACTED}"),
    # keys of JSON
    (
        re.compile(
            rf"(\"[A-Za-z0-9_-]{{0,64}}(?:{_WORDS})[A-Za-z0-9_-]{{0,64}}\\?\"\s*:\s*\\?\")(?!\[redacted\])"
            r"(?:\\[^\"]|[^\"\\\n])+",
            re.IGNORECASE,
        ),
        rf"\1{REDACTED}",
    ),
    (re.compile(r"([?&](?:key|token|api-key|sig|signature)=)(?!\[redacted\])[^\s&#\"']+"), rf"\1{REDACTED}"),
    # the shapes of well-known providers' keys
    (re.compile(r"\b(?:sk|pk|rk)-[A-Za-z0-9_-]{8,}[*A-Za-z0-9_-]*"), REDACTED),
    (re.compile(r"\b(?:gh[pousr]_|github_pat_|hf_|gsk_|xai-|xox[abprs]-|glpat-)[A-Za-z0-9_-]{8,}"), REDACTED),
    (re.compile(r"\b(?:AKIA|ASIA)[A-Z0-9]{12,}|\bAIza[A-Za-z0-9_-]{20,}"), REDACTED),
    (re.compile(r"(?<![A-Za-z0-9_-])eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{4,}\.[A-Za-z0-9_-]*"), REDACTED),
)


def drop_credentials(parameters: Mapping[str, object]) -> tuple[JsonObject, tuple[str, ...]]:
    """The parameters that may be recorded as they are, and the names of all others.

    Only `HARMLESS` names are kept, and only where their value is plain data; of a header, key,
    address or anything unknown nothing but its name remains.
    """
    kept: JsonObject = {}
    omitted: list[str] = []
    for name, value in parameters.items():
        if name not in HARMLESS:
            omitted.append(name)
            continue
        try:
            kept[name] = to_json(value, where=name)
        except UsageError:
            omitted.append(name)
    return kept, tuple(sorted(omitted))


def scrub(text: str, secrets: Collection[str] = ()) -> str:
    """The text with known secrets, and everything shaped like one, replaced by `[redacted]`.

    For error texts and addresses, never for what is served again. Secrets shorter than six
    characters are left: replacing them would ruin the text and hide nothing.
    """
    for secret in sorted(set(secrets), key=len, reverse=True):
        if len(secret) >= _SHORTEST_SECRET:
            for form in (secret, quote(secret, safe="")):
                text = text.replace(form, REDACTED)
    for shape, replacement in _SHAPES:
        text = shape.sub(replacement, text)
    return text


def mask(text: str) -> tuple[str, frozenset[str]]:
    """As `scrub`, and what it replaced; the name of a variable stays (`--password $PGPASS`)."""
    masked: set[str] = set()
    for shape, replacement in _SHAPES:
        text = shape.sub(partial(_masked, replacement=replacement, masked=masked), text)
    return text, frozenset(masked)


def _masked(found: re.Match[str], *, replacement: str, masked: set[str]) -> str:
    value = found[0].removeprefix(found[1] if found.lastindex else "").strip("\"'\\")
    if REDACTED in value or _VARIABLE.fullmatch(value):
        return found[0]
    masked.add(value)
    return found.expand(replacement)
