#!/usr/bin/env bash
# Step time of every config under configs/bench that is not for GPUs (tests/tools/gpu.sh) on this machine, one rank, one thread.
#   bench.sh ECHELON
set -eu
for config in configs/bench/*.toml; do
  grep -q '^kind = "cuda"' "$config" && continue
  echo "== echelon bench step $config"
  "$1" bench step "$config"
done
