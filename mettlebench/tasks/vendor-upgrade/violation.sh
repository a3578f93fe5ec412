### use: read policy and queue
### use: register the releases
### use: move to the new release
### use: find out what the tree is
### use: carry the patches over
### use: account for the patches
