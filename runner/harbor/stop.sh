#!/bin/sh
# Ends a run whose process id a file holds, and waits for it; what does not end when asked is killed.
process=$(cat "$1") || exit 0
kill -TERM "$process" 2>/dev/null || exit 0
for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
    sleep 0.5
    kill -0 "$process" 2>/dev/null || exit 0
done
kill -KILL "$process" 2>/dev/null || :
