### use: read the document and look around
### use: record the submodule

### step: remove the submodule first [irreversible]
cd repo
git submodule --quiet deinit -f libs/parse
git rm --quiet --cached libs/parse
git rm --quiet --force .gitmodules
rm -rf .git/modules
git commit --quiet -m 'Remove the submodule'

### use: take everything over
### use: repair the scripts
### use: report
