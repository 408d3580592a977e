#!/bin/sh
# Every test there is: the build's own, then the CPU half under AddressSanitizer + UBSan and under ThreadSanitizer.
# FAST=1 leaves the sanitizer builds out. CI=true builds with warnings as errors.
set -eu
cd "$(dirname "$0")/.."
presets=release
[ -z "${CI:-}" ] || presets=ci
[ "${FAST:-}" = 1 ] || presets="$presets asan tsan"
jobs=$(nproc)
for preset in $presets; do
  sh scripts/build.sh "$preset" >/dev/null
  echo "Testing ($preset)." >&2
  ctest --preset "$preset" -j "$jobs" --output-on-failure --no-tests=error
done
