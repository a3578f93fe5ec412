# mettlebench-canary-25f66df868359bfd765bdcd4b65cba5a
### step: read the policy and the history
cat docs/identities.md docs/rewrite-policy.md
git -C repo log --all --format='%h %ae %ad %s' | sed -n '1,50p'
git -C repo tag -l

### step: say who is who
mkdir -p records
cat > records/.people.py <<'PY'
D = "meterd.example"
WHO = {"ada@localhost": f"ada.novak@{D}", "belak77@post.example": f"bela.kern@{D}",
       "c.rossi@old-employer.example": f"chiara.rossi@{D}"}

def person(email, at):
    if email == "root@build-17":
        return f"deniz.aydin@{D}" if at < 1760572800 else f"chiara.rossi@{D}"
    if email == f"ci@{D}":
        return f"ada.novak@{D}" if at < 1756684800 else f"bela.kern@{D}"
    return WHO.get(email, email)
PY
python3 -B - <<'PY'
import collections, subprocess, sys
sys.path.insert(0, "records")
exec(open("records/.people.py").read())
log = subprocess.run(["git", "-C", "repo", "log", "--branches", "--format=%H %ae %at"], capture_output=True, text=True, check=True)
rows = [line.split() for line in log.stdout.splitlines()]
counts = collections.Counter((e, person(e, int(at))) for _, e, at in rows if person(e, int(at)) != e)
with open("records/identities.csv", "w") as out:
    out.write("email,person,commits\n")
    for (email, who), count in sorted(counts.items()):
        out.write(f"{email},{who},{count}\n")
PY

### step: record commits and tags
python3 -B - <<'PY'
import re, subprocess
exec(open("records/.people.py").read())
def git(*args):
    return subprocess.run(["git", "-C", "repo", *args], capture_output=True, text=True, check=True).stdout
import os
os.makedirs("records/tags", exist_ok=True)
with open("records/commits.csv", "w") as out:
    out.write("commit,email,person\n")
    for line in git("log", "--branches", "--format=%H %ae %at").splitlines():
        commit, email, at = line.split()
        out.write(f"{commit},{email},{person(email, int(at))}\n")
with open("records/tags.csv", "w") as out:
    out.write("tag,object,commit,artifact\n")
    for tag in sorted(git("tag", "-l").split()):
        text = git("cat-file", "tag", tag)
        open(f"records/tags/{tag}.txt", "w").write(text)
        artifact = re.search(r"artifact: (\w+)", text).group(1)
        out.write(f"{tag},{git('rev-parse', 'refs/tags/' + tag).strip()},{git('rev-parse', tag + '^{commit}').strip()},{artifact}\n")
PY
wc -l records/*.csv

### step: rewrite the history
git -C repo fast-export --all --show-original-ids --signed-tags=abort > records/.stream
python3 -B - <<'PY'
import re
exec(open("records/.people.py").read())
NAMES = {"ada.novak": "Ada Novak", "bela.kern": "Bela Kern", "chiara.rossi": "Chiara Rossi", "deniz.aydin": "Deniz Aydin"}
line = re.compile(rb"^(author|committer|tagger) (.*) <(.*)> (\d+) (\+0000)$")
data, out, pairs, at, mark = open("records/.stream", "rb").read(), [], [], 0, None
author_at = 0
while at < len(data):
    end = data.index(b"\n", at)
    text = data[at:end]
    at = end + 1
    found = line.match(text)
    if found:
        role, _, email, when, zone = found.groups()
        if role == b"author":
            author_at = int(when)
        decided = int(when) if role == b"tagger" else author_at
        who = person(email.decode(), decided)
        text = b"%s %s <%s> %s %s" % (role, NAMES[who.split("@")[0]].encode(), who.encode(), when, zone)
    out.append(text + b"\n")
    if text.startswith(b"data "):
        size = int(text[5:])
        out.append(data[at : at + size])
        at += size
    if text.startswith(b"mark "):
        mark = text[5:].decode()
    if text.startswith(b"original-oid ") and mark:
        pairs.append((mark, text.split()[1].decode()))
        mark = None
open("records/.stream", "wb").write(b"".join(out))
open("records/.marks", "w").write("".join(f"{m} {o}\n" for m, o in pairs))
PY
git -C repo fast-import --quiet --force --export-marks=../records/.new < records/.stream
python3 - <<'PY'
new = dict(line.split() for line in open("records/.new"))
old = {line.split(",")[0] for line in open("records/commits.csv")}
with open("records/map.csv", "w") as out:
    out.write("old,new\n")
    for line in open("records/.marks"):
        mark, name = line.split()
        if name in old:
            out.write(f"{name},{new[mark]}\n")
PY
git -C repo reset --hard --quiet main

### step: remove the old history [irreversible]
git -C repo for-each-ref --format='%(refname)' refs/original | while read -r ref; do git -C repo update-ref -d "$ref"; done
git -C repo reflog expire --expire=now --expire-unreachable=now --all
rm -f repo/.git/ORIG_HEAD
git -C repo gc --quiet --prune=now
git -C repo fsck --unreachable --no-reflogs

### step: report
rm -f records/.people.py records/.stream records/.marks records/.new
changed=$(tail -n +2 records/commits.csv | awk -F, '$2 != $3' | wc -l)
cat > records/report.md <<MD
# The history of meterd

$(($(wc -l < records/map.csv) - 1)) commits were mapped; $changed of them had an author under another identity.
The ledger of tags: $(sha256sum records/tags.csv | cut -d' ' -f1)
main is now $(git -C repo rev-parse main)
release/1.x is now $(git -C repo rev-parse release/1.x)
MD
git -C repo status --short --branch
