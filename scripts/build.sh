#!/bin/sh
# Sets up, configures and builds one preset: the first argument, else `release`, or `ci` (warnings as errors) where CI is
# set. Further arguments are what to build, else everything. Nothing is done twice. Prints the build folder.
# CUDA=0, CUDA=1: as for scripts/setup.sh. Without CUDA a folder that was built with GPU kernels keeps them.
set -eu
cd "$(dirname "$0")/.."
preset=${1:-${CI:+ci}}
preset=${preset:-release}
[ $# = 0 ] || shift
case $preset in
  release) directory=build ;;
  *) directory=build-$preset ;;
esac

configured=$(cat "$directory/.configured-for" 2>/dev/null || true)
case $preset:$configured in
  asan:* | tsan:*) export CUDA=0 ;;
  *:ON*) export CUDA="${CUDA:-1}" ;;
esac
nvcc=$(sh scripts/setup.sh)
if [ -n "$nvcc" ]; then
  export CUDACXX="$nvcc"
  cuda=ON
else
  cuda=OFF
fi

# A build made for another compiler, or with CUDA when it is not wanted now, is configured anew.
wanted="$cuda ${nvcc:-none} ${CXX:-g++}"
if [ "$configured" != "$wanted" ]; then
  rm -rf "$directory"
  log=$(mktemp)
  echo "Configuring ($preset, GPU kernels $cuda)." >&2
  sh scripts/progress.sh "Configuring ($preset)" "$log" cmake --preset "$preset" -DTMAOPS_CUDA=$cuda || { cat "$log" >&2; exit 2; }
  grep -E '^-- (GPU kernels|built without)' "$log" >&2 || true
  rm -f "$log"
  printf '%s' "$wanted" >"$directory/.configured-for"
fi
echo "Building ($preset)." >&2
sh scripts/progress.sh "Building ($preset)" "$directory/build.log" ninja -C "$directory" "$@" ||
  { grep -vE '^\[[0-9]+/[0-9]+\] (Building|Linking)' "$directory/build.log" >&2; exit 2; }
echo "$directory"
