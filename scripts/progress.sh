#!/bin/sh
# Runs a command and says how far it is: scripts/progress.sh TITLE LOG COMMAND...
# The command's output goes to LOG. On a terminal one line on stderr is kept up to date; elsewhere a line comes every half
# minute. How far it is comes from the last line of LOG that counts: "[12/345] Building CXX object a/b.cpp.o" of ninja,
# "12/345 Test #12: name ..." of ctest. The exit code is the command's.
set -u
title=$1
log=$2
shift 2
every=${PROGRESS_SECONDS:-30} # seconds between two lines where stderr is no terminal

duration() { # of seconds: "45 s", "2 min 5 s"
  if [ "$1" -lt 60 ]; then printf '%d s' "$1"; else printf '%d min %d s' $(($1 / 60)) $(($1 % 60)); fi
}
# "[12/345] b.cpp" of the log, or nothing
state() {
  tail -n 20 "$log" 2>/dev/null | sed -n \
    -e 's|^\[\([0-9]*/[0-9]*\)\] .*[ /]\([^ /]*\)$|[\1] \2|p' \
    -e 's|^ *\([0-9]*/[0-9]*\) Test *#[0-9]*: \([^ ]*\).*|[\1] \2|p' | tail -n 1 | sed 's/\.o$//'
}
line() { # line SECONDS
  now=$(state)
  printf '%s%s, %s' "$title" "${now:+ $now}" "$(duration "$1")"
}
# Waits beside the command. Its naps must not hold stderr open, or a reader of it would wait for the last one.
watch() {
  begin=$(date +%s)
  said=0
  while sleep 1 >/dev/null 2>&1 && kill -0 $$ 2>/dev/null; do
    seconds=$(($(date +%s) - begin))
    if [ "$terminal" = 1 ]; then
      width=$(stty size 2>/dev/null </dev/tty | cut -d ' ' -f 2)
      [ "${width:-0}" -gt 0 ] || width=80
      printf '\r\033[K%s' "$(line "$seconds" | cut -c "1-$((width - 1))")" >&2
    elif [ $((seconds - said)) -ge "$every" ]; then
      said=$seconds
      printf '%s\n' "$(line "$seconds")" >&2
    fi
  done
}

terminal=0
[ ! -t 2 ] || [ "${TERM:-dumb}" = dumb ] || terminal=1
: >"$log" || exit 2
watch &
watcher=$!
stop() {
  kill "$watcher" 2>/dev/null
  wait "$watcher" 2>/dev/null
  [ "$terminal" = 0 ] || printf '\r\033[K' >&2
}
# The command stays in the foreground, where Ctrl-C reaches it; this shell goes on to `stop` all the same.
trap 'stop; trap - INT; kill -INT $$' INT
trap 'stop; exit 143' TERM
trap 'stop; exit 129' HUP
"$@" >"$log" 2>&1
code=$?
stop
exit "$code"
