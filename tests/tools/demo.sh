#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Trains the digits CNN from the data in the repository on 2 ranks and on 1, then prints the scaling table.
#   demo.sh ECHELON
set -eu
echelon=$1
config=configs/smoke/digits.toml
threads=1
mpi=(mpirun --oversubscribe --bind-to none)
[ "$(id -u)" = 0 ] && mpi+=(--allow-run-as-root)
launch=$(dirname "$(dirname "$echelon")")/launch  # the mpirun of another MPI than the one on PATH
[ -d "$launch" ] && PATH=$(cd "$launch" && pwd):$PATH
runs=()
for ranks in 2 1; do
  echo "== echelon train $config on $ranks rank(s)"
  log=$(mktemp)
  "${mpi[@]}" -n $ranks "$echelon" train "$config" --set run.restart=never --set device.threads=$threads | tee "$log"
  runs+=("$(sed -n 's/^results: *//p' "$log" | tail -1)")
  rm -f "$log"
  echo
done
"$echelon" report "${runs[@]}" --name demo
