#!/bin/sh
# Builds the kernels and the tool for the executor and runs its tests: every rule, examples/tma, then every kernel that can
# be chosen and the studies. Needs no GPU, no driver and no nvcc. CI=true builds with warnings as errors. BUILD=1 builds
# alone (TARGETS: what). Arguments go to ctest. `make test` runs it, too.
#   SANITIZERS=asan   the executor itself under AddressSanitizer and UBSan: every rule and the device layer. `make check` runs it
set -eu
cd "$(dirname "$0")/.."
headers=$(EXECUTOR=1 sh scripts/setup.sh)

directory=build-executor targets=${TARGETS:-executor_tests tmaops_tool} label=executor
[ "${SANITIZERS:-}" != asan ] || targets=executor_sanitized label=sanitized
wanted="$headers ${CXX:-g++} ${CI:-}"
if [ "$(cat "$directory/.configured-for" 2>/dev/null)" != "$wanted" ]; then
  log=$(mktemp)
  echo "Configuring ($directory)." >&2
  # CPU variants are compared with elsewhere: their libraries would only take time.
  sh scripts/progress.sh "Configuring ($directory)" "$log" cmake -G Ninja -S . -B "$directory" -DCMAKE_BUILD_TYPE=Release \
    -DTMAOPS_EXECUTOR=ON -DTMAOPS_CUDA=OFF -DTMAOPS_CUDA_HEADERS="$headers" -DTMAOPS_HIGHWAY=OFF -DTMAOPS_ONEDNN=OFF \
    -DTMAOPS_WARNINGS_AS_ERRORS=${CI:+ON} || { cat "$log" >&2; exit 2; }
  rm -f "$log"
  printf '%s' "$wanted" >"$directory/.configured-for"
fi
echo "Building ($directory)." >&2
# shellcheck disable=SC2086
sh scripts/progress.sh "Building ($directory)" "$directory/build.log" ninja -C "$directory" $targets ||
  { grep -vE '^\[[0-9]+/[0-9]+\] (Building|Linking)' "$directory/build.log" >&2; exit 2; }
[ "${BUILD:-}" != 1 ] || exit 0
exec ctest --test-dir "$directory" -L $label -j "$(nproc)" --output-on-failure --no-tests=error "$@"
