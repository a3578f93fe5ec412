# mettlebench-canary-b52b155ae0e6b15feabf1057aae4b12d
### step: read the document and look around
cat docs/folding.md
cd repo
git status --short; git log --oneline | sed -n '1,10p'; cat scripts/*.py app/paths.py
git -C libs/parse status --short; git -C libs/parse stash list; git -C libs/parse log --oneline -3

### step: record the submodule
mkdir -p records
{
  echo ref,commit,subject
  {
    git -C repo/libs/parse for-each-ref --format='%(refname) %(objectname)' | while read -r ref _; do
      echo "$ref,$(git -C repo/libs/parse log -1 --format='%H,%s' "$ref^{commit}")"
    done
    echo "HEAD,$(git -C repo/libs/parse log -1 --format='%H,%s' HEAD)"
  } | LC_ALL=C sort -t, -k1,1
} > records/module.csv
cat records/module.csv

### step: take everything over
cd repo
module=.git/modules/libs/parse
git -C libs/parse branch parse-detached HEAD
git -C libs/parse branch parse-stash refs/stash
git fetch --quiet --no-tags "$module" '+refs/heads/*:refs/heads/parse/*' '+refs/tags/*:refs/tags/parse/*'
git branch -m parse/parse-detached parse/detached
git branch -m parse/parse-stash parse/stash
git -C libs/parse add --all
git -C libs/parse commit --quiet -m 'Local changes in the working tree'
git -C libs/parse branch parse-local HEAD
git fetch --quiet --no-tags "$module" refs/heads/parse-local:refs/heads/parse/local

### step: fold and remove the submodule [irreversible]
cd repo
git submodule --quiet deinit -f libs/parse
git rm --quiet --cached libs/parse
git rm --quiet --force .gitmodules
rm -rf .git/modules libs/parse
git read-tree --prefix=libs/parse/ -u parse/local
tree=$(git write-tree)
git reset --quiet --hard "$(git commit-tree "$tree" -p main -p parse/local -m 'Fold libs/parse')"

### step: repair the scripts
cd repo
echo "1.2+$(git rev-list --count parse/v1.2..parse/local)" > libs/parse/VERSION
cat > scripts/version.py <<'PY'
"""Prints the version of the parser: its last tag, and the number of commits since."""

from pathlib import Path

print(Path("libs/parse/VERSION").read_text().strip())
PY
cat > app/paths.py <<'PY'
"""Where the modules are that are kept beside this program."""


def modules():
    """Their folders."""
    return ["libs/parse"]
PY
python3 -B scripts/check.py
cat > libs/parse/PROVENANCE.md <<MD
# Where this comes from

Folded from the submodule <https://git.example/tools/parse.git>.

It stood at $(git rev-parse parse/detached) ; with local changes: $(git rev-parse parse/local)
Commits in that history: $(git rev-list --count parse/local)
MD
git add --all
git commit --quiet -m 'Read the version from a file, and say where the parser comes from'

### step: report
fold=$(git -C repo rev-list --merges -1 main)
cat > records/report.md <<MD
# libs/parse folded

main was $(git -C repo rev-parse "$fold^1")
The merge is $fold
module.csv $(sha256sum records/module.csv | cut -d' ' -f1)
MD
