# mettlebench-canary-0407c1e1d0fecf8e2a8553f2ba0f688f
### step: read policy and queue
cat docs/vendoring.md patches/1.4/*
ls -R vendor

### step: register the releases
mkdir -p records
{
  echo archive,version,sha256,files
  for version in 1.4 1.5; do
    archive=vendor/archives/tabula-$version.tar.gz
    echo "tabula-$version.tar.gz,$version,$(sha256sum $archive | cut -d' ' -f1),$(tar -tzf $archive | grep -vc '/$')"
  done
} > records/sources.csv

### step: find out what the tree is
here=$PWD
mkdir -p /tmp/old && tar -xzf vendor/archives/tabula-1.4.tar.gz -C /tmp/old
cd /tmp/old/tabula-1.4
patch -p1 < "$here"/patches/1.4/0001-wide.patch
patch -p1 < "$here"/patches/1.4/0002-none.patch
diff -u render.py "$here"/vendor/tabula/render.py | sed 's/^--- .*/--- a\/render.py/; s/^+++ .*/+++ b\/render.py/' \
  > "$here"/patches/1.4/0004-local.patch || test $? = 1
cd "$here"
{
  echo patch,state
  echo 0001-wide.patch,applied
  echo 0002-none.patch,applied
  echo 0003-markdown.patch,absent
  echo "tree,$(cd vendor/tabula && find . -type f | LC_ALL=C sort | xargs sha256sum | sha256sum | cut -d' ' -f1)"
} > records/queue.csv
printf '%s\n' 0001-wide.patch 0002-none.patch 0004-local.patch > patches/1.4/series
cat patches/1.4/0004-local.patch

### step: move to the new release [irreversible]
rm -rf vendor/tabula
mkdir -p vendor/tabula
tar -xzf vendor/archives/tabula-1.5.tar.gz -C vendor/tabula --strip-components=1

### step: carry the patches over
mkdir -p patches/1.5
cp -r vendor/tabula /tmp/a
python3 - <<'PY'
from pathlib import Path
path = Path("vendor/tabula/text.py")
text = path.read_text()
text = text.replace('take."""\n', 'take."""\n\nimport unicodedata\n', 1)
text = text.replace("return len(text)", 'return sum(2 if unicodedata.east_asian_width(each) in "WF" else 1 for each in text)')
path.write_text(text)
PY
cp -r vendor/tabula /tmp/b
(cd /tmp && diff -u a/text.py b/text.py | sed 's/\t.*//') > patches/1.5/0001-wide.patch || test $? = 1
python3 - <<'PY'
from pathlib import Path
path = Path("vendor/tabula/render.py")
path.write_text(path.read_text().replace('''    return margin + cell + " " * (room - columns(cell)) + margin
''', '''    blanks = " " * (room - columns(cell))
    try:
        float(cell)
    except ValueError:
        return margin + cell + blanks + margin
    return margin + blanks + cell + margin
'''))
PY
cp -r vendor/tabula /tmp/c
(cd /tmp && diff -u b/render.py c/render.py | sed 's/\t.*//; s/^+++ c/+++ b/; s/^--- b/--- a/') > patches/1.5/0004-local.patch || test $? = 1
printf '%s\n' 0001-wide.patch 0004-local.patch > patches/1.5/series
python3 -B -m unittest discover -s tests -t . 2>&1 | tail -n 1

### step: account for the patches
cat > records/dropped.csv <<'CSV'
patch,reason,evidence
0002-none.patch,upstream,#88
0003-markdown.patch,absent,
CSV
cat > VENDOR.md <<MD
# tabula 1.5

Archive $(sha256sum vendor/archives/tabula-1.5.tar.gz | cut -d' ' -f1)
Patches: $(paste -sd' ' patches/1.5/series)
The change found in the old tree: $(sha256sum patches/1.4/0004-local.patch | cut -d' ' -f1)
Tree before: $(sed -n 's/^tree,//p' records/queue.csv)
Tree after: $(cd vendor/tabula && find . -type f | LC_ALL=C sort | xargs sha256sum | sha256sum | cut -d' ' -f1)
MD
