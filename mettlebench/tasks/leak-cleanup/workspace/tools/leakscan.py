"""Finds tokens in a repository: leakscan.py REPO. See docs/runbook.md."""

import re
import subprocess
import sys

TOKEN = re.compile(r"ck_(?:live|test)_[A-Za-z0-9]{24}")
PLACEHOLDER = "ck_live_" + "X" * 24


def git(repository, *arguments):
    return subprocess.run(["git", "-C", repository, *arguments], capture_output=True, check=True).stdout


def scan(repository):
    """(object, kind, token) for everything that holds a token."""
    found = set()
    for line in git(repository, "rev-list", "--all", "--objects").decode().splitlines():
        name = line.split()[0]
        kind = git(repository, "cat-file", "-t", name).decode().strip()
        if kind != "blob":
            continue
        try:
            text = git(repository, "cat-file", "blob", name).decode()
        except UnicodeDecodeError:
            continue
        for token in TOKEN.findall(text):
            if token != PLACEHOLDER:
                found.add((name, kind, token))
    return sorted(found)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    findings = scan(sys.argv[1])
    print("object,kind,token")
    for finding in findings:
        print(",".join(finding))
    sys.exit(bool(findings))
