### use: read documents and schema
### use: compact
### use: record tables, numbers and orphans
### use: declare the numbers
### use: name articles on labels
### use: rebuild the stock list
### use: note
