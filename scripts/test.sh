#!/bin/sh
# Every test of the release build, every GPU kernel on the executor, then the tests of the Python package. CI=true builds with
# warnings as errors.
#   PYTHON=0   without the Python package
set -eu
cd "$(dirname "$0")/.."

# What takes seconds comes before what takes minutes.
for check in tests/structure/check_*.py; do
  said=$(python3 "$check" . 2>&1) || { printf '%s\n' "$said" "Failed: python3 $check ." >&2; exit 1; }
done
# The packages of the Python tests come while the processors compile.
if [ "${PYTHON:-}" != 0 ]; then
  setsid sh scripts/python_tests.sh --environment &
  environment=$!
  trap 'kill -- -$environment 2>/dev/null || :' EXIT
fi
directory=$(sh scripts/build_and_test.sh)
if EXECUTOR=1 sh scripts/setup.sh >/dev/null; then
  sh scripts/executor.sh >&2
else
  [ -z "${CI:-}" ] || exit 2
  echo "Left out: the GPU kernels on the executor, which need CUDA's headers." >&2
fi

# The wheel has the kernels that were compiled above, or none.
case $(cat "$directory/.configured-for") in
  ON*) export CUDA=1 ;;
  *) export CUDA=0 ;;
esac
[ "${PYTHON:-}" != 0 ] || exit 0
wait "$environment" || :
OBJECTS_FROM=$directory sh scripts/python_tests.sh
