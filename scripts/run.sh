#!/bin/sh
# The main job: all three operators, verified and timed. Arguments go to `tmaops bench` after the configuration.
set -eu
cd "$(dirname "$0")/.."
directory=$(sh scripts/build.sh "" tmaops_tool)  # the tests are built by those who run them
mkdir -p out
exec "$directory/src/cli/tmaops" bench configs/quick.yaml --output out/results.json --force "$@"
