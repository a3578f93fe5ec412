### use: read runbook and scanner
### use: repair the scanner
### use: scan
### use: scrub every history
### use: remove the old objects
### use: find what was lost
### use: put it back
### use: report
