#!/bin/sh
# Formats the tree: C, C++ and CUDA with clang-format, Python with ruff, in the versions of .pre-commit-config.yaml. They come
# from PyPI into .venv/format.
#   --check   changes nothing and fails where something would change or where ruff finds a mistake
# The exit code is 77 where the tools are missing and PyPI cannot be reached, and 1 where CI is set.
set -eu
cd "$(dirname "$0")/.."
case ${1:-} in
  "" | --check) ;;
  *) echo "format: there is --check and nothing else" >&2; exit 2 ;;
esac
version() { sed -n "/$1/,/rev:/s/.*rev: v//p" .pre-commit-config.yaml; }
parts="clang-format==$(version mirrors-clang-format) ruff==$(version ruff-pre-commit)"
environment=.venv/format
if [ "$(cat "$environment/.complete" 2>/dev/null)" != "$parts" ]; then
  rm -rf "$environment"
  python3 -m venv "$environment"
  # shellcheck disable=SC2086
  "$environment/bin/python" -m pip install --quiet --disable-pip-version-check --retries 2 $parts >&2 ||
    { rm -rf "$environment"; echo "format: not on this machine, and PyPI could not be reached: $parts" >&2; [ -z "${CI:-}" ] && exit 77; exit 1; }
  printf '%s' "$parts" >"$environment/.complete"
fi
sources() { find include src tool study measure tests examples python \( -name '*.[ch]' -o -name '*.[ch]pp' -o -name '*.cu' -o -name '*.cuh' \) -print0; }
bin=$environment/bin
if [ "${1:-}" = --check ]; then
  code=0
  sources | xargs -0 "$bin/clang-format" --dry-run -Werror || code=1
  "$bin/ruff" format --quiet --diff . || code=1
  "$bin/ruff" check --quiet . || code=1
  [ "$code" = 0 ] || echo "\`sh scripts/format.sh\` mends it." >&2
  exit $code
fi
sources | xargs -0 "$bin/clang-format" -i
"$bin/ruff" format --quiet .
"$bin/ruff" check --quiet --fix .
