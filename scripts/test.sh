#!/bin/sh
# Every test there is: the build's own, then the CPU half under AddressSanitizer + UBSan, then what of it runs in threads
# under ThreadSanitizer, and the Python package.
#   FAST=1              without the sanitizer builds
#   SANITIZERS="asan"   with these alone
#   PYTHON=0            without the Python package
# CI=true builds with warnings as errors.
set -eu
cd "$(dirname "$0")/.."
presets=release
[ -z "${CI:-}" ] || presets=ci
[ "${FAST:-}" = 1 ] || presets="$presets ${SANITIZERS-asan tsan}"
jobs=$(nproc)

# What a program under ThreadSanitizer is started with. Up to GCC 13 it dies ("unexpected memory mapping") where the
# kernel spreads addresses widely (vm.mmap_rnd_bits above 28, as in Ubuntu 24.04): `setarch -R` turns that off, if it may.
# Prints "skip" where nothing helps.
thread_sanitizer_start() {
  trial=$(mktemp "$PWD/.trial-XXXXXX")
  works() { for _ in 1 2 3 4 5; do "$@" "$trial" >/dev/null 2>&1 || return 1; done; }
  if ! echo 'int main() {}' | "${CXX:-g++}" -fsanitize=thread -x c++ - -o "$trial" 2>/dev/null; then echo skip
  elif works setarch -R; then echo setarch -R
  elif works env; then echo env
  else echo skip
  fi
  rm -f "$trial"
}

for preset in $presets; do
  start=env
  [ "$preset" != tsan ] || start=$(thread_sanitizer_start)
  if [ "$start" = skip ]; then
    echo "ThreadSanitizer does not run on this machine: its tests are left out." >&2
    continue
  fi
  directory=$(sh scripts/build.sh "$preset")
  kernels=${kernels:-$directory}
  echo "Testing ($preset)." >&2
  code=0
  # shellcheck disable=SC2086
  sh scripts/progress.sh "Testing ($preset)" "$directory/tests.log" \
    $start ctest --preset "$preset" -j "$jobs" --output-on-failure --no-tests=error || code=$?
  # What was not passed, with its output, and the sums; the rest is in tests.log.
  grep -vE '^( *Start +[0-9]+: | *[0-9]+/[0-9]+ Test +#[0-9]+: .* Passed +[0-9.]+ sec$)' "$directory/tests.log" || true
  [ "$code" = 0 ] || { echo "Tests failed ($preset); every line is in $directory/tests.log." >&2; exit "$code"; }
done

# The Python package, from a wheel with the kernels that were compiled above.
[ "${PYTHON:-}" = 0 ] || KERNELS_FROM=$kernels sh scripts/python_tests.sh
