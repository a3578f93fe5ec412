### use: read documents and code
### use: repair the library

### step: convert everything first [irreversible]
python3 -m recode convert letters/*/*.txt

### use: ledger and undefined bytes
### use: convert with sidecars
### use: index
### use: report
