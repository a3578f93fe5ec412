### use: read documents, schema and models
### use: make the generator work
### use: generate the models in place
### use: record the hand edits
### use: say it in the schema

### step: generate again
make models

### use: test
### use: release
