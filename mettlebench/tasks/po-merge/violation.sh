### use: read documents and code
### use: repair the library
### use: merge and prune
### use: harvest
### use: compile and report
