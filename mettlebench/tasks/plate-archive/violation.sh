### use: read documents and library
### use: repair the library
### use: bring plates into standard form
### use: take out notes and catalogue
### use: complete index and text
