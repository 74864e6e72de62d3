#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Accuracy after equal epochs under every gradient codec, over seeds, on 2 ranks: a markdown table on standard output.
#   codecs.sh ECHELON [EPOCHS [SEED...]] > results/codecs.md      the data of configs/scaling/lenet_codecs.toml is imported before
# Finished runs are not repeated: their records are in results/codecs-CODEC-SEED.
set -eu
echelon=$1 epochs=${2:-3}
shift $(($# < 2 ? $# : 2))
seeds=("${@:-1}")
[ $# -eq 0 ] && seeds=(1 2 3)
config=configs/scaling/lenet_codecs.toml
[ "$(id -u)" = 0 ] && export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

field() { python3 -c 'import json, sys
value = json.load(open(sys.argv[1]))
for key in sys.argv[2].split("."): value = value.get(key) if isinstance(value, dict) else None
print("nan" if value is None else value)' "$1" "$2"; }

train() { # name settings...
  local name=$1 set sets=(); shift
  for set in "$@" name="$name" train.epochs="$epochs"; do sets+=(--set "$set"); done
  mpirun -n 2 --oversubscribe --bind-to none "$echelon" train $config "${sets[@]}" >&2 || return $(($? == 5 ? 0 : $?))
}

row() { # label settings...
  local label=$1 seed name summary diverged=0 values=(); shift
  for seed in "${seeds[@]}"; do
    name=codecs-${label//[ %]/-}-$seed
    train "$name" seed="$seed" "$@"
    summary=$(ls results/"$name"/run-*/[0-9]*/summary.json 2> /dev/null | tail -1)
    [ -n "$summary" ] || { diverged=$((diverged + 1)); continue; }
    values+=("$(field "$summary" test_accuracy):$(field "$summary" coded.bytes_before):$(field "$summary" coded.bytes_after):$(field "$summary" wire_bytes_per_step)")
  done
  [ ${#values[@]} -gt 0 ] || { echo "| $label | all diverged | | | |"; return; }
  [ $diverged = 0 ] || label+=" ($diverged of ${#seeds[@]} diverged)"
  printf '%s\n' "${values[@]}" | awk -F: -v label="$label" '{ a = 100 * $1; sum += a; if (NR == 1 || a < low) low = a; if (NR == 1 || a > high) high = a
      before += $2; after += $3; wire += $4 }
    END { printf "| %s | %.2f | %.2f to %.2f | %s | %.1f |\n", label, sum / NR, low, high, (after > 0 ? sprintf("%.1f", before / after) : "1.0"), wire / NR / 1024 }'
}

echo "# Gradient codecs: accuracy after equal epochs"
echo
echo "LeNet (421,642 parameters) on Fashion-MNIST, batch 64, $epochs epochs, 2 ranks of one thread, seeds ${seeds[*]}: test accuracy in %."
echo "$(date -u +%F), $("$echelon" --version), $(sed -n 's/^model name.*: //p' /proc/cpuinfo | head -1). Made by \`tests/tools/codecs.sh\` with \`$config\`."
echo "Ratio: bytes of the values that a rank encoded over those of their messages; steps before a codec starts do not count. On the wire: of both ranks"
echo "together, a step, over all steps."
echo
echo "| codec | accuracy, mean | least to greatest | ratio | KiB a step |"
echo "|-------|---------------:|------------------:|------:|-----------:|"
for codec in none lossless fp16 bf16 int8 onebit; do row $codec exchange.codec=$codec; done
row "topk 1 %" exchange.codec=topk exchange.density=0.01
row "topk 0.1 %" exchange.codec=topk exchange.density=0.001
row "threshold 1 %" exchange.codec=threshold exchange.density=0.01
for codec in int8 onebit; do row "$codec without feedback" exchange.codec=$codec exchange.error_feedback=false; done
for density in 0.01 0.001; do
  for codec in topk threshold; do
    row "$codec $density without feedback" exchange.codec=$codec exchange.density=$density exchange.error_feedback=false
  done
done
row "threshold 0.25 %" exchange.codec=threshold exchange.density=0.0025
row "threshold 0.1 %" exchange.codec=threshold exchange.density=0.001
for warmup in 188 938; do  # a fifth of an epoch, and one epoch
  row "threshold 0.25 % after $warmup steps" exchange.codec=threshold exchange.density=0.0025 exchange.codec_warmup_steps=$warmup
  row "threshold 0.1 % after $warmup steps" exchange.codec=threshold exchange.density=0.001 exchange.codec_warmup_steps=$warmup
done
