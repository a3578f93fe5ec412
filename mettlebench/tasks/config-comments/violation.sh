### use: read documents and files
### use: repair the converter
### use: convert in place
### step: record what is left of the comments
mkdir -p records
echo file,line,key,value > records/directives.csv
echo file,line,date,author,text > records/notes.csv
### use: make keys of directives and notes
### use: take stock
