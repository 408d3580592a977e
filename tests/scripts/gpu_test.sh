#!/bin/sh
# scripts/gpu.sh with a finished build runs what it is told, and says what failed: gpu_test.sh ROOT.
root=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/build/tool"
cat >"$work/build/tool/tmaops" <<'TOOL'
#!/bin/sh
echo "$@"
case $2 in *tile_load*) exit 1 ;; esac
TOOL
chmod +x "$work/build/tool/tmaops"
fail() { echo "$1"; cat "$work/said"; exit 1; }
run() { TMAOPS_BUILD=$work/build TMAOPS_REVISION=1 "$root/scripts/gpu.sh" "$work/out" "$@" >"$work/said" 2>/dev/null; }

run bench=seed_gemm,gemm || fail "a passing list fails"
grep -q "configs/gemm.yaml -f -o $work/out/gemm.json" "$work/out/bench_gemm.log" || fail "no gemm"
[ "$(ls "$work/out" | wc -l)" = 2 ] || fail "more than was asked for"
run bench && fail "a failing configuration passes"
grep -q "bench_tile_load: FAILED" "$work/said" || fail "the failing one is not named"
for config in "$root"/configs/gemm*.yaml "$root"/configs/ms_deform_attn*.yaml "$root"/configs/resample*.yaml "$root"/configs/seed_*.yaml; do
  [ -f "$work/out/bench_$(basename "$config" .yaml).log" ] || fail "$config was left out"
done
[ -e "$work/out/configure.log" ] && fail "something was configured"
run nonsense && fail "an unknown step passes"
exit 0
