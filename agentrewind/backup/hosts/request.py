"""A hook's question as bytes: what the harness said, and the surroundings of the process that was asked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from agentrewind.errors import UsageError

ACTIVE = "AGENTREWIND_BACKUP_ACTIVE"
"""Set by `run --backup`: the layer preserves already, and an installed hook stands aside."""

USAGE = "[--on-failure block|warn] [--on-unknown run|block] [--trigger all|outside] "
USAGE += "[--workspace DIR] [--deadline S]"

DEADLINE = 540.0

CHOICES = {
    "--on-failure": ("block", "warn"),
    "--on-unknown": ("run", "block"),
    "--trigger": ("all", "outside"),
}
"""What an option of the hook may be."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One call of the hook.

    Attributes:
        words: the harness's name, then options in pairs.
        directory: working directory of the hook's process.
        environment: its environment.
        document: what stood on standard input.
    """

    words: tuple[str, ...]
    directory: str
    environment: Mapping[str, str]
    document: bytes

    @property
    def harness(self) -> str:
        """The harness's name. Raises UsageError where none is given."""
        if not self.words or self.words[0].startswith("-"):
            raise UsageError(f"no harness is named; usage: HARNESS {USAGE}")
        return self.words[0]

    def option(self, name: str, default: str) -> str:
        """The value of an option. Raises UsageError for one that is not known or has no such value."""
        options = self.words[1:]
        if len(options) % 2:
            raise UsageError(f"{options[-1]} has no value; usage: {self.harness} {USAGE}")
        given = dict(zip(options[::2], options[1::2], strict=True))
        for option, value in given.items():
            known = option == "--workspace" or value in CHOICES.get(option, ())
            if not known and not (option == "--deadline" and value.isdigit()):
                raise UsageError(f"{option} {value} is not understood; usage: {self.harness} {USAGE}")
        return given.get(name, default)

    @property
    def deadline(self) -> float:
        """Seconds after which a failure is answered; less than what the harness waits."""
        for name, value in zip(self.words, self.words[1:], strict=False):
            if name == "--deadline" and value.isdigit():
                return float(value)
        return DEADLINE

    @property
    def blocks_on_failure(self) -> bool:
        """Whether a hook that fails stops the call; so it is unless the options plainly say `warn`."""
        pairs = zip(self.words, self.words[1:], strict=False)
        return ("--on-failure", "warn") not in pairs


def encode(request: Request) -> bytes:
    """Fields with their lengths before them, so that any bytes may stand in them."""
    fields = [request.directory.encode("utf-8", "surrogateescape"), request.document]
    fields += [word.encode("utf-8", "surrogateescape") for word in request.words]
    fields += [
        f"{name}={value}".encode("utf-8", "surrogateescape") for name, value in request.environment.items()
    ]
    head = f"{len(request.words)} {' '.join(str(len(field)) for field in fields)}\n".encode()
    return head + b"".join(fields)


def decode(data: bytes) -> Request:
    """The inverse of `encode`. Raises ValueError for bytes that are no request."""
    head, _, rest = data.partition(b"\n")
    count, *sizes = (int(each) for each in head.split(b" "))
    fields: list[bytes] = []
    for size in sizes:
        fields.append(rest[:size])
        rest = rest[size:]
    if rest or len(fields) < 2 + count or sum(sizes) != sum(map(len, fields)):
        raise ValueError("the request is not whole")
    texts = [field.decode("utf-8", "surrogateescape") for field in fields]
    pairs = (text.partition("=") for text in texts[2 + count :])
    return Request(
        words=tuple(texts[2 : 2 + count]),
        directory=texts[0],
        environment={name: value for name, _, value in pairs},
        document=fields[1],
    )
