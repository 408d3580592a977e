#!/bin/sh
# Makes sure that everything the build needs is there, and installs what is missing. Says what and why; says nothing,
# and needs no network, when nothing is missing. Debian 12 and Ubuntu 24.04; elsewhere it names what to install.
#   CUDA=1  look for a CUDA compiler, and fetch one from PyPI where no toolkit of 12.8 or newer is found
#   CUDA=0  do not look for one; otherwise it is looked for, and fetched, where a GPU is
#   EXECUTOR=1  CUDA's headers alone, for the executor; fetched from PyPI where there are none of 12.8 or newer
# Prints to stdout only the path of nvcc (with EXECUTOR=1 the folder of the headers), or nothing; all messages go to stderr.
set -eu
cd "$(dirname "$0")/.."

say() { printf '%s\n' "$*" >&2; }
die() { say "setup: $*"; exit 2; }

# --- Debian packages: name, how to tell that it is there, why -------------------------------------------------------
has_header() { # a header on the compiler's usual paths
  for directory in /usr/include /usr/local/include /usr/include/"$(uname -m)"-linux-gnu; do
    [ -e "$directory/$1" ] && return 0
  done
  return 1
}
version_at_least() { # version_at_least 3.25 3.25.1
  [ "$(printf '%s\n%s\n' "$1" "$2" | sort -V | head -n 1)" = "$1" ]
}
has_cmake() { command -v cmake >/dev/null && version_at_least 3.25 "$(cmake --version | sed -n 's/^cmake version //p')"; }
has_compiler() { command -v "${CXX:-g++}" >/dev/null && version_at_least 12 "$("${CXX:-g++}" -dumpversion)"; }
has_python() { command -v python3 >/dev/null && python3 -c 'import venv, ensurepip' 2>/dev/null; }
has_certificates() { [ -s /etc/ssl/certs/ca-certificates.crt ]; }

required="" optional=""
need() { required="$required $1"; say "  $1: $2"; }
want() { optional="$optional $1"; say "  $1: $2 (optional)"; }
list_missing() {
  has_compiler || need g++ "the C++20 compiler"
  has_cmake || need cmake "configures the build (3.25 or newer)"
  command -v ninja >/dev/null || need ninja-build "runs the build"
  has_header CLI/CLI.hpp || need libcli11-dev "command line of the tool"
  has_header fmt/format.h || need libfmt-dev "text formatting of the tool"
  has_header yaml-cpp/yaml.h || need libyaml-cpp-dev "configuration files"
  has_header nlohmann/json.hpp || need nlohmann-json3-dev "result files"
  has_header zlib.h || need zlib1g-dev "compressed text files and npz archives"
  has_header gtest/gtest.h || need libgtest-dev "the tests"
  has_header gmock/gmock.h || need libgmock-dev "the tests"
  has_python || need python3-venv "checks of the source tree, and the virtual environment a CUDA compiler goes into"
  has_header hwy/highway.h || want libhwy-dev "SIMD kernels for every CPU in one binary; plain loops without it"
  has_header oneapi/dnnl/dnnl.hpp || want libdnnl-dev "the fast CPU matrix multiplication; a simple one without it"
  has_header zstd.h || want libzstd-dev "text files compressed with zstd; gzip alone without it"
  has_header rapidcheck.h || want librapidcheck-dev "property tests; left out without it"
}

# Optional packages that could not be had are not asked for again at every run; remove the file to try once more.
tried=.setup/optional-packages-not-available
missing=$(list_missing 2>&1 && printf 'LISTS%s|%s' "$required" "$optional")
required=$(printf '%s' "$missing" | sed -n 's/^LISTS\(.*\)|.*/\1/p')
optional=$(printf '%s' "$missing" | sed -n 's/^LISTS.*|\(.*\)/\1/p')
[ "$(cat $tried 2>/dev/null)" = "$optional" ] && optional=""
give_up_optional() { mkdir -p .setup && printf '%s' "$optional" >$tried; }
if [ -n "$required$optional" ]; then
  say "These packages are missing:"
  printf '%s\n' "$missing" | grep -v '^LISTS' >&2
  as_root=""
  [ "$(id -u)" = 0 ] || as_root=sudo
  if ! command -v apt-get >/dev/null || { [ -n "$as_root" ] && ! command -v sudo >/dev/null; }; then
    [ -z "$required" ] || die "cannot install packages here (no apt-get, or neither root nor sudo). Install them by other means and run this again:$required"
    say "They are optional and cannot be installed here (no apt-get, or neither root nor sudo): going on without."
    give_up_optional
  else
    has_certificates || required="$required ca-certificates"
    say "Installing them with apt-get."
    log=$(mktemp)
    patience="-o Acquire::Retries=1 -o Acquire::http::Timeout=20 -o Acquire::https::Timeout=20"
    install() { # shellcheck disable=SC2086
      $as_root env DEBIAN_FRONTEND=noninteractive apt-get $patience install -y --no-install-recommends "$@" >>"$log" 2>&1
    }
    # shellcheck disable=SC2086
    if $as_root apt-get $patience update >"$log" 2>&1 && install $required $optional; then :
    # shellcheck disable=SC2086
    elif [ -z "$required" ] || install $required; then
      give_up_optional
      say "The optional packages could not be installed (log: $log): going on without."
    else
      tail -n 5 "$log" >&2
      die "apt-get failed; the whole log is in $log"
    fi
  fi
