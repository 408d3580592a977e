#!/bin/sh
# scripts/setup.sh names a CUDA compiler where a GPU is or CUDA=1 asks for one: setup_test.sh SOURCE_DIR
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
fail() { printf '%s\n' "$*" >&2; exit 1; }

mkdir "$folder/bin"
printf '#!/bin/sh\necho "Cuda compilation tools, release 13.0, V13.0.88"\n' >"$folder/bin/nvcc"
chmod +x "$folder/bin/nvcc"
setup() { env CUDACXX="$folder/bin/nvcc" "$@" 2>"$folder/err"; }
script=$1/scripts/setup.sh

[ "$(setup CUDA=1 sh "$script")" = "$folder/bin/nvcc" ] || fail "CUDA=1 does not name the compiler"
[ -z "$(setup CUDA=0 sh "$script")" ] || fail "CUDA=0 names a compiler"
# Without CUDA the driver decides, which ldconfig lists.
printf '#!/bin/sh\n' >"$folder/bin/ldconfig"
chmod +x "$folder/bin/ldconfig"
[ -e /proc/driver/nvidia/version ] || [ -e /dev/nvidiactl ] ||
  [ -z "$(setup CUDA= PATH="$folder/bin:$PATH" sh "$script")" ] || fail "names a compiler on a machine without a GPU"
printf '#!/bin/sh\necho "libcuda.so.1 (libc6,x86-64) => /lib/libcuda.so.1"\n' >"$folder/bin/ldconfig"
[ "$(setup CUDA= PATH="$folder/bin:$PATH" sh "$script")" = "$folder/bin/nvcc" ] || fail "no compiler on a machine with a GPU"
code=0
setup CUDA=yes sh "$script" >/dev/null || code=$?
{ [ "$code" = 2 ] && grep -q "CUDA=yes: it takes 0 or 1" "$folder/err"; } || fail "CUDA=yes is not refused: $code, $(cat "$folder/err")"
