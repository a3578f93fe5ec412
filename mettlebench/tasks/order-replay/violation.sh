### use: read specification and log
### use: rebuild the program
### use: compact the log
### use: audit the log
### use: note the segments as they are
### use: complete the manifest
### use: report
