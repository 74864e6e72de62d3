#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs rings of tests and ends with one plain line over all of them.
#   run_tests.sh OUT [--quick | --soak] RING...      OUT: the build folder (build/release); RING: lint unit contract mpi run fuzz cluster cuda cuda_calls cuda_on_cpu smaller kills faults study_kills
set -u
out=$1; shift
filter='~[.]' # Catch2 runs hidden tests with any filter that does not exclude them
limit=1200
[ "${1:-}" = --quick ] && { filter+='~[slow]'; shift; }
[ "${1:-}" = --soak ] && { filter='[sampled],[soak]'; limit=14400; export ECHELON_TEST_ALL=1 ECHELON_FUZZ_TIMES=${ECHELON_FUZZ_TIMES:-50}; shift; }
# install_deps.sh --tests installs the Python packages with which tests read the program's files.
for venv in "$(dirname "$out")/venv" build/venv; do
  [ -x "$venv/bin/python" ] && export PYTHON=${PYTHON:-$PWD/$venv/bin/python}
done
# Makefile's `build` leaves the mpirun of another MPI than the one on PATH.
[ -d "$out/launch" ] && export PATH=$PWD/$out/launch:$PATH
summary=$(mktemp)
trap 'rm -f "$summary"' EXIT
export ECHELON_TEST_SUMMARY=$summary ECHELON_BINARY=$PWD/$out/bin/echelon OMP_WAIT_POLICY=passive OMPI_MCA_rmaps_base_oversubscribe=1 \
  PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe
# PMIx asks munge's daemon for a credential. Where munge is installed and its daemon has ended (the cluster ring starts
# one), each start of MPI waits 2.3 s for it.
export PMIX_MCA_psec=${PMIX_MCA_psec-^munge}
export LSAN_OPTIONS=suppressions=$PWD/tests/tools/lsan.supp:print_suppressions=0 UBSAN_OPTIONS=print_stacktrace=1
export ASAN_OPTIONS=allocator_may_return_null=1
# Where MPI runs, reports have whole call stacks (far slower): MPI's unloaded components have names only by callers.
whole_stacks=ASAN_OPTIONS=$ASAN_OPTIONS:fast_unwind_on_malloc=0
export TSAN_OPTIONS=suppressions=$PWD/tests/tools/tsan.supp:print_suppressions=0:allocator_may_return_null=1
# A sanitised build is slow and keeps freed memory resident: the limits that end hanging tests, here and in processes
# that tests start, are multiplied by the patience. The thread sanitizer cannot see the barriers of OpenMP, nor into
# oneDNN's threads.
patience=1
case $(basename "$out") in
  *tsan*) patience=10 filter+='~[speed]~[bundle]~[resident]~[onednn]'; export OMP_THREAD_LIMIT=1 ;;
  *asan* | *ubsan*) patience=5 filter+='~[speed]~[bundle]~[resident]' ;;
esac
export ECHELON_TEST_PATIENCE=${ECHELON_TEST_PATIENCE:-$patience}
quick=(${filter:+"$filter"})
[ "$(id -u)" = 0 ] && export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
failed=0

# How long the rings from this one on took the last time on this machine: " (120 s the last time, 15 min with all after
# it)"; nothing for a ring that has not run here yet.
left_after() { # name
  [ -e "$out/ring_seconds" ] || return 0
  awk -F'|' -v name="$1" -v rings=" ${todo[*]} " '
    { s[$1] = $2 }
    END {
      if (!(name in s)) exit
      for (ring in s) { split(ring, word, /[ ,]/); if (ring !~ /first half/ && index(rings, " " word[1] " ")) left += s[ring] }
      printf " (%d s the last time; about %d min with all that follow)", s[name], (left + 59) / 60
    }' "$out/ring_seconds"
}

# Runs one ring under a limit; a ring that dies without its closing line counts as one failure.
ring() { # name limit_s command...
  local name=$1 limit=$(($2 * ECHELON_TEST_PATIENCE)); shift 2
  echo "== $name$(left_after "$name")"
  local before begin=$SECONDS; before=$(wc -l < "$summary")
  timeout --kill-after=10 "$limit" "$@"
  local code=$?
  [ $code -eq 0 ] && echo "$name|$((SECONDS - begin))" >> "$out/ring_seconds"
  [ $code -ne 0 ] && failed=1
  [ $code -eq 124 ] && echo "$name: still running after $limit s, ended"
  [ "$(wc -l < "$summary")" -gt "$before" ] || { echo "$name: ended with code $code and no closing line"; echo "$name: 0 passed, 1 failed, 0 skipped" >> "$summary"; failed=1; }
}

# skip RING KIND REASON: reports a ring that does not run here; kinds as in tests/support/skip.hpp
skip() {
  echo "== $1"
  printf '%s\n' "skipped for $2: \"$1\" $3" "$1: 0 passed, 0 failed, 1 skipped" | tee -a "$summary"
}

