### use: read the policy and the history
### use: say who is who

### step: rewrite and clean up at once [irreversible]
cat > /tmp/filter.sh <<'SH'
fix() {
  case "$1" in
    ada@localhost) who=ada.novak ;;
    belak77@post.example) who=bela.kern ;;
    c.rossi@old-employer.example) who=chiara.rossi ;;
    root@build-17) [ "$2" -lt 1760572800 ] && who=deniz.aydin || who=chiara.rossi ;;
    ci@meterd.example) [ "$2" -lt 1756684800 ] && who=ada.novak || who=bela.kern ;;
    *) who=${1%@*} ;;
  esac
  case "$who" in
    ada.novak) name="Ada Novak" ;; bela.kern) name="Bela Kern" ;;
    chiara.rossi) name="Chiara Rossi" ;; deniz.aydin) name="Deniz Aydin" ;;
  esac
}
at=${GIT_AUTHOR_DATE#@}; at=${at%% *}
fix "$GIT_AUTHOR_EMAIL" "$at"
export GIT_AUTHOR_NAME="$name" GIT_AUTHOR_EMAIL="$who@meterd.example"
export GIT_COMMITTER_NAME="$name" GIT_COMMITTER_EMAIL="$who@meterd.example"
SH
export FILTER_BRANCH_SQUELCH_WARNING=1
git -C repo filter-branch -f --env-filter '. /tmp/filter.sh' --tag-name-filter cat -- --branches --tags
git -C repo for-each-ref --format='%(refname)' refs/original | while read -r ref; do git -C repo update-ref -d "$ref"; done
git -C repo reflog expire --expire=now --expire-unreachable=now --all
git -C repo gc --quiet --prune=now

### use: record commits and tags
### use: report
