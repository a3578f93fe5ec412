### use: read the handbook
### use: repair the reader
### use: take them out of the book
### use: sum up
### use: list the cancelled orders
### use: write the note
