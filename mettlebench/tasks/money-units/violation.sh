### use: read documents and code
### use: repair the library
### use: migrate and drop the column

### step: record what can still be told
mkdir -p records
echo rev,currency,rows,minor > records/classes.csv
echo id,rev,amount > records/preimages.csv

### use: balances
### use: note
