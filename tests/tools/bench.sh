#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Prints the step time of every config of configs/bench that needs no GPU (tests/tools/gpu.sh): one rank, one thread.
#   bench.sh ECHELON
set -eu
for config in configs/bench/*.toml; do
  grep -q '^kind = "cuda"' "$config" && continue
  echo "== echelon bench step $config"
  "$1" bench step "$config"
done
