#!/bin/sh
# scripts/progress.sh as build.sh and test.sh use it: progress_test.sh SOURCE_DIR
set -eu
progress=$1/scripts/progress.sh
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
fail() { printf '%s\n' "$*" >&2; cat "$folder/err" >&2; exit 1; }

cat >"$folder/build" <<'END'
echo "[11/345] Building CXX object src/CMakeFiles/x.dir/a/first.cpp.o"
sleep 3
echo " 7/90 Test  #7: Table.Widths ....   Passed    0.01 sec"
sleep 3
exit 7
END
code=0
PROGRESS_SECONDS=2 sh "$progress" "Building (release)" "$folder/log" sh "$folder/build" 2>"$folder/err" >"$folder/out" || code=$?
[ "$code" = 7 ] || fail "exit code $code, not the command's 7"
[ ! -s "$folder/out" ] || fail "something on stdout"
grep -q '^Building (release) \[11/345\] first.cpp, [23] s$' "$folder/err" || fail "no line about the build"
grep -q '^Building (release) \[7/90\] Table.Widths, [4-6] s$' "$folder/err" || fail "no line about the tests"
[ "$(wc -l <"$folder/err")" -le 3 ] || fail "more than a line every 2 seconds"
grep -q '^\[11/345\] Building' "$folder/log" || fail "the log is not the command's output"

# Quick work says nothing, and a reader of stderr is not held up by a nap of the watcher.
begin=$(date +%s)
lines=$( (sh "$progress" "Building (release)" "$folder/log" true) 2>&1 | wc -l)
[ "$lines" = 0 ] || fail "a line about work of no time"
[ $(($(date +%s) - begin)) -le 1 ] || fail "waits for its own nap"
