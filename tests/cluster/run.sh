#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The cluster ring runs the whole program over hosts of its own (hosts.sh), under mpirun and under Slurm.
#   run.sh OUT        OUT: the build folder
# Needs root and network namespaces, and Slurm for the second half; tests that lack something are skipped aloud.
set -u
cd "$(dirname "$0")/../.."
hosts=$PWD/tests/cluster/hosts.sh
work=$(mktemp -d /var/tmp/echelon-cluster.XXXXXX)
# The files that hosts need are in a place that all of them see, because each host has a /tmp of its own.
mkdir "$work/data"
cp "$1/bin/echelon" configs/smoke/digits.toml configs/scaling/study_digits.toml slurm/*.sbatch "$work"
cp tests/cluster/jobs.sh tests/cluster/signals.sh tests/cluster/studies.sh tests/cluster/shaped_pairs.sh "$work"
cp -r data/digits "$work/data"
cd "$work" || exit 1
passed=0 failed=0 skipped=0

finish() {
  "$hosts" down
  cd / && rm -rf "$work"
  local line="$passed passed, $failed failed, $skipped skipped"
  echo "cluster: $line"
  [ -z "${ECHELON_TEST_SUMMARY:-}" ] || echo "cluster: $line" >> "$ECHELON_TEST_SUMMARY"
  [ $failed -eq 0 ]
}
trap '"$hosts" down; rm -rf "$work"; exit 143' HUP INT TERM
# skip NAME KIND REASON: kinds as in tests/support/skip.hpp
skip() {
  local line="skipped for $2: \"$1\" $3"
  echo "$line"
  [ -z "${ECHELON_TEST_SUMMARY:-}" ] || echo "$line" >> "$ECHELON_TEST_SUMMARY"
  skipped=$((skipped + 1))
}
# verdict NAME EXPECTED FOUND LOG..
verdict() {
  if [ "$2" = "$3" ] && [ -n "$2" ]; then passed=$((passed + 1)); else
    failed=$((failed + 1))
    echo "FAILED: $1: expected '$2', found '$3'"
    tail -n 30 "${@:4}"
  fi
}

names=("weights over four hosts are those of four ranks on one"
  "bench network names the host whose link is slow one way"
  "a host that is unplugged ends runs of all strategies with 7, by name"
  "a batch job over four hosts ends with the same weights"
  "a job that leaves with 75 requeues itself and goes on from its checkpoint"
  "a job that 'scontrol requeue' ends goes on from its checkpoint"
  "the jobs of a study that were submitted together run its cells, and the last one reports"
  "a job whose time is over goes on from its checkpoint"
  "a job that was suspended for longer than run.hang_timeout_s goes on"
  "jobs that another one preempts go on from their checkpoints"
  "scancel ends a job with a checkpoint, and the same command goes on from it"
  "each element of an array trains on its number of ranks, and goes on after a signal"
  "tasks that do not find each other are refused, with the launch that would do"
  "a study that measures its network runs no cell over a blocked link, which it names"
  "a study whose ranks cannot meet over a blocked link says so, by host, and ends"
  "cells of a study run side by side, each on as few hosts as hold it"
  "arrays of jobs share the cells of a study: each runs once, and the last job reports"
  "verify passes under srun"
  "messages that are slowed down take what shaped links take, within 5 %"
  "signals to step, script or all of a job, before, in and after a checkpoint, lose nothing"
  "a job ends with a checkpoint before its time limit, and where the limit strikes"
  "ranks without PMIx, and results that only one host has, are named with the cure"
  "a run names the host whose slow link it waits for")
if [ "$(id -u)" != 0 ] || ! command -v ip tc nsenter > /dev/null || ! ip netns add echelon-probe 2> /dev/null; then
  for name in "${names[@]}"; do skip "$name" right "needs root, iproute2 and network namespaces"; done
  finish; exit
fi
ip netns del echelon-probe
# Takes down the hosts of a run that was killed; waits for the hosts of a run that goes on.
for _ in $(seq 900); do
  ! "$hosts" abandoned || "$hosts" down
  [ -e /var/tmp/echelon-hosts/owner ] || break
  sleep 1
done
export ECHELON_HOSTS_OWNER=$$
if [ -e /var/tmp/echelon-hosts ]; then  # somebody else's hosts, which are left alone
  hosts=true
  for name in "${names[@]}"; do skip "$name" setting "other hosts are up: tests/cluster/hosts.sh down"; done
  finish; exit
fi

export OMP_NUM_THREADS=1
plain=(train digits.toml --set train.epochs=0 --set run.progress=none --set data.test= --set device.threads=1)
train=("${plain[@]}" --set train.steps=20)
# Runs take at least 20 s: longer than train.sbatch keeps a signal back while the program starts.
paced=("${plain[@]}" --set train.steps=2000 --set device.pace_ms=10 --set checkpoint.every_steps=20 --set run.hang_timeout_s=15)
# checksum FOLDER: prints the checksum of the weights after the last attempt in a folder of results.
checksum() {
  local attempts=("$1"/*/run-*/[0-9][0-9])
  sed -n 's/.*"weights_checksum": "\(.*\)",/\1/p' "${attempts[-1]}/summary.json" 2> /dev/null
}

