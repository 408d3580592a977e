#!/usr/bin/env bash
# Builds on a machine with a GPU and runs what needs one: scripts/gpu.sh OUT_DIR [tests] [sanitizer] [bench[=NAME,NAME]]
# scripts/gpu.sh OUT_DIR ptx: the operators' tests with a build of PTX for compute capability 8.0, which the driver compiles.
# Logs and results go to OUT_DIR; the last lines printed are the verdicts. Without words: tests and sanitizer.
# bench runs every configuration of a GPU in configs/; with names only those: bench=seed_gemm,gemm.
# TMAOPS_BUILD, when set, is a folder with a finished build: nothing is configured or built then.
# A copy of the tree without its repository does not know its revision: TMAOPS_REVISION, when set, goes into the result
# files, for example TMAOPS_REVISION=$(git rev-parse --short=12 HEAD) from the machine that has the repository.
set -uo pipefail
out=$(mkdir -p "$1" && cd "$1" && pwd)
shift
steps=${*:-tests sanitizer}
root=$(cd "$(dirname "$0")/.." && pwd)

if [[ -z ${TMAOPS_REVISION:-} ]] && ! git -C "$root" rev-parse HEAD >/dev/null 2>&1; then
  echo "TMAOPS_REVISION is not set and there is no repository: result files will say revision unknown"
fi
export TMAOPS_REVISION
if [[ -n ${TMAOPS_BUILD:-} ]]; then
  build=$(cd "$TMAOPS_BUILD" && pwd) || exit 2
else
  build=$root/build-gpu
  gpus=AUTO
  if [[ $steps == ptx ]]; then
    build=$root/build-ptx
    gpus=80-virtual
  fi
  generator=()
  command -v ninja >/dev/null && generator=(-G Ninja)
  cmake -S "$root" -B "$build" "${generator[@]}" -DCMAKE_BUILD_TYPE=Release -DTMAOPS_CUDA=ON -DTMAOPS_GPUS=$gpus \
    >"$out/configure.log" 2>&1 ||
    { tail -30 "$out/configure.log"; exit 1; }
  cmake --build "$build" -j "$(nproc)" >"$out/build.log" 2>&1 ||
    { grep -E "error|FAILED" -A5 "$out/build.log" | head -60; exit 1; }
fi

verdict=0
verdicts=""
step() {  # step NAME COMMAND...: runs it, keeps its output, remembers whether it failed
  local name=$1
  shift
  if "$@" >"$out/$name.log" 2>&1; then
    verdicts+="$name: ok"$'\n'
  else
    verdicts+="$name: FAILED"$'\n'
    verdict=1
    grep -E "FAILED|Failure|ERROR|error" -A6 "$out/$name.log" | head -80
  fi
}
for word in $steps; do
  case $word in
    tests)
      step tests ctest --test-dir "$build" -L gpu --output-on-failure --timeout 60 -j 4
      step codegen ctest --test-dir "$build" -R '^codegen' --output-on-failure
      ;;
    ptx)  # in one process, which compiles each kernel once
      step ptx env CUDA_FORCE_PTX_JIT=1 timeout 1800 "$build/tests/gpu/test_gpu"
      ;;
    sanitizer)  # The watchdog test breaks its context on purpose and is left out;
      # and under the sanitizer kernels do not overlap.
      step memcheck timeout 1200 compute-sanitizer --tool memcheck --error-exitcode 9 "$build/tests/gpu/test_gpu" \
        --gtest_filter=-DependentLaunch.*
      ;;
    bench | bench=*)
      configs=("$root"/configs/{gemm,ms_deform_attn,resample,seed,tile_load}*.yaml)
      if [[ $word == bench=* ]]; then
        IFS=, read -ra names <<<"${word#bench=}"
        configs=("${names[@]/#/$root/configs/}")
        configs=("${configs[@]/%/.yaml}")
      fi
      for config in "${configs[@]}"; do
        name=$(basename "$config" .yaml)
        step "bench_$name" timeout 600 "$build/tool/tmaops" bench "$config" -f -o "$out/$name.json"
      done
      ;;
    *) echo "unknown step $word"; exit 2 ;;
  esac
done
tail -25 "$out"/tests.log 2>/dev/null
nvidia-smi --query-gpu=name,driver_version,clocks.sm,temperature.gpu --format=csv
printf '%s' "$verdicts"
exit $verdict
