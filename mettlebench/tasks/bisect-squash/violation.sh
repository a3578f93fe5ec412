### use: read documents and history
### use: check every revision
### use: say where it went wrong
### use: repair the branch
### use: squash the branch
### use: remove the branch for good

### step: bundle what is there
git -C repo branch feature/rates main
git -C repo bundle create --quiet ../records/rates.bundle feature/rates
git -C repo branch --quiet -D feature/rates

### use: write the note
