"""`agentrewind export`: a run as one file that carries it elsewhere, or in a form that others read."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click
import orjson

from agentrewind.commands.given_path import GivenPath
from agentrewind.commands.output import counted, emit, json_option, say, size
from agentrewind.commands.session import Session
from agentrewind.errors import ProtectedError, UsageError

if TYPE_CHECKING:
    from agentrewind.records import JsonObject
    from agentrewind.run_store import Run


@click.command("export")
@click.argument("run", metavar="RUN")
@click.argument("file", metavar="FILE", type=GivenPath(path_type=Path))
@click.option("--redact", is_flag=True, help="Take out what looks like a credential; no files come along.")
@click.option("--full", is_flag=True, help="A line of JSON for each node, messages in full, for programs.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["archive", "otel", "atif"]),
    default="archive",
    show_default=True,
    help="Our own; spans of OpenTelemetry; trajectories of Harbor, one document a segment in a folder.",
)
@click.option("--force", is_flag=True, help="Replace FILE where it exists.")
@json_option
@click.pass_obj
def export(
    session: Session, *, run: str, file: Path, redact: bool, full: bool, form: str, force: bool, as_json: bool
) -> None:
    """Write RUN into FILE.

    The archive holds the log and the files of every node; `agentrewind import` brings it into another store.
    Damage is found there; that somebody wrote another archive with hashes of its own only the digest shows.
    """
    if full and form != "archive":
        raise UsageError("--full and --format exclude each other")
    found = session.open_run(run)
    target = session.directory / file
    if target.exists() and not force:
        raise ProtectedError(f"{file} exists; --force replaces it")
    if not target.parent.is_dir():
        raise UsageError(f"there is no folder {target.parent}")
    if full or form != "archive":
        report = _written(found, target, form="full" if full else form, redact=redact)
    else:
        from agentrewind.archive import export_run

        report = export_run(found, target, home=session.home, redact=redact)
    if as_json:
        emit(report)
        return
    weight = size(int(str(report["bytes"])))
    say(f"wrote {counted(int(str(report['nodes'])), 'node')} of {found.run_id} to {file}: {weight}")
    if "digest" in report:
        say(f"digest {report['digest']!s}: `import` prints the same, where the archive is still this one")
    if redact:
        say("what looked like a credential was taken out; read it before you hand it on", style="note")


def _written(run: Run, target: Path, *, form: str, redact: bool) -> JsonObject:
    from agentrewind.formats import atif, atif_name, lines, otel
    from agentrewind.jsonform import dump_plain
    from agentrewind.redacted_records import redacted
    from agentrewind.timeline import Timeline

    timeline = Timeline(redacted(run.segments_read())) if redact else run.timeline()
    match form:
        case "full":
            data = b"".join(dump_plain(each, where="node") + b"\n" for each in lines(timeline))
            target.write_bytes(data)
        case "otel":
            target.write_bytes(orjson.dumps(otel(timeline)))
        case _:
            target.mkdir(exist_ok=True)
            for number, document in zip(timeline.segments, atif(timeline), strict=True):
                path = target / atif_name(timeline, number)
                path.write_bytes(orjson.dumps(document, option=orjson.OPT_INDENT_2))
    files = [target] if target.is_file() else sorted(target.iterdir())
    for path in files:
        path.chmod(0o600)
    return {
        "run_id": run.run_id,
        "file": str(target),
        "bytes": sum(path.stat().st_size for path in files),
        "nodes": len(timeline.nodes),
        "redacted": redact,
    }
