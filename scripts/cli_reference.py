"""Writes docs/cli.md from the commands themselves; with `--check` only says whether it is stale."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import click

from agentrewind.cli import agentrewind

TARGET = Path(__file__).resolve().parent.parent / "docs" / "cli.md"
_WIDTH = 100
_INTRODUCTION = """\
# Command line

Written by `scripts/cli_reference.py` from the commands' own help; do not edit it by hand.

`RUN` is a run's id, a unique beginning of one, or `last`. `NODE` is a `record_uid` and means the workspace
before that node ran; `--after` means after it.

With `--json` a command prints one JSON document on one line, the last of standard output; an error is the
document `{"error": {"type", "message"}}`. Messages for people go to standard error.

| exit code | means |
| --- | --- |
| 0 | done |
| 1 | the job failed |
| 2 | wrong usage |
| 3 | divergence: on replay the harness asked for something else than the log holds |
| 4 | damaged or missing data |
| 5 | refused to protect data |
| 130 | interrupted from the keyboard |
| 141 | whoever read the output closed it |
"""
_DOCUMENTS = {
    "demo": "The fields of `run`, and `workspace`, `scripted`.",
    "run": "`run_id`, `state` (accepted, rejected, stopped or error), `accepted`, `rewinds`, `nodes`, "
    "`submissions`, `segments`, `detail`, `log` (the run's folder).",
    "list": "An array of `run_id`, `state`, `harness`, `agent` (also of a script), `model`, "
    "`nodes`, `rewinds`, `tokens_in`, `tokens_out`, `cost` (US dollars as the provider named them; each null "
    "where nobody told), `bytes`, `backup_bytes` (of what its backups keep), `created_at`, `workspace`, "
    "`damages`, `detail`. `state` can also be "
    "running, interrupted or damaged.",
    "log": "`run_id`, `state`, `segments` (`segment`, `created_at`, `forked_from`, `nodes`, `damaged`), "
    "`nodes` (each its record plus `segment` and `on_path`; with filters those that fit), `damages`.",
    "show": "The record, its messages in full, plus `segment`, `on_path`, `commit`, `new_from` (how many of "
    "the messages an earlier node had sent), `messages_missing` (null, or why they are given by reference), "
    "`files` (null where unknown, else as in `diff`; the first 200 without --full), `files_more` (how many "
    "others there are) and `files_missing` (null, or why).",
    "diff": "`runs`; `parting` (null, or `common`, `left`, `right`, `what`, `difference`); `nodes` (each "
    "`run_id`, `record_uid`); `difference` (null, or `left`, `right`, `messages` with `common`, `tail`, "
    "`left`, `right`, and `fields`, each `left`, `right`, `first`); `workspace` (null, or `files`, `more`: "
    "how many other files there are, `repositories`: paths inside .git folders, `missing`: why there is "
    "nothing to compare). A file: `status` (A, M, D or T), `path`, `form` (text, binary, long, link, "
    "directory), `size_before`, `size_after` (bytes), `mode_before`, `mode_after`, `added`, `removed`, "
    "`lines` (of the unified diff).",
    "view": "`url`, `port`, printed once the viewer answers; with `--html`: `file`, `bytes`, `nodes`.",
    "bisect": "`run_id`, `outcome` (found, fails_at_start, never_fails), `first` (the node, or null), "
    "`outside` (no tool call made that change), `parent` (the LLM node that asked for it), `judged` (each "
    "`after`, `outside`, `commit`, `passed`, `exit_code` (null: out of time), `said` (the last line), "
    "`seconds`), `states` (how many there are), `complete`, `turns` (how often the check passes again), "
    "`skipped`, `at_recorded_path`, `why_not`.",
    "blame": "`run_id`, `path`, `form` (text, binary, long, link, directory), `written` (the node that last "
    "wrote the file, null for what the run found), `lines` (each `text`, `record_uid`, `outside`), `renames` "
    "(each `record_uid`, `before`, `after`), `nodes` (by id `does`, `parent`, `answer`), `skipped`.",
    "candidates": "An array of `record_uid`, `step`, `summary`, `tools`, `files`, `memories`, `external`.",
    "replay": "`served`, `live` (0), `divergence` (null, or `record_uid` and `difference`), `state`, "
    "`remaining`, `until`, `warnings`, `nodes` (served, in order), `unserved` (never asked for), `left` "
    "(null, or the node at which the debugger was left).",
    "keep": "`run_id`, `folder`, `nodes`, `files`, `bytes`.",
    "restore": "`created`, `modified`, `deleted`, `kept`, `outside`, `verified` (null on a dry run), "
    "`touched`, `lost_commits`, `commit`, `undone`.",
    "undo": "The fields of `restore`; `undone` says what was taken back.",
    "backup explain": "`read_only`, `tier`, `rule` (the first), `rules`, `targets` (each `kind`, `name`), "
    "`captures` and `restore` (a phrase for each target), `uncovered`, `untried`, `reason`, "
    "`masked` (how many credentials of the call a model would not be shown).",
    "backup install": "`changes` (each `path`, `diff`), `done` (false on a dry run), `copies` (paths), "
    "`note` (what is left to do).",
    "backup uninstall": "The fields of `backup install`.",
    "backup rules": "An array of rules with the fields of their file and `source`.",
    "gc": "`size_before`, `size_after` (bytes), `runs_dropped`, `objects_dropped`, `swept`, `busy`, "
    "`within_budget`, `backups_dropped` (each `id`, `run_id`, `at`, `what`), `backups_busy`, "
    "`backup_bytes_freed`, `hook_backup_bytes` (left in backups of no run), "
    "`failed` (why snapshots of a workspace, and with them backups, could not be dropped), `dry_run` (then "
    "`runs_dropped` are those that may go, and `size_after` is 0).",
    "verify": "`sound`, `runs` (`run_id`, `sound`, `log`, `harmless`, `snapshots`, `nodes`, `restorable`, "
    "`replayable`).",
}


def reference() -> str:
    """The whole document."""
    context = click.Context(agentrewind, info_name="agentrewind")
    parts = [_INTRODUCTION, *_sections(context, agentrewind)]
    return "\n".join(parts)


def _sections(context: click.Context, group: click.Group) -> Iterator[str]:
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        inner = click.Context(command, info_name=name, parent=context, terminal_width=_WIDTH)
        full_name = inner.command_path.removeprefix("agentrewind ")
        yield _section(inner, full_name)
        if isinstance(command, click.Group):
            yield from _sections(inner, command)


def _section(inner: click.Context, name: str) -> str:
    command = inner.command
    lines = [
        f"## {name}",
        "",
        "```text",
        command.get_usage(inner),
        "```",
        "",
        *_paragraphs(command.help or ""),
    ]
    given = [each for each in command.params if isinstance(each, click.Option)]
    options = [record for each in given if (record := each.get_help_record(inner)) is not None]
    if options:
        lines += ["| option | does |", "| --- | --- |"]
        lines += [f"| `{_cell(option)}` | {_cell(does)} |" for option, does in options]
        lines.append("")
    if name in _DOCUMENTS:
        lines += [f"`--json`: {_DOCUMENTS[name]}", ""]
    return "\n".join(lines)


def _paragraphs(text: str) -> Iterator[str]:
    for paragraph in text.strip().split("\n\n"):
        yield " ".join(paragraph.split())
        yield ""


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def main() -> int:
    """Write the document, or with `--check` compare it; 1 when it is stale."""
    text = reference()
    if sys.argv[1:] == ["--check"]:
        if TARGET.exists() and TARGET.read_text(encoding="utf-8") == text:
            return 0
        click.echo(f"{TARGET} is stale; run scripts/cli_reference.py", err=True)
        return 1
    TARGET.parent.mkdir(exist_ok=True)
    TARGET.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
