# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154
# Sends every signal that asks a job to stop, to its step, its batch script and all of its processes, before, in and
# after a checkpoint, and kills ranks. Part of run.sh, which has the functions and variables used here. All jobs run at
# once, with ranks that sleep most of the time; signals_sent submits and signals, signals_judged waits. Each job must
# end with the weights of an undisturbed run. Runs take 15 s: longer than train.sbatch keeps a signal back while the
# program starts.
short_paced=("${paced[@]:1}" --set train.steps=300 --set device.pace_ms=50)
declare -A number=() every=([before]=1000000 [in]=1 [after]=20) option=([step]="" [batch]="--batch" [full]="--full")
wishes=()
for signal in USR1 TERM; do
  for target in step batch full; do
    for moment in before in after; do wishes+=("$signal-$target-$moment"); done
  done
done
wishes+=(INT-step-after INT-batch-after HUP-step-after HUP-batch-after KILL-step-after)

submit_signalled() { # SIGNAL-TARGET-MOMENT
  number[$1]=$(ECHELON=$work/echelon sbatch --parsable --nodes 2 --ntasks 2 --ntasks-per-node 1 --output "$work/$1.log" \
    train.sbatch "${short_paced[@]}" --set "checkpoint.every_steps=${every[${1##*-}]}" --set "run.results=$work/$1")
}
steps() { compgen -G "$work/$1/*/run-*/01/metrics.jsonl" > /dev/null; }
send() { # SIGNAL-TARGET-MOMENT
  local signal target moment
  IFS=- read -r signal target moment <<< "$1"
  if [ "$moment" = before ]; then within 60 steps "$1"; else within 60 has_checkpoint "$1"; fi
  local id=${number[$1]}
  [ "$signal" != KILL ] || id+=.0  # a KILL to the whole job would end the job
  # shellcheck disable=SC2086
  scancel ${option[$target]} --signal="$signal" "$id"
}
signals_sent() {
  timeout 60 mpirun -n 2 --oversubscribe --bind-to none ./echelon train "${short_paced[@]}" --set device.pace_ms=0 \
    --set "run.results=$work/whole" > whole.log 2>&1
  whole=$(checksum "$work/whole")
  for wish in "${wishes[@]}"; do submit_signalled "$wish"; done
  for wish in "${wishes[@]}"; do send "$wish"; done
}

# told FOLDER: prints how its first attempt ended, how many attempts there were, and the weights of the last one
told() {
  local all=("$work/$1"/*/run-*/[0-9][0-9])
  echo "$(sed -n 's/.*"exit_code": \([0-9]*\),.*/\1/p' "${all[0]}/status.json" 2> /dev/null) in ${#all[@]} $(checksum "$work/$1")"
}
signals_judged() {
  local expected='' found='' want
  for wish in "${wishes[@]}"; do
    within 150 is_over "${number[$wish]}"
    # srun takes a TERM to all processes as its own, and kills the ranks.
    case $wish in
      TERM-full-* | KILL-*) want=" in 2 $whole" ;;
      INT-step-*) want="130 in 1 $(checksum "$work/$wish")" ;;
      INT-*) want="75 in 1 $(checksum "$work/$wish")" ;;
      HUP-*) want="0 in 1 $whole" ;;
      *) want="75 in 2 $whole" ;;
    esac
    expected+="$wish $want, " found+="$wish $(told "$wish"), "
    [ "$want" = "$(told "$wish")" ] || tail -n 8 "$work/$wish.log" >> "$work/signals.log"
  done
  verdict "$1" "$expected" "$found" "$work/signals.log"
}
