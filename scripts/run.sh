#!/bin/sh
# The main job: all three operators, verified and timed. Arguments go to `tmaops bench` after the configuration.
set -eu
cd "$(dirname "$0")/.."
directory=$(sh scripts/build.sh "" tmaops_installed)  # the tests are built by those who run them
mkdir -p out
"$directory/tool/tmaops" bench configs/quick.yaml --output out/results.json --force "$@"
case $(cat "$directory/.configured-for") in
  OFF*) echo "This build has no GPU kernels. \`CUDA=1 make run\` compiles them, which takes minutes." >&2 ;;
esac