# within SECONDS COMMAND..: repeats COMMAND until it succeeds
within() {
  local end=$((SECONDS + $1)); shift
  until "$@"; do [ $SECONDS -lt $end ] || return 1; sleep 0.2; done
}
has_checkpoint() { compgen -G "$work/$1/*/run-*/checkpoints/step-*.h5" > /dev/null; }
# Fails where squeue fails, unless Slurm has forgotten the job. is_over asks twice, because squeue may not show a job
# that is just going back into the queue.
is_away() { local state; state=$(squeue -h -j "$1" -o %T 2>&1) && [ -z "$state" ] || [[ $state = *"Invalid job id"* ]]; }
is_over() { is_away "$1" && sleep 0.5 && is_away "$1"; }
submit_paced() { # FOLDER SBATCH-OPTIONS..: the job's number
  local folder=$1; shift
  ECHELON=$work/echelon sbatch --parsable --nodes 2 --ntasks 2 --ntasks-per-node 1 --output "$work/$folder.log" "$@" \
    train.sbatch "${paced[@]:1}" --set "run.results=$work/$folder"
}
# went_on FOLDER: prints the weights' checksum at the end, and how many later attempts began at a checkpoint
went_on() { echo "$(checksum "$work/$1") resumed $(grep -c 'resuming  from step [1-9]' "$work/$1.log")"; }

"$hosts" up 4 1gbit > "$work/up.log" 2>&1 || { cat "$work/up.log"; failed=1; finish; exit 1; }
timeout 120 mpirun -n 4 --oversubscribe --bind-to none "$work/echelon" "${train[@]}" --set "run.results=$work/one" > "$work/one.log" 2>&1
timeout 120 "$hosts" mpirun -n 4 "$work/echelon" "${train[@]}" --set "run.results=$work/four" > "$work/four.log" 2>&1
verdict "${names[0]}" "$(checksum "$work/one")" "$(checksum "$work/four")" "$work/four.log"

"$hosts" shape 100mbit h3
timeout 120 "$hosts" mpirun -n 4 "$work/echelon" bench network --out "$work/network.json" > "$work/network.log" 2>&1
"$hosts" shape 1gbit h3
"$hosts" shape 4mbit h3
for algorithm in ring tree; do
  timeout 120 "$hosts" mpirun -n 4 "$work/echelon" "${train[@]}" --set "exchange.algorithm=$algorithm" \
    --set "run.results=$work/slow-$algorithm" >> "$work/slow.log" 2>&1
done
"$hosts" shape 1gbit h3
verdict "${names[22]}" 2 "$(grep -c 'warning: .* h3.* limits the exchange' "$work/slow.log")" "$work/slow.log"
verdict "${names[1]}" 'slow: h3 is slow to 3 of 3 others 1' \
  "$(grep -o 'slow: h3 is slow to 3 of 3 others' "$work/network.log") $(grep -c echelon-network "$work/network.json")" \
  "$work/network.log"

# All runs at once, with ranks that sleep most of the time. A host that comes back must find none of its ranks.
strategies=$("$work/echelon" info --strategies | sed -n 's/.*"strategy":"\([a-z_]*\)".*/\1/p' | uniq)
has_rows() { compgen -G "$work/$1/*/run-*/01/metrics.jsonl" > /dev/null; }
runs=()
# mpirun sometimes cannot reach its own daemons where nine start at once, and blames a firewall: no rank ran then, and
# the launch is repeated.
unplugged() { # STRATEGY
  for _ in 1 2 3; do
    timeout 90 "$hosts" mpirun -n 4 "$work/echelon" "${plain[@]}" --set train.steps=100000 --set device.pace_ms=50 \
      --set run.hang_timeout_s=8 --set "exchange.strategy=$1" --set "run.results=$work/unplugged-$1" \
      > "$work/unplugged-$1.log" 2>&1
    grep -q firewall "$work/unplugged-$1.log" && ! has_rows "unplugged-$1" || return
  done
}
for strategy in $strategies; do
  unplugged "$strategy" &
  runs+=($!)
