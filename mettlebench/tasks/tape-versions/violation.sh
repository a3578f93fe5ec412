### use: read documents and tape
### use: rebuild the index
### use: make the repository's archive
### use: record and keep every version
### use: write the note
