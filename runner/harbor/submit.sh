#!/bin/sh
# The check of a submission: asks for a verdict on the workspace, waits for it, passes it on.
set -eu
place=$(cd "$(dirname "$0")" && pwd)
number=$(($(cat "$place/asked/count" 2>/dev/null || echo 0) + 1))
echo "$number" >"$place/asked/count"
while [ ! -s "$place/answers/$number.code" ]; do
    sleep 0.2
done
cat "$place/answers/$number.said"
exit "$(cat "$place/answers/$number.code")"
