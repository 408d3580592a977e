#!/bin/sh
# Builds a preset and runs its tests: scripts/build_and_test.sh [PRESET] [COMMAND...], where the tests are started with COMMAND.
# Prints the build folder on stdout, and on stderr what was not passed; the rest is in tests.log of that folder.
set -eu
cd "$(dirname "$0")/.."
directory=$(sh scripts/build.sh "${1:-}")
[ $# = 0 ] || shift
echo "Testing ($directory)." >&2
code=0
sh scripts/progress.sh "Testing ($directory)" "$directory/tests.log" \
  "${@:-env}" ctest --test-dir "$directory" -j "$(nproc)" --output-on-failure --no-tests=error || code=$?
grep -vE '^( *Start +[0-9]+: | *[0-9]+/[0-9]+ Test +#[0-9]+: .* Passed +[0-9.]+ sec$)' "$directory/tests.log" >&2 || true
[ "$code" = 0 ] || { echo "Tests failed; every line is in $directory/tests.log." >&2; exit "$code"; }
echo "$directory"
