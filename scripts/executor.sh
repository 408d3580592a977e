#!/bin/sh
# Builds the kernels for the executor and runs its tests: every rule, then every kernel that can be chosen. Needs no GPU, no
# driver and no nvcc. CI=true builds with warnings as errors. BUILD=1 builds alone. Arguments go to ctest.
set -eu
cd "$(dirname "$0")/.."
headers=$(EXECUTOR=1 sh scripts/setup.sh)
directory=build-executor
wanted="$headers ${CXX:-g++} ${CI:-}"
if [ "$(cat $directory/.configured-for 2>/dev/null)" != "$wanted" ]; then
  log=$(mktemp)
  echo "Configuring (executor)." >&2
  # CPU variants are compared with elsewhere: their libraries would only take time.
  sh scripts/progress.sh "Configuring (executor)" "$log" cmake -G Ninja -S . -B $directory -DCMAKE_BUILD_TYPE=Release \
    -DTMAOPS_EXECUTOR=ON -DTMAOPS_CUDA=OFF -DTMAOPS_CUDA_HEADERS="$headers" -DTMAOPS_HIGHWAY=OFF -DTMAOPS_ONEDNN=OFF \
    -DTMAOPS_WARNINGS_AS_ERRORS=${CI:+ON} || { cat "$log" >&2; exit 2; }
  rm -f "$log"
  printf '%s' "$wanted" >$directory/.configured-for
fi
echo "Building (executor)." >&2
sh scripts/progress.sh "Building (executor)" $directory/build.log ninja -C $directory test_executor ||
  { grep -vE '^\[[0-9]+/[0-9]+\] (Building|Linking)' $directory/build.log >&2; exit 2; }
[ "${BUILD:-}" != 1 ] || exit 0
exec ctest --test-dir $directory -L executor -j "$(nproc)" --output-on-failure --no-tests=error "$@"
