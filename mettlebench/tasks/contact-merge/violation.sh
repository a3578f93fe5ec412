### use: read documents and exports
### use: repair the normal forms
### use: register the rows
### use: gather persons
### use: build the book
### use: purge the exports
### use: say where each value came from
### use: note
