### use: read what there is
### use: repair the frame reader
### use: bring the database back into service
### use: register what came from the till
### use: take sales and corrections out of the log
### use: report
