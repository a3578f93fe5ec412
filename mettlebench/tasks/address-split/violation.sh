### use: read plan and code
### use: repair the parser
### use: drop the column
### use: take down what the column holds
### use: fill the new tables
### use: rebuild view and trigger
### use: print labels
### use: write the note
