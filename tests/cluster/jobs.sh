# shellcheck shell=bash disable=SC2154
# What Slurm does to jobs: part of run.sh, which has the functions and variables used here. All jobs run at once, of ranks
# that sleep most of the time.
# code FOLDER: that of its newest attempt
code() { local all=("$work/$1"/*/run-*/[0-9][0-9]); sed -n 's/.*"exit_code": \([0-9]*\),.*/\1/p' "${all[-1]}/status.json" 2> /dev/null; }

# 60 s are the least that Slurm can limit; USR1 comes 50 s before, or up to 30 s later: the run takes longer.
timed=$(paced+=(--set device.pace_ms=25); submit_paced timed --time 1 --signal B:USR1@50)
suspended=$(submit_paced suspended)
cancelled=$(submit_paced cancelled)
array=$(ECHELON=$work/echelon RANKS="1 2" sbatch --parsable --array 0-1 --nodes 2 --ntasks 2 --ntasks-per-node 1 --output "$work/array-%a.log" \
  scaling_array.sbatch "${paced[@]:1}" --set train.steps=100 --set "name=array")
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
for job in "$suspended" "$cancelled" "$array"; do within 120 is_over "$job"; done
squeue --format '%i %j %T %r %S' > "$work/queue.log"
verdict "${names[7]}" "$(checksum "$work/paced") resumed" "$(went_on timed | sed 's/resumed [1-9].*/resumed/')" "$work/timed.log" "$work/queue.log"
verdict "${names[8]}" "$(checksum "$work/paced") code 0, not resumed" \
  "$(checksum "$work/suspended") code $(code suspended), $(grep -q 'resuming  from step' suspended.log || echo not) resumed" "$work/suspended.log"
verdict "${names[10]}" "75, then $(checksum "$work/paced") resumed 1" "$ended, then $(went_on cancelled)" "$work/cancelled.log"
verdict "${names[11]}" "1 rank: finished, 2 ranks: finished" \
  "1 rank: $(grep -ho finished results/k1/array/run-*/01/status.json | head -1), 2 ranks: $(grep -ho finished results/k2/array/run-*/01/status.json | head -1)" \
  "$work"/array-[01].log "$work/queue.log"

# Alone: an urgent job takes whole hosts.
preempted=$(submit_paced preempted)
within 60 has_checkpoint preempted
sbatch --parsable --partition urgent --nodes 4 --exclusive --output "$work/urgent.log" --wrap "sleep 2" > /dev/null
within 120 is_over "$preempted"
verdict "${names[9]}" "$(checksum "$work/paced") resumed 1" "$(went_on preempted)" "$work/preempted.log"

timeout 60 srun --mpi=none --nodes 2 --ntasks 2 ./echelon "${plain[@]}" --set train.steps=1 --set "run.results=$work/alone" > alone.log 2>&1
verdict "${names[12]}" "exit 3, srun --mpi=pmix" "exit $?, $(grep -o 'srun --mpi=pmix' alone.log | head -1)" "$work/alone.log"

timeout 120 srun --mpi=pmix --nodes 2 --ntasks 2 --ntasks-per-node 1 --cpu-bind=none ./echelon verify --quick --dir "$work" > verify.log 2>&1
verdict "${names[-1]}" "exit 0, 0 failed" "exit $?, $(grep -o '[0-9]* failed' verify.log | tail -1)" "$work/verify.log"
