#!/bin/sh
# The CPU half and the executor under AddressSanitizer + UBSan, then what of the former runs in threads under ThreadSanitizer.
#   SANITIZERS="asan"   with these alone
set -eu
cd "$(dirname "$0")/.."

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

for preset in ${SANITIZERS-asan tsan}; do
  case $preset in
    asan) start=env ;;
    tsan) start=$(thread_sanitizer_start) ;;
    *) echo "SANITIZERS=$preset: there are asan and tsan" >&2; exit 2 ;;
  esac
  if [ "$start" = skip ]; then
    echo "ThreadSanitizer does not run on this machine: its tests are left out." >&2
    continue
  fi
  # shellcheck disable=SC2086
  sh scripts/build_and_test.sh "$preset" $start >/dev/null
  [ "$preset" = asan ] || continue
  if EXECUTOR=1 sh scripts/setup.sh >/dev/null; then
    SANITIZERS=asan sh scripts/executor.sh >&2
  else
    [ -z "${CI:-}" ] || exit 2
    echo "Left out: the executor, which needs CUDA's headers." >&2
  fi
done