# Runs a ring in two halves at once: the tests of some files, and all others.
halves() { # name limit_s "FILE.." command...
  local name=$1 limit=$2 files=$3 first='' others='' file log own; shift 3
  local command=("$@" --filenames-as-tags)
  if [[ $filter == *,* ]]; then ring "$name" "$limit" "${command[@]}" "$filter"; return; fi
  for file in $files; do
    first+="${first:+,}[#test_$file]$filter" others+="~[#test_$file]"
  done
  log=$(mktemp) own=$(mktemp)
  (
    summary=$own ECHELON_TEST_SUMMARY=$own
    ring "$name, the first half" "$limit" "${command[@]}" "$first"
    exit $failed
  ) > "$log" 2>&1 &
  ring "$name" "$limit" "${command[@]}" "$others$filter"
  wait $! || failed=1
  cat "$log"
  cat "$own" >> "$summary"
  rm -f "$log" "$own"
}

todo=("$@")
for name in "$@"; do
  case $name in
    lint) ring lint 300 tests/lint/lint.sh ;;
    mpi)
      for ranks in 1 2 3 4; do  # [several] needs at least two ranks; [pair] two; [four] four
        case $ranks in 1) fit='~[several]~[pair]~[four]' ;; 2) fit='~[four]' ;; 3) fit='~[pair]~[four]' ;; *) fit='~[pair]' ;; esac
        [[ $filter == *,* ]] || fit+=$filter
        ring "mpi on $ranks ranks" 600 env OMP_NUM_THREADS=1 "$whole_stacks" mpirun -n $ranks --oversubscribe --bind-to none "$out/tests/mpi" ${fit:+"$fit"}
      done ;;
    smaller) # the tests whose numbers depend on the processor, as a machine without AVX-512 computes them
      for name in unit contract; do
        ring "$name of avx2" 300 env ECHELON_MAX_ISA=avx2 "$out/tests/$name" "[onednn]$filter,[golden]$filter"
      done ;;
    cuda) [ -x "$out/tests/cuda" ] && ring cuda 1200 "$out/tests/cuda" ;;
    cuda_calls)
      if [ -x "$out/cuda_calls/cuda_calls" ]; then ring cuda_calls 120 "$out/cuda_calls/cuda_calls" "${quick[@]}"; else
        skip cuda_calls gpu "built without CUDA (nvcc, cudnn.h, nccl.h)"
      fi ;;
    cuda_on_cpu)  # its threads are fibers
      case $(basename "$out") in
        *tsan*) skip cuda_on_cpu build "the thread sanitizer knows of no fibers" ;;
        *) ring cuda_on_cpu 120 "$out/tests/cuda_on_cpu" "${quick[@]}" ;;
      esac ;;
    kills) ring kills 7200 tests/tools/kills.py "$out/bin/echelon" ;;
    faults) ring faults 7200 tests/tools/faults.py "$out/bin/echelon" ;;
    study_kills) ring study_kills 7200 tests/tools/study_kills.py "$out/bin/echelon" ;;
    cluster) ring cluster 900 env -u PMIX_MCA_psec tests/cluster/run.sh "$out" ;;  # Slurm uses munge
    # Tests of the whole program mostly wait: for processes to start, end or answer signals. The longest run first.
    run) halves run 2400 'servers resume refusals agreement bench_allreduce sequences' env "$whole_stacks" "$out/tests/run" --durations yes ;;
    contract) halves contract $limit 'splits split_norms split_single split_codecs space space_windows config_pairs equality' "$out/tests/contract" ;;
    # Under sanitisers leaks are not looked for, as processes end by _exit; large requests fail, as where memory ends.
    fuzz) ring fuzz $limit env ASAN_OPTIONS=detect_leaks=0:max_allocation_size_mb=1024:allocator_may_return_null=1 "$out/tests/fuzz" --times "${ECHELON_FUZZ_TIMES:-1}" --limit $((20 * ECHELON_TEST_PATIENCE)) ;;
    *) ring "$name" $limit "$out/tests/$name" "${quick[@]}" ;;
  esac
  todo=("${todo[@]:1}")
done
# ECHELON_TEST_SKIPS="gpu processor" lists what may be skipped; another kind is a failure. Unset, anything may be.
forbidden() { grep '^skipped for ' "$summary" | grep -vE "^skipped for (${ECHELON_TEST_SKIPS// /|}):"; }
if [ -n "${ECHELON_TEST_SKIPS+set}" ] && [ -n "$(forbidden)" ]; then
  failed=1
  forbidden | sed 's/^skipped for/failed: only what is missing of '"${ECHELON_TEST_SKIPS// /, }"' may be skipped here, not/' > "$summary.forbidden"
  echo "skips: 0 passed, $(wc -l < "$summary.forbidden") failed, 0 skipped" >> "$summary"
  cat "$summary.forbidden" >> "$summary"
  rm "$summary.forbidden"
fi
echo
grep -E '^[^:]+: [0-9]+ passed' "$summary"
grep '^skipped for ' "$summary" | sort
grep -vE '^[^:]+: [0-9]+ passed|^skipped for ' "$summary"  # failures come last, because the end of a log is seen first
awk -F'[:,]' '/: [0-9]+ passed, [0-9]+ failed, [0-9]+ skipped$/ { for (i = 1; i <= NF; i++) { if ($i ~ /passed/) p += $i; if ($i ~ /failed/) f += $i; if ($i ~ /skipped/) s += $i } }
  END { printf "%d passed, %d failed, %d skipped\n", p, f, s }' "$summary"
exit $failed
