#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Prints how time and memory of a training step grow with batch and depth, as a markdown table on standard output.
#   costs.sh ECHELON [STEPS] > results/resnet_costs.md
set -eu
echelon=$1 steps=${2:-15}
config=configs/bench/resnet20.toml

field() { sed -n "s/.*\"$2\": *\"\{0,1\}\([^,\"}]*\).*/\1/p" <<< "$1"; }

row() { # model batch
  local json
  json=$("$echelon" bench step $config --set model.zoo="$1" --batch "$2" --threads 1 --steps "$steps" --json)
  awk -v model="$1" -v batch="$2" -v parameters="$(field "$json" parameters)" -v step="$(field "$json" step_cpu_s)" \
    -v device="$(field "$json" device_bytes)" -v activations="$(field "$json" activation_bytes)" \
    -v process="$(field "$json" process_peak_bytes)" 'BEGIN {
      printf "| %s | %d | %d | %.1f | %.0f | %.2f | %.1f | %.1f | %.2f | %.0f |\n", model, parameters, batch, 1e3 * step, batch / step,
        1e3 * step / batch, device / 2^20, activations / 2^20, activations / 2^20 / batch, process / 2^20 }'
}

head_of_table() {
  echo "| model | parameters | batch | CPU ms a step | samples a CPU s | ms a sample | device MiB | activations MiB | a sample | process MiB |"
  echo "|-------|-----------:|------:|--------------:|----------------:|------------:|-----------:|----------------:|---------:|------------:|"
}

echo "# What a step costs: ResNets for small images"
echo
echo "$(date -u +%F), $("$echelon" --version), $(sed -n 's/^model name.*: //p' /proc/cpuinfo | head -1), 1 thread, f32, (3, 32, 32); CPU time a step, mean of $steps steps."
echo "Made by \`tests/tools/costs.sh\`; \`echelon bench step $config --set model.zoo=MODEL --batch B\` measures one row."
echo "Device memory is parameters, gradients, momentum, activations, scratch and packed weights."
echo
echo "## Against the batch"
echo
head_of_table
for batch in 16 32 64 128 256; do row resnet20 $batch; done
echo
echo "## Against the depth"
echo
head_of_table
for model in resnet20 resnet32 resnet44 resnet56; do row $model 128; done
