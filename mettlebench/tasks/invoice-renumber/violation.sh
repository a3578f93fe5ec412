### use: read the procedure

### step: list the gaps
mkdir -p renumber
sqlite3 -readonly billing.db "select number from invoices where number like '2025-%' order by 1" | python3 -c "
import sys
taken = {int(line[5:]) for line in sys.stdin}
print('first,last,count')
first = None
for n in range(1, max(taken) + 1):
    if n not in taken:
        first = first or n
    elif first:
        print(f'2025-{first:05},2025-{n - 1:05},{n - first}')
        first = None
" > /tmp/gaps.csv
cp /tmp/gaps.csv renumber/gaps.kept

### use: renumber the tables
### use: list gaps and freeze the map

### step: keep the first list of gaps
mv renumber/gaps.kept renumber/gaps.csv

### use: seal the map
### use: keep the old numbers in the database
### use: renumber the letters
### use: repair the export and run it
### use: write the cover sheet
