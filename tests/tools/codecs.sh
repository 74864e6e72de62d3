#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Accuracy after equal epochs under every gradient codec, over seeds, as a part of results/codecs.md on standard output:
#   codecs.sh ECHELON [EPOCHS [SEED...]]   LeNet on 2 ranks; configs/scaling/lenet_codecs.toml says how to import data
#   codecs.sh ECHELON digits [SEED...]     the digits of data/digits on 4 ranks
# Finished runs are not repeated: their records are in results/codecs-CODEC-SEED and results/digits-CODEC-SEED.
set -eu
shopt -s inherit_errexit  # a failed training ends the script, also in $(..)
echelon=$1 what=${2:-3}
shift $(($# < 2 ? $# : 2))
seeds=("${@:-1}")
[ $# -eq 0 ] && seeds=(1 2 3)
if [ "$what" = digits ]; then
  config=configs/smoke/digits.toml ranks=4 prefix=digits
  common=(optimizer.learning_rate=0.05 optimizer.momentum=0.9 device.threads=1 evaluate.every_epochs=0)
else
  config=configs/scaling/lenet_codecs.toml ranks=2 prefix=codecs common=(train.epochs="$what")
fi
[ "$(id -u)" = 0 ] && export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

field() { python3 -c 'import json, sys
value = json.load(open(sys.argv[1]))
for key in sys.argv[2].split("."): value = value.get(key) if isinstance(value, dict) else None
print("nan" if value is None else value)' "$1" "$2"; }

train() { # name settings...
  local name=$1 set sets=(); shift
  for set in "${common[@]}" "$@" name="$name"; do sets+=(--set "$set"); done
  mpirun -n $ranks --oversubscribe --bind-to none "$echelon" train $config "${sets[@]}" >&2 ||
    return $(($? == 5 ? 0 : $?))
}

# Prints the number of seeds that did not diverge and, for these: mean, least and greatest accuracy in %, ratio, KiB.
measure() { # label settings...
  local label=$1 seed name summary values=(); shift
  for seed in "${seeds[@]}"; do
    name=${label//[ %,]/-} name=$prefix-${name//--/-}-$seed
    train "$name" seed="$seed" "$@"
    summary=$(ls results/"$name"/run-*/[0-9]*/summary.json 2> /dev/null | tail -1)
    [ -n "$summary" ] || continue
    values+=("$(for key in test_accuracy coded.bytes_before coded.bytes_after wire_bytes_per_step; do
      field "$summary" $key; done | paste -sd:)")
  done
  printf '%s\n' "${values[@]}" | awk -F: 'NF == 0 { next }
    { a = 100 * $1; n++; sum += a; before += $2; after += $3; wire += $4
      if (n == 1 || a < low) low = a
      if (n == 1 || a > high) high = a }
    END {
      if (n == 0) { print 0; exit }
      ratio = after > 0 ? before / after : 1
      printf "%d %.2f %.2f %.2f %.1f %.1f\n", n, sum / n, low, high, ratio, wire / n / 1024
    }'
}

row() { # label settings...
  local label=$1 figures n mean low high ratio kib
  figures=$(measure "$@")
  read -r n mean low high ratio kib <<< "$figures"
  [ "$n" != 0 ] || { echo "| $label | all diverged | | | |"; return; }
  [ "$n" = ${#seeds[@]} ] || label+=" ($((${#seeds[@]} - n)) of ${#seeds[@]} diverged)"
  echo "| $label | $mean | $low to $high | $ratio | $kib |"
}

# The same with a column for runs with momentum before coding.
row_of_two() { # label settings...
  local label=$1 line figures n mean; shift
  line=$(row "$label" "$@")
  figures=$(measure "$label before" "$@" optimizer.momentum_before_coding=true)
  read -r n mean _ <<< "$figures"
  [ "$n" = ${#seeds[@]} ] || mean="$n of ${#seeds[@]} end"
  echo "$line $mean |"
}

made="$(date -u +%F) on $(sed -n 's/^model name.*: //p' /proc/cpuinfo | head -1) ($(nproc) cores)"

if [ "$what" = digits ]; then
  fold -s -w 120 << END | sed 's/ *$//'
## Digits

The same for \`digits_cnn\` on \`data/digits\`: batch 96, 40 epochs of 16 steps, 4 ranks of one thread, rate 0.05, momentum 0.9, seeds ${seeds[*]}. One of the 297 test samples is 0.34 points. Last column: accuracy with \`optimizer.momentum_before_coding\`. Made on $made by \`tests/tools/codecs.sh ECHELON digits\` with \`$config\`.
END
  echo
  echo "| codec | accuracy, mean | least to greatest | ratio | KiB a step | momentum first |"
  echo "|-------|---------------:|------------------:|------:|-----------:|---------------:|"
  echo "$(row none) |"
  for codec in lossless fp16 bf16 int8 onebit; do row_of_two $codec exchange.codec=$codec; done
  row_of_two "onebit, code_sums" exchange.codec=onebit exchange.code_sums=true
  for codec in topk threshold; do
    row_of_two "$codec 1 %" exchange.codec=$codec
    row_of_two "$codec 0.1 %" exchange.codec=$codec exchange.density=0.001
  done
  exit
fi

fold -s -w 120 << END | sed 's/ *$//'
# Gradient codecs: accuracy after equal epochs

The table shows the test accuracy, in %, of LeNet (421,642 parameters) on Fashion-MNIST, with batch 64, $what epochs of 938 steps, 2 ranks of one thread, seeds ${seeds[*]}. It was made on $made by \`tests/tools/codecs.sh ECHELON $what\` with \`$config\`.

Ratio: bytes of the values that a rank encoded, divided by the bytes of their messages; steps before a codec starts do not count. On the wire: bytes of both ranks together in a step, over all steps.
END
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
  uncoded=exchange.codec_warmup_steps=$warmup
  row "threshold 0.25 % after $warmup steps" exchange.codec=threshold exchange.density=0.0025 $uncoded
  row "threshold 0.1 % after $warmup steps" exchange.codec=threshold exchange.density=0.001 $uncoded
done
