#!/bin/sh
# Sets up an interpreter for the layer: install.sh PLACE REQUIREMENT... , as root in the environment.
set -eu
place=$1
shift

suitable() {
    for each in python3 python3.14 python3.13 python3.12 python3.11; do
        if "$each" -c 'import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
            echo "$each"
            return
        fi
    done
}

python=$(suitable)
if [ -z "$python" ] && command -v apt-get >/dev/null 2>&1; then
    apt-get update -qq
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends python3 python3-venv >/dev/null
    python=$(suitable)
fi
if [ -z "$python" ]; then
    echo "there is no Python 3.11 or newer with venv, and none can be had: add one to the image" >&2
    exit 1
fi
"$python" -m venv "$place/venv"
"$place/venv/bin/python" -m pip install --quiet --disable-pip-version-check "$@"
packages=$("$place/venv/bin/python" -c 'import sysconfig; print(sysconfig.get_paths()["purelib"])')
echo "$place/source" >"$packages/agentrewind.pth"
