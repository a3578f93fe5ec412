### use: read the notes
### use: rebuild the reader

### step: build at once [irreversible]
python3 tools/pipeline.py build

### use: take stock and restore
### use: report