fi

# --- CUDA: a toolkit that is there, or the compiler from PyPI -------------------------------------------------------
has_driver() { [ -e /proc/driver/nvidia/version ] || [ -e /dev/nvidiactl ] || ldconfig -p 2>/dev/null | grep -q 'libcuda\.so\.1'; }
[ "${EXECUTOR:-}" = 1 ] || case ${CUDA:-} in
  0) exit 0 ;;
  1) ;;
  "") has_driver || exit 0 ;;
  *) die "CUDA=$CUDA: it takes 0 or 1" ;;
esac

nvcc_of_toolkit() { # the first nvcc of 12.8 or newer
  for candidate in "${CUDACXX:-}" "$(command -v nvcc || true)" /usr/local/cuda/bin/nvcc /usr/local/cuda-*/bin/nvcc; do
    [ -n "$candidate" ] && [ -x "$candidate" ] || continue
    found=$("$candidate" --version | sed -n 's/.*release \([0-9.]*\),.*/\1/p')
    if version_at_least 12.8 "$found"; then printf '%s\n' "$candidate"; return 0; fi
    say "CUDA: $candidate is $found, older than the 12.8 that tmaops needs."
  done
  return 1
}
# Fetches packages of one release into a virtual environment, unless they are there.
fetch() { # fetch .venv/name "what they are" package==version...
  environment=$1 what=$2
  shift 2
  [ "$(cat "$environment/.complete" 2>/dev/null)" != "$*" ] || return 0
  say "CUDA: no toolkit of 12.8 or newer; fetching $what (13.0) from PyPI into $environment."
  rm -rf "$environment"
  python3 -m venv "$environment"
  if ! "$environment/bin/python" -m pip install --quiet --disable-pip-version-check "$@" >&2; then
    rm -rf "$environment"
    return 1
  fi
  printf '%s' "$*" >"$environment/.complete"
}

if [ "${EXECUTOR:-}" = 1 ]; then
  if toolkit=$(nvcc_of_toolkit); then
    found=""
    for headers in /usr/local/cuda-*/include /usr/local/cuda/include "$(dirname "$(readlink -f "$toolkit")")/../include"; do
      [ ! -e "$headers/cuda_fp16.h" ] || found=$headers
    done
    [ -z "$found" ] || { (cd "$found" && pwd); exit 0; }
  fi
  fetch .venv/cuda-headers-13.0 "its headers" nvidia-cuda-runtime==13.0.88 nvidia-cuda-crt==13.0.88 nvidia-cuda-cccl==13.0.85 ||
    die "pip could not fetch CUDA's headers, which the executor needs."
  echo "$PWD/.venv/cuda-headers-13.0"/lib/python3*/site-packages/nvidia/cu13/include
  exit 0
fi

if nvcc_of_toolkit; then exit 0; fi

# All parts of one release: left to itself pip mixes 13.0 with newer ones, which do not work together.
environment=.venv/cuda-13.0
if ! fetch "$environment" "the compiler" nvidia-cuda-nvcc==13.0.88 nvidia-cuda-crt==13.0.88 nvidia-nvvm==13.0.88 \
  nvidia-cuda-runtime==13.0.88 nvidia-cuda-cccl==13.0.85 nvidia-cuda-cupti==13.0.85; then
  [ "${CUDA:-}" = 1 ] && die "pip could not fetch the CUDA compiler. CUDA=0 builds the CPU half without it."
  say "CUDA: pip could not fetch the compiler; building the CPU half alone."
  exit 0
fi
root=$(echo "$PWD/$environment"/lib/python3*/site-packages/nvidia/cu13)
[ -x "$root/bin/nvcc" ] || die "the packages hold no nvcc under $root"
# A toolkit has lib64, and its shared libraries under their plain names too; CMake looks for both.
[ -e "$root/lib64" ] || ln -s lib "$root/lib64"
for library in "$root"/lib/libcudart.so.* "$root"/lib/libcupti.so.*; do
  [ -e "${library%.so.*}.so" ] || ln -s "$(basename "$library")" "${library%.so.*}.so"
done
echo "$root/bin/nvcc"
