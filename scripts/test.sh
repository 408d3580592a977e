#!/bin/sh
# Every test there is: the build's own, then the CPU half under AddressSanitizer + UBSan.
#   FAST=1                    without the sanitizer builds
#   SANITIZERS="asan tsan"    with these (ThreadSanitizer takes about 9 minutes of processor time to build)
# CI=true builds with warnings as errors.
set -eu
cd "$(dirname "$0")/.."
presets=release
[ -z "${CI:-}" ] || presets=ci
[ "${FAST:-}" = 1 ] || presets="$presets ${SANITIZERS-asan}"
jobs=$(nproc)
for preset in $presets; do
  sh scripts/build.sh "$preset" >/dev/null
  echo "Testing ($preset)." >&2
  ctest --preset "$preset" -j "$jobs" --output-on-failure --no-tests=error
done
