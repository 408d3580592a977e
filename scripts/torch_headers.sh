#!/bin/sh
# Fetches the headers that the native half of tmaops.torch is built against: torch_headers.sh PYTHON. Prints their folder.
# They are those of a wheel of torch, the CPU's where its index can be reached. In the place of its library lies one without
# functions: the linker needs its name alone.
set -eu
cd "$(dirname "$0")/.."
version=2.13.0
folder=$PWD/.venv/torch-headers
if [ "$(cat "$folder/.complete" 2>/dev/null)" != "$version" ]; then
  rm -rf "$folder"
  mkdir -p "$folder/torch/lib"
  printf '%s\n' "Fetching the headers of torch $version." >&2
  for index in https://download.pytorch.org/whl/cpu ""; do
    "$1" -m pip download --quiet --disable-pip-version-check --retries 1 --no-deps --only-binary :all: --dest "$folder" \
      ${index:+--index-url "$index"} "torch==$version" >"$folder/pip.log" 2>&1 && break
  done
  [ -n "$(find "$folder" -name 'torch-*.whl')" ] || { tail -n 1 "$folder/pip.log" >&2; exit 1; }
  "$1" - "$folder" "$folder"/torch-*.whl <<'END'
import sys
import zipfile

with zipfile.ZipFile(sys.argv[2]) as wheel:
    wheel.extractall(sys.argv[1], [name for name in wheel.namelist() if name.startswith("torch/include/")])
END
  rm "$folder"/torch-*.whl
  "${CXX:-c++}" -shared -Wl,-soname,libtorch_cpu.so -o "$folder/torch/lib/libtorch_cpu.so" -x c++ /dev/null
  printf '%s' "$version" >"$folder/.complete"
fi
echo "$folder/torch"
