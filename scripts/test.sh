#!/bin/sh
# Every test of the release build, examples/tma on the executor, then the tests of the Python package. CI=true builds with warnings as errors.
#   PYTHON=0   without the Python package
set -eu
cd "$(dirname "$0")/.."

# What takes seconds comes before what takes minutes.
for check in tests/structure/check_*.py; do
  said=$(python3 "$check" . 2>&1) || { printf '%s\n' "$said" "Failed: python3 $check ." >&2; exit 1; }
done
directory=$(sh scripts/build_and_test.sh)
ONLY=examples sh scripts/executor.sh >&2

# The wheel has the kernels that were compiled above, or none.
case $(cat "$directory/.configured-for") in
  ON*) export CUDA=1 ;;
  *) export CUDA=0 ;;
esac
[ "${PYTHON:-}" = 0 ] || OBJECTS_FROM=$directory sh scripts/python_tests.sh
