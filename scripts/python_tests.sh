#!/bin/sh
# Builds the wheel, installs it into an environment that has nothing of this project, and runs tests/python and tests/datasets there.
# OBJECTS_FROM, CUDA: as for scripts/wheel.sh. Without PyPI there are no tests, which it says.
#   scripts/python_tests.sh --environment     makes the environment and no more
#   scripts/python_tests.sh --installed ...   runs pytest with these arguments on what was installed last, and nothing else
set -eu
cd "$(dirname "$0")/.."
skip() {
  printf '%s\n' "*** The Python tests are left out: PyPI could not be reached ($1). ***" >&2
  exit 0
}
environment=.venv/python-tests
if [ "${1:-}" = --installed ]; then
  shift
  [ -x "$environment/bin/python" ] || skip "none of them ran"
  exec "$environment/bin/python" -m pytest -x -q -p no:cacheprovider "$@"
fi
wanted=$(cat tests/python/requirements.txt)
if [ "$(cat "$environment/.complete" 2>/dev/null)" != "$wanted" ]; then
  rm -rf "$environment"
  python3 -m venv "$environment"
  echo "Installing what the Python tests need into $environment." >&2
  if ! "$environment/bin/python" -m pip install --quiet --no-compile --disable-pip-version-check --retries 2 -r tests/python/requirements.txt >"$environment/pip.log" 2>&1; then
    tail -n 3 "$environment/pip.log" >&2
    skip "tests/python/requirements.txt"
  fi
  printf '%s' "$wanted" >"$environment/.complete"
fi
[ "${1:-}" != --environment ] || exit 0
code=0
installed=$(mktemp -d)
trap 'rm -rf "$installed"' EXIT
wheel=$(INSTALL_TO="$installed" TORCH_FROM="$environment/bin/python" sh scripts/wheel.sh) || code=$?
[ "$code" != 3 ] || skip "what builds the wheel"
[ "$code" = 0 ] || exit "$code"
"$environment/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps --no-index --force-reinstall "$wheel"
echo "Testing (Python)." >&2
TMAOPS_WHEEL=$wheel TMAOPS_PIP_INSTALLED=$installed "$environment/bin/python" -m pytest -x -q -p no:cacheprovider -n 3 --dist loadfile \
  --durations=15 tests/python tests/datasets
echo "Testing (Python, tmaops.torch without its native half)." >&2
TMAOPS_TORCH=python "$environment/bin/python" -m pytest -x -q -p no:cacheprovider -n 3 tests/python/test_torch.py -k "not processes and not aot"
