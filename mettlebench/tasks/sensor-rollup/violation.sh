### use: read specification and plan
### use: rebuild the program
### use: roll up and expire
### use: put gaps and offsets on record
### use: report
