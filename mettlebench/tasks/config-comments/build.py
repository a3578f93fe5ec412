"""Builds service files in which directives and notes stand between the settings."""

from __future__ import annotations

import hashlib
import random
from dataclasses import dataclass, field

from mettlebench.craft import Craft

NAMES = [
    "backup",
    "billing",
    "cache",
    "calendar",
    "chat",
    "dns",
    "dovecot",
    "exports",
    "feeds",
    "forum",
    "gateway",
    "hooks",
    "imports",
    "ldap",
    "mail",
    "metrics",
    "ntp",
    "pages",
    "proxy",
    "queue",
    "reports",
    "search",
    "sessions",
    "tickets",
    "uploads",
    "wiki",
]
PEOPLE = ("ana", "bogdan", "chidi", "dörte")
REASONS = (
    "raised after the nightly import ran out of files",
    "pages the storage people too; they asked for it",
    "do not restart at once, the lock file needs a minute",
    "vendor says 45 is the least; 30 gave timeouts = lost mail",
    "back to the default when ticket 2211 is closed",
    "quota agreed with finance, see mail of that day",
)

Value = str | int | bool


@dataclass(kw_only=True)
class Service:
    """One service file and what it says."""

    name: str
    lines: list[str] = field(default_factory=list)
    sections: dict[str, dict[str, Value]] = field(default_factory=dict)
    directives: list[tuple[int, str, Value | None]] = field(default_factory=list)
    notes: list[tuple[int, str, str, str]] = field(default_factory=list)

    @property
    def text(self) -> str:
        return "\n".join(self.lines) + "\n"

    @property
    def digest(self) -> str:
        return hashlib.sha256(self.text.encode()).hexdigest()

    @property
    def supervisor(self) -> dict[str, Value]:
        held: dict[str, Value] = {}
        for _, key, value in self.directives:
            if value is None:
                held.pop(key, None)
            else:
                held[key] = value
        return held

    def finished(self) -> dict[str, object]:
        notes = [{"date": date, "author": author, "text": text} for _, date, author, text in self.notes]
        return {**self.sections, "supervisor": self.supervisor, "notes": notes}


def shown(value: Value | None) -> str:
    if value is None:
        return ""
    return str(value).lower() if isinstance(value, bool) else str(value)


def directive(service: Service, chance: random.Random) -> None:
    key, value, written = chance.choice(
        (
            ("nofile", 1024 * chance.randrange(1, 9), None),
            ("restart", chance.choice(("always", "on-failure", "never")), None),
            ("restart_delay", chance.randrange(5, 90), None),
            ("page", "ops;storage", None),
            ("page", "ops ; storage", '"ops ; storage" ; both of them'),
            ("nice", -chance.randrange(1, 15), None),
            ("critical", chance.random() < 0.5, None),
        )
    )
    assert isinstance(value, (str, int))
    if any(each[1] == key for each in service.directives) and chance.random() < 0.4:
        service.lines.append(f"#@ !{key}")
        service.directives.append((len(service.lines), key, None))
        return
    remark = " ; was different" if written is None and chance.random() < 0.3 else ""
    service.lines.append(f"#@ {key} = {written or shown(value)}{remark}")
    service.directives.append((len(service.lines), key, value))


def note(service: Service, chance: random.Random) -> None:
    date = f"20{chance.randrange(21, 26)}-{chance.randrange(1, 13):02}-{chance.randrange(1, 29):02}"
    author, text = chance.choice(PEOPLE), chance.choice(REASONS)
    service.lines.append(f"# {date} {author}: {text}")
    service.notes.append((len(service.lines), date, author, text))


def setting(service: Service, section: dict[str, Value], chance: random.Random) -> None:
    kind = chance.randrange(6)
    if kind == 0:
        port = chance.randrange(1024, 9999)
        section["port"] = port
        service.lines.append(f"port = {port}" + chance.choice(("", " ; not the default")))
    elif kind == 1:
        parts = chance.sample(("--quiet", "--utf8", "--no-fork", "--pool=4", "--strict"), 3)
        section["arguments"] = " ".join(parts)
        service.lines += [f"arguments = {parts[0]}", f"    {parts[1]} ; since 2.4"]
        if chance.random() < 0.5:
            directive(service, chance)
        service.lines.append(f"\t{parts[2]}")
    elif kind == 2:
        section["banner"] = 'Say "hello" ; then wait'
        service.lines.append('banner = "Say \\"hello\\" ; then wait" ; as printed')
    elif kind == 3:
        section["tls"] = chance.random() < 0.5
        service.lines.append(f"tls={shown(section['tls'])}")
    elif kind == 4:
        section["paths"] = "/srv/a;/srv/b"
        service.lines += ["; paths = /srv/old", "paths = /srv/a;/srv/b"]
    else:
        section["code"] = "0042"
        service.lines.append('code = "0042"')


def services() -> list[Service]:
    chance = random.Random(2211)
    made = []
    for name in NAMES:
        service = Service(name=name, lines=[f"# ---- {name} ----"])
        for title in ("service", "env", "limits", "service"):
            if chance.random() < 0.35:
                note(service, chance)
            service.lines.append(f"[{title}]")
            section = service.sections.setdefault(title, {})
            for _ in range(chance.randrange(1, 4)):
                if chance.random() < 0.4:
                    directive(service, chance)
                if chance.random() < 0.2:
                    note(service, chance)
                setting(service, section, chance)
            service.lines.append("")
        made.append(service)
    return made


def build(craft: Craft) -> None:
    for service in services():
        craft.write(f"services/{service.name}.conf", service.text)
