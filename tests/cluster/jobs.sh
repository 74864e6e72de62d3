# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154
# Tests what Slurm does to jobs. Part of run.sh, which has the functions and variables used here. All jobs run at once,
# with ranks that sleep most of the time.
. ./signals.sh
signals_sent
# codes FOLDER: prints the codes of all attempts; code FOLDER: the code of its newest attempt
codes() { cat "$1"/array/run-*/[0-9][0-9]/status.json 2> /dev/null | sed -n 's/.*"exit_code": \([0-9]*\),.*/\1/p' | xargs; }
code() { local all=("$work/$1"/*/run-*/[0-9][0-9]); sed -n 's/.*"exit_code": \([0-9]*\),.*/\1/p' "${all[-1]}/status.json" 2> /dev/null; }

# Slurm limits a job to 60 s at least; USR1 comes 50 s before, or up to 30 s later: the run must take longer.
timed=$(paced+=(--set device.pace_ms=25); submit_paced timed --time 1 --signal B:USR1@50)
suspended=$(submit_paced suspended)
cancelled=$(submit_paced cancelled)
array=$(ECHELON=$work/echelon RANKS="1 1 2" sbatch --parsable --array 0,2 --nodes 2 --ntasks-per-node 1 --output "$work/array-%a.log" \
  scaling_array.sbatch "${paced[@]:1}" --set "name=array")
# MPI_Init of Open MPI 4.1 crashes now and then (about 1 of 40 starts on two busy cores); ranks then leave with 7, and
# train.sbatch goes back into the queue.
# shellcheck disable=SC2016
mpi_may_crash='code=7; for try in 1 2 3; do [ $code -eq 7 ] || break;'
# Slurm sends no signal but that of the limit: a run that knows the limit stops before it; another one gets TERM.
for margin in 20 0; do
  limited+=("$(sbatch --parsable --no-requeue --time 1 --nodes 2 --ntasks 2 --output "$work/limit-$margin.log" \
    --wrap "$mpi_may_crash srun --mpi=pmix --cpu-bind=none --kill-on-bad-exit=1 ./echelon ${paced[*]} \
      --set train.steps=100000 --set checkpoint.every_steps=0 --set run.stop_before_end_s=$margin \
      --set run.results=$work/limit-$margin; code=\$?; done")")
done
# The same in train.sbatch, which CONT does not stop. Each attempt has 60 to 90 s of the 80.
struck=$(paced+=(--set device.pace_ms=40 --set run.stop_before_end_s=0); submit_paced struck --time 1 --signal B:CONT@1)
# The scripts hold the signal back until they are 10 s old.
for k in 1 2; do within 60 compgen -G "results/k$k/array/run-*/checkpoints/step-*.h5" > /dev/null; done
for element in 0 2; do scancel --batch --signal=USR1 "${array}_$element"; done
within 60 has_checkpoint suspended && scontrol suspend "$suspended"
since=$SECONDS
within 60 has_checkpoint cancelled && scancel "$cancelled"
within 60 is_over "$cancelled"
ended=$(code cancelled)
cancelled=$(submit_paced cancelled)
while [ $((SECONDS - since)) -lt 20 ]; do sleep 0.5; done
scontrol resume "$suspended"
# The timed job may need five attempts of 10 s, with a wait in the queue before each.
within 300 is_over "$timed"
for job in "$suspended" "$cancelled" "$array" "${limited[@]}" "$struck"; do within 120 is_over "$job"; done
squeue --format '%i %j %T %r %S' > "$work/queue.log"
verdict "${names[7]}" "$(checksum "$work/paced") resumed" "$(went_on timed | sed 's/resumed [1-9].*/resumed/')" "$work/timed.log" "$work/queue.log"
verdict "${names[8]}" "$(checksum "$work/paced") code 0, not resumed" \
  "$(checksum "$work/suspended") code $(code suspended), $(grep -q 'resuming  from step' suspended.log || echo not) resumed" "$work/suspended.log"
verdict "${names[10]}" "75, then $(checksum "$work/paced") resumed 1" "$ended, then $(went_on cancelled)" "$work/cancelled.log"
verdict "${names[11]}" "1 rank: 75 0, 2 ranks: 75 0" "1 rank: $(codes results/k1), 2 ranks: $(codes results/k2)" \
  "$work"/array-[02].log "$work/queue.log"
signals_judged "${names[19]}"
reason() { sed -n 's/.*"reason": "\([^;]*\);.*/\1/p' "$work/$1"/*/run-*/01/status.json; }
verdict "${names[20]}" "75 the job ends soon (run.stop_before_end_s), 75 asked to stop by a signal, then $(checksum "$work/paced") resumed 1" \
  "$(code limit-20) $(reason limit-20), $(code limit-0) $(reason limit-0), then $(went_on struck)" "$work"/limit-*.log "$work/struck.log"

# These jobs run alone, because an urgent job takes whole hosts.
for i in 1 2 3 4; do preempted[i]=$(submit_paced "preempted-$i"); done
for i in 1 2 3 4; do within 60 has_checkpoint "preempted-$i"; done
sbatch --parsable --partition urgent --nodes 4 --exclusive --output "$work/urgent.log" --wrap "sleep 2" > /dev/null
for i in 1 2 3 4; do within 120 is_over "${preempted[i]}"; done
resumed=$(for i in 1 2 3 4; do went_on "preempted-$i"; done | sort | uniq -c)
verdict "${names[9]}" "      4 $(checksum "$work/paced") resumed 1" "$resumed" "$work"/preempted-*.log

timeout 60 srun --mpi=none --nodes 2 --ntasks 2 ./echelon "${plain[@]}" --set train.steps=1 --set "run.results=$work/alone" > alone.log 2>&1
verdict "${names[12]}" "exit 3, srun --mpi=pmix" "exit $?, $(grep -o 'srun --mpi=pmix' alone.log | head -1)" "$work/alone.log"

timeout 60 srun --mpi=pmi2 --nodes 2 --ntasks 2 ./echelon "${plain[@]}" --set train.steps=1 > pmi2.log 2>&1
for _ in 1 2 3; do
  timeout 60 srun --mpi=pmix --nodes 3 --ntasks 3 ./echelon "${plain[@]}" --set train.steps=1 --set run.results=/tmp/own > own.log 2>&1
  code=$?
  [ $code -eq 7 ] || break
done
verdict "${names[21]}" "srun --mpi=pmix echelon, exit 0: h2, h3 do not see what rank 0 on h1 writes" \
  "$(grep -o 'srun --mpi=pmix echelon' pmi2.log), exit $code: $(grep -o 'h2, h3 do not see what rank 0 on h1 writes' own.log)" pmi2.log own.log

timeout 120 srun --mpi=pmix --nodes 2 --ntasks 2 --ntasks-per-node 1 --cpu-bind=none ./echelon verify --quick --dir "$work" > verify.log 2>&1
verdict "${names[17]}" "exit 0, 0 failed" "exit $?, $(grep -o '[0-9]* failed' verify.log | tail -1)" "$work/verify.log"
