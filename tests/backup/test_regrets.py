"""Calls after which people wished for a backup, as they were reported: each is caught by a rule.

What comes back after the calls of these rules is shown by the tests of each kind.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from agentrewind.backup.decide import decide
from agentrewind.backup.rules.loading import load_rules
from agentrewind.backup.values import Context, Tier, ToolCall

RULES = load_rules(None)

# what was lost: call, rule, kind of what is preserved
REPORTED = {
    "a tree into which files had just been moved": ("rm -rf {out}/parent", "files.rm", "files"),
    "the second reorganised folder": ("cd {out} && rm -rf 'second folder'", "files.rm", "files"),
    "what a pattern found that was too wide": ("find {out}/parent -name '*' -delete", "files.find", "files"),
    "a find that is piped into rm": ("find {out}/parent -type f | xargs rm -f", "files.find", "files"),
    "documents taken for the agent's own": ("rm {out}/human.doc", "files.rm", "files"),
    "versions before an upgrade": ("pip install -U something", "packages.pip", "pip"),
    "curated rows of a local stack": ("supabase db reset", "sql.supabase-local", "postgresql"),
    "a production database that was linked": (
        "SUPABASE_DB_URL=postgresql://db.example/app supabase db reset --linked",
        "sql.supabase-remote",
        "postgresql",
    ),
    "a database before it was to be renamed": (
        "psql -U postgres -d postgres -c 'DROP DATABASE geo'",
        "sql.psql",
        "postgresql",
    ),
    "rows of a live project": ("psql -d live -c 'TRUNCATE results'", "sql.psql", "postgresql"),
    "rows by a test run": ("psql -d live -c 'delete from results where true'", "sql.psql", "postgresql"),
    "mail that a sync run emptied": ("mbsync --all", "mail.sync", "imap"),
    "mail at the destination of a strict sync": (
        "imapsync --host1 a --host2 b --delete2",
        "mail.sync",
        "imap",
    ),
    "the volume of a release": ("helm install --replace graf stable/grafana", "helm.release", "command"),
    "a data directory by a patch upgrade": ("helm upgrade pg chart/postgresql", "helm.release", "command"),
    "a database instance that was replaced": ("terraform apply -auto-approve", "terraform.state", "command"),
    "a configuration that an update overwrote": ("cp new.env {out}/app/.env", "files.cp", "files"),
    "jobs of cron": ("crontab -r", "crontab.edit", "crontab"),
}


@pytest.fixture
def context(tmp_path: Path, clean_env: dict[str, str]) -> Context:
    out, workspace = tmp_path / "out", tmp_path / "workspace"
    for directory in (out / "parent" / "log", out / "second folder", out / "app", workspace):
        directory.mkdir(parents=True)
    for file in ("parent/log/image.png", "second folder/a.pdf", "human.doc", "app/.env"):
        (out / file).write_text(file)
    (workspace / "new.env").write_text("NEW=1\n")
    pip = tmp_path / "bin" / "pip"
    pip.parent.mkdir()
    pip.write_text(f"#!{tmp_path}/bin/python\n")
    pip.chmod(0o755)
    (tmp_path / "bin" / "python").symlink_to("/usr/bin/python3")
    env = {**clean_env, "PATH": f"{tmp_path}/bin:{clean_env['PATH']}", "OUT": str(out)}
    account = {"IMAP_HOST": "mail.example", "IMAP_USER": "ann", "IMAP_PASSWORD": "x", "USER": "ann"}
    return Context(cwd=workspace, env={**env, **account}, home=tmp_path, workspace=workspace)


@pytest.mark.parametrize("loss", REPORTED)
def test_a_reported_loss_is_caught_by_a_rule(loss: str, context: Context) -> None:
    call, rule, kind = REPORTED[loss]
    text = call.format(out=context.env["OUT"])
    decision = decide(ToolCall(name="bash", arguments={"command": text}), context, RULES)
    assert not decision.read_only
    assert decision.tier in (Tier.REWRITE, Tier.PAIR)
    assert rule in decision.rules
    assert kind in {target.kind for target in decision.targets}


@pytest.mark.parametrize(
    "call",
    [
        "bash build.sh",
        "influx -execute 'DROP MEASUREMENT temperature'",
        "curl -X DELETE https://wiki.example/api/pages/7",
        "./upgrade.sh --yes",
        "python3 reorganise.py",
    ],
)
def test_what_a_script_or_a_service_does_is_never_called_harmless(call: str, context: Context) -> None:
    decision = decide(ToolCall(name="bash", arguments={"command": call}), context, RULES)
    assert not decision.read_only
    assert decision.tier is Tier.SUBAGENT
    assert decision.uncovered