done
for strategy in $strategies; do within 60 has_rows "unplugged-$strategy"; done
"$hosts" unplug h4
wait "${runs[@]}"
"$hosts" fell h4
"$hosts" plug h4
expected='' found=''
for strategy in $strategies; do
  expected+="$strategy 7 named, "
  status=$(cat "$work/unplugged-$strategy"/*/run-*/01/status.json 2> /dev/null)
  code=$(sed -n 's/.*"exit_code": \([0-9]*\),/\1/p' <<< "$status")
  named=$(grep -c 'for rank [0-3] on h[1-4]' <<< "$status")  # not always rank 3: it may be a rank that waits itself
  found+="$strategy $code $([ "$named" = 0 ] || echo named), "
  tail -5 "$work/unplugged-$strategy.log" >> "$work/unplugged.log"
done
verdict "${names[2]}" "$expected" "$found" "$work/unplugged.log"

. ./studies.sh

# Trees over real links vary by more (results/shaped.md).
echelon=$work/echelon
. ./shaped_pairs.sh
"$hosts" shape 100mbit
pairs=$(shaped_pairs 2 100mbit 4MiB 1 2> shaped.log)
"$hosts" shape 1gbit
echo "$pairs" >> shaped.log
verdict "${names[18]}" 'ring server ' \
  "$(awk '$1 != "tree" && $4 > 0.95 && $4 < 1.05 { printf "%s ", $1 }' <<< "$pairs")" shaped.log

if ! command -v slurmctld slurmd munge > /dev/null; then
  for name in "${names[@]:3}"; do skip "$name" package "needs slurm-wlm and munge"; done
elif ! "$hosts" slurm > "$work/slurm.log" 2>&1; then
  for name in "${names[@]:3}"; do skip "$name" setting "Slurm did not start here: $(tail -1 "$work/slurm.log")"; done
else
  eval "$("$hosts" env)"
  ECHELON=$work/echelon timeout 180 sbatch --wait --nodes 4 --ntasks 4 --ntasks-per-node 1 --output "$work/job.log" \
    train.sbatch "${train[@]:1}" --set "run.results=$work/job" > "$work/sbatch.log" 2>&1
  cat "$work/sbatch.log" >> "$work/job.log"
  verdict "${names[3]}" "$(checksum "$work/one")" "$(checksum "$work/job")" "$work/job.log"

  # Both jobs share the hosts and wait in the queue at the same time.
  timeout 120 mpirun -n 2 --oversubscribe --bind-to none ./echelon "${paced[@]}" --set device.pace_ms=0 --set "run.results=$work/paced" > paced.log 2>&1
  stopped=$(submit_paced stopped) ended=$(submit_paced ended)
  within 60 has_checkpoint stopped && scancel --batch --signal=USR1 "$stopped"
  within 60 has_checkpoint ended && scontrol requeue "$ended"
  within 120 is_over "$stopped"
  within 120 is_over "$ended"
  verdict "${names[4]}" "$(checksum "$work/paced") resumed 1" "$(went_on stopped)" "$work/stopped.log"
  verdict "${names[5]}" "$(checksum "$work/paced") resumed 1" "$(went_on ended)" "$work/ended.log"

  report_of() { sed -n 's/^job \([0-9]*\) .*report.sbatch/\1/p' "$1"; }
  timeout 60 ./echelon scale study_digits.toml --slurm --submit > "$work/study.log" 2>&1
  timeout 60 ./echelon scale study_digits.toml --set name=arrays --slurm --jobs 2 --submit > "$work/arrays.log" 2>&1
  for log in study arrays; do within 180 is_over "$(report_of "$work/$log.log")"; done
  cat results/study-digits/jobs/*.log >> "$work/study.log" 2> /dev/null
  cat results/arrays/jobs/*.log >> "$work/arrays.log" 2> /dev/null
  verdict "${names[6]}" '3 jobs, 18 cells, a verdict' \
    "$(grep -c '^job' "$work/study.log") jobs, $(cat results/study-digits/*/cell.json | grep -c '"state": "finished"') cells, \
$(grep -cE '^\*\*(Yes|No|Not decided)' results/study-digits/study.md | sed 's/1/a verdict/')" "$work/study.log"
  verdict "${names[16]}" '3 jobs, 18 cells, 18 attempts, a verdict' \
    "$(grep -c '^job' "$work/arrays.log") jobs, $(cat results/arrays/*/cell.json | grep -c '"state": "finished"') cells, \
$(printf '%s\n' results/arrays/*/run-*/[0-9][0-9] | grep -c run) attempts, \
$(grep -cE '^\*\*(Yes|No|Not decided)' results/arrays/study.md | sed 's/1/a verdict/')" "$work/arrays.log"
  . ./jobs.sh
fi
finish
