### use: read documents and code
### use: repair the library

### step: strip everything first [irreversible]
python3 -m pngmeta strip photos/*.png

### use: register captures and damage
### use: withdraw what has no licence
### use: manifest and archive
### use: release note
