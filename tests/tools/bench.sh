#!/usr/bin/env bash
# Step time of every config under configs/bench on this machine, one rank, one thread.
#   bench.sh ECHELON
set -eu
for config in configs/bench/*.toml; do
  echo "== echelon bench step $config"
  "$1" bench step "$config"
done
