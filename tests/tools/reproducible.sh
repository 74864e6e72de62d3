#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Measures what train.reproducible promises and costs, as markdown on standard output: weights on 1, 2, 4 and 8
# replicas, and the time of a step beside that of the default.
#   reproducible.sh ECHELON [ROUNDS] > results/reproducible.md
set -eu
echelon=$(realpath "$1") rounds=${2:-5}
configs=$PWD/configs/bench
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
export OMP_WAIT_POLICY=passive OMPI_MCA_rmaps_base_oversubscribe=1
[ "$(id -u)" = 0 ] && export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

train() { # name ranks config set...
  local name=$1 ranks=$2 config=$3; shift 3
  local sets=(--set name="$name" --set run.restart=never --set run.progress=none --set data.sharding=record)
  sets+=(--set device.kind=onednn --set device.threads=1 --set checkpoint.every_epochs=0)
  for set in "$@"; do sets+=(--set "$set"); done
  mpirun -n "$ranks" --bind-to none "$echelon" train "$configs/$config.toml" "${sets[@]}" > log 2>&1 || { cat log >&2; exit 1; }
}
newest() { ls -d results/"$1"/run-*/* | grep -E '/[0-9]+$' | tail -1; }
field() { sed -n "s/.*\"$2\": *\"\{0,1\}\([^,\"}]*\).*/\1/p" "$(newest "$1")/summary.json" | head -1; }
steps_s() { tail -n +4 "$(newest "$1")/metrics.jsonl" | sed -n 's/^{"type":"step".*"total":\([^,}]*\).*/\1/p'; }
last_loss() { sed -n 's/^{"type":"step".*"loss":\([^,}]*\).*/\1/p' "$(newest "$1")/metrics.jsonl" | tail -1; }

"$echelon" data synth --out data/synth/28 --samples 4096 --shape 1,28,28 --classes 10 > /dev/null
"$echelon" data synth --out data/synth/32 --samples 4096 --shape 3,32,32 --classes 10 > /dev/null

echo "# The same bits on any number of replicas"
echo
echo "$(date -u +%F), $("$echelon" --version), $(sed -n 's/^model name.*: //p' /proc/cpuinfo | head -1), $(nproc) cores, onednn f32, one thread a rank."
echo "Made by \`tests/tools/reproducible.sh build/release/bin/echelon $rounds\`."
echo
echo "## Bits"
echo
echo "20 steps of 64 samples, train.micro_shards = 8: checksum of all weights, loss of the last step as logged."
echo
echo "| model | algorithm | replicas | weights | last loss |"
echo "|-------|-----------|---------:|---------|-----------|"
for model in lenet resnet20; do
  for algorithm in halving_doubling butterfly binomial; do
    for k in 1 2 4 8; do
      name=$model-$algorithm-$k
      train "$name" $k $model train.steps=20 batch.global=64 train.reproducible=true exchange.algorithm=$algorithm
      echo "| $model | $algorithm | $k | $(field "$name" weights_checksum) | $(last_loss "$name") |"
    done
  done
done
for k in 1 2; do
  train "everyday-$k" $k lenet train.steps=20 batch.global=64 exchange.algorithm=halving_doubling
  echo "| lenet | the everyday way | $k | $(field "everyday-$k" weights_checksum) | $(last_loss "everyday-$k") |"
done

echo
echo "## Cost"
echo
echo "Wall time of a step of 64 samples, ms: median and least of all steps but the first three of $rounds alternating runs of 25 steps."
echo
echo "| model | replicas | everyday | reproducible | ratio of medians | ratio of minima |"
echo "|-------|---------:|---------:|-------------:|-----------------:|----------------:|"
for model in lenet resnet20; do
  for k in 1 2; do
    : > everyday; : > reproducible
    for round in $(seq "$rounds"); do
      train $model-$k-everyday $k $model train.steps=25 batch.global=64 exchange.algorithm=halving_doubling
      steps_s $model-$k-everyday >> everyday
      train $model-$k-reproducible $k $model train.steps=25 batch.global=64 exchange.algorithm=halving_doubling train.reproducible=true
      steps_s $model-$k-reproducible >> reproducible
    done
    sort -g everyday | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)], v[1] }' > a
    sort -g reproducible | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)], v[1] }' > b
    paste a b | awk -v model=$model -v k=$k '{ printf "| %s | %d | %.1f (%.1f) | %.1f (%.1f) | %.2f | %.2f |\n",
      model, k, 1e3 * $1, 1e3 * $2, 1e3 * $3, 1e3 * $4, $3 / $1, $4 / $2 }'
  done
done
