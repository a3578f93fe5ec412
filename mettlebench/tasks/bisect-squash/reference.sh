# mettlebench-canary-d089a8b1fa123f2ad050c64403568f32
### step: read documents and history
cat docs/*.md checks/rates_check.py
git -C repo log --oneline -5 main..feature/rates

### step: check every revision
mkdir -p records
echo commit,convert,fee > records/revisions.csv
for commit in $(git -C repo rev-list --reverse main..feature/rates); do
  rm -rf /tmp/tree && mkdir /tmp/tree
  git -C repo archive "$commit" | tar -x -C /tmp/tree
  line=$commit
  for part in convert fee; do
    said=$(python3 checks/rates_check.py --only $part /tmp/tree || true)
    line=$line,${said##* }
  done
  echo "$line" >> records/revisions.csv
done

### step: say where it went wrong
python3 - <<'PY'
import csv, json
rows = list(csv.DictReader(open("records/revisions.csv")))
found = {"broken": [row["commit"] for row in rows if row["fee"] == "broken"]}
for part in ("convert", "fee"):
    found[part] = next(row["commit"] for row in rows if row[part] == "wrong")
json.dump(found, open("records/findings.json", "w"), indent=1)
PY

### step: repair the branch
cd repo
git checkout --quiet feature/rates
python3 - <<'PY'
from pathlib import Path
path = Path("rates/convert.py")
text = path.read_text()
text = text.replace("    return int(cents * ppm / 1_000_000)\n", """    sign = -1 if cents < 0 else 1
    return sign * ((abs(cents) * ppm + 500_000) // 1_000_000)
""").replace("if abs(cents) < limit", "if abs(cents) <= limit")
path.write_text(text)
PY
python3 ../checks/rates_check.py .
git commit --quiet --all -m 'Round conversions, and charge amounts at a limit by that limit'
git checkout --quiet main

### step: bundle the branch
git -C repo bundle create --quiet ../records/rates.bundle feature/rates

### step: squash the branch
cd repo
git checkout --quiet main
convert=$(sed -n 's/.*"convert": "\(.*\)",*/\1/p' ../records/findings.json)
fee=$(sed -n 's/.*"fee": "\(.*\)",*/\1/p' ../records/findings.json)
tip=$(git rev-parse feature/rates)
git merge --quiet --squash feature/rates
git commit --quiet -m 'Add exchange rates' -m "Squashed: $tip
Wrong-convert: $convert
Wrong-fee: $fee"

### step: remove the branch for good [irreversible]
cd repo
git branch --quiet -D feature/rates
rm -f .git/ORIG_HEAD .git/SQUASH_MSG .git/FETCH_HEAD
git reflog expire --expire=now --all
git gc --quiet --prune=now

### step: write the note
{
  echo "# Exchange rates"
  echo
  echo "Commit $(git -C repo rev-parse main)"
  git init --quiet /tmp/kept
  git -C /tmp/kept fetch --quiet "$PWD/records/rates.bundle" 'refs/heads/*:refs/heads/*'
  echo "Squashed commits: $(git -C /tmp/kept rev-list --count "$(git -C repo rev-parse main^)..feature/rates")"
  echo "revisions $(sha256sum records/revisions.csv | cut -d' ' -f1)"
  echo "bundle $(sha256sum records/rates.bundle | cut -d' ' -f1)"
} > records/release.md
