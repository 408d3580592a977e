#!/bin/sh
# TMAOPS_REVISION is the revision that result files name, of a tuning too; without it and without a repository none is known.
set -eu
root=$1
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
said() { cmake -DSOURCE_DIR="$out" -DOUTPUT="$out/revision.hpp" -P "$root/cmake/TmaopsRevision.cmake" && cat "$out/revision.hpp"; }
export GIT_CEILING_DIRECTORIES="$out"
TMAOPS_REVISION=0123456789ab said | grep -q '"0123456789ab"'
unset TMAOPS_REVISION
said | grep -q '"unknown"'
