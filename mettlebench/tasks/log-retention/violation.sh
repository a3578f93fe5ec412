### use: read runbook and format
### use: repair the reader

### step: make the output folder
mkdir -p incident

### use: apply retention
### use: register sources
### use: reconstruct timeline and window
### use: report
