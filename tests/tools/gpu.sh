#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# For the first hour with a GPU: does the device keep its contract, does it learn, how long does a step take?
#   gpu.sh [OPTIONS] ECHELON TESTS [PEER...]
#     ECHELON  the executable: build/release/bin/echelon, in the bundle bin/echelon
#     TESTS    the tests of the device: build/release/tests/cuda, in the bundle bin/echelon-cuda-tests
#     PEER     a command to compare with, such as `python torch_bench.py`: called in turns with ours as
#              PEER MODEL --batch B --steps N --device cuda --dtype float32|bfloat16, it prints a line of JSON with "rate",
#              samples a second, or tokens a second for texts
#   --out DIR       where results go (gpu-results): STAGE.txt and STAGE.log of each stage, STAGE.done where it went
#                   well; summary.md of all stages
#   --device KIND   cuda; onednn tries the script itself on a machine without a GPU
#   --only A,B,..   only these stages: contract learn exchange steps models graphs profile ranks memory sanitizer
#   --small         tiny models and few steps
#
# Stages come in the order of their worth, each with a limit; together they take at most 25 minutes. A stage that fails
# is named at the end, and the others run nevertheless; the exit code is then 1. The same command again runs the stages
# that have not succeeded yet.
set -u
usage() { sed -n '2,20s/^# \{0,1\}//p' "$0"; exit 2; }
out=gpu-results device=cuda only= small=false stage=
while [ $# -gt 0 ]; do
  case $1 in
    --out) out=${2:?}; shift 2 ;;
    --device) device=${2:?}; shift 2 ;;
    --only) only=${2:?}; shift 2 ;;
    --small) small=true; shift ;;
    --stage) stage=${2:?}; shift 2 ;; # used by this script itself, which runs each stage under its limit
    --*) usage ;;
    *) break ;;
  esac
done
[ $# -ge 2 ] || usage
absolute() { case $1 in */*) echo "$(cd "$(dirname "$1")" && pwd)/${1##*/}" ;; *) command -v "$1" ;; esac; }
echelon=$(absolute "$1") tests=$(absolute "$2")
for file in "$echelon" "$tests"; do [ -x "$file" ] || { echo "gpu.sh: $file is no executable" >&2; exit 2; }; done
shift 2
here=$(cd "$(dirname "$0")" && pwd)
for configs in "$here/../../configs" "$here/../share/echelon/configs"; do [ -d "$configs/bench" ] && break; done
mkdir -p "$out" || exit 2
out=$(cd "$out" && pwd)
mpirun=$(dirname "$echelon")/mpirun
[ -x "$mpirun" ] || mpirun=mpirun
# Two devices must agree: this one, and one on the processor.
other=onednn
[ "$device" != onednn ] || other=reference
if $small; then
  rounds=1 steps=2 learn_steps=12 batch=8 main_models="lenet:8 charlstm:4" other_models="lenet:4" dtypes=f32
  learn_models=lenet samples=256 threads=1
else
  rounds=3 steps=50 learn_steps=300 batch=64 main_models="resnet50:128 wordlstm:20" dtypes="bf16 f32 tf32"
  other_models="resnet20:128 charlstm:32 lenet:64 ranking:256" learn_models="lenet charlstm" samples=2048 threads=$(nproc)
fi
[ "$device" = cuda ] || dtypes=f32

field() { sed -n "s/.*\"$2\": *\"\{0,1\}\([^,\"}]*\).*/\1/p" <<< "$1"; }
best() { awk -v a="$1" -v b="$2" 'BEGIN { print (a + 0 > b + 0 ? a : b) }'; }
# Tells whether two losses agree within a relative tolerance, and prints both.
agree() { # WHAT A B TOLERANCE
  awk -v what="$1" -v a="$2" -v b="$3" -v tolerance="$4" 'BEGIN {
    good = a != "" && b != "" && (a - b) ^ 2 <= (tolerance * (b + 0)) ^ 2
    printf "%s: %s and %s, %s\n", what, a, b, good ? "equal within " 100 * tolerance " %" : "NOT EQUAL"
    exit !good }'
}
set_device() { echo --set device.kind="$1"; [ "$1" = cuda ] || echo --set device.threads=$threads; }

# ---- what is learned, from made-up data, so that nothing but the executable is needed
data() { # called once; its output belongs to no stage
  [ -e "$out/data/ready" ] && return
  rm -rf "$out/data"
  mkdir -p "$out/data"
  make_data >&2 && touch "$out/data/ready"
}
make_data() {
  "$echelon" data synth --out "$out/data/images/train" --samples $samples --shape 1,28,28 --classes 10 --noise 0.8 &&
    "$echelon" data synth --out "$out/data/images/test" --samples $((samples / 4)) --shape 1,28,28 --classes 10 --noise 0.8 &&
    awk 'BEGIN { srand(1); split("the quick brown fox jumps over a lazy dog while seven small boats sail home", word, " ")
      for (i = 0; i < 20000; ++i) printf "%s%s", word[1 + int(15 * rand() * rand())], i % 12 == 11 ? ".\n" : " " }' \
      > "$out/data/text.txt" &&
    "$echelon" data import text "$out/data/text.txt" --hold-out-part 0.1 --out "$out/data/text"
}
# Trains, and prints the run's folder.
train() { # NAME MODEL KIND STEPS [more --set ..]
  local name=$1 model=$2 kind=$3 count=$4 set=images
  [ "$model" = lenet ] || set=text
  shift 4
  echo "== $name: $count steps on $kind" >&2
  ${launch:-} "$echelon" train "$configs/bench/$model.toml" $(set_device "$kind") --set name="$name" \
    --set run.results="$out/runs" --set data.train="$out/data/$set/train" --set data.test="$out/data/$set/test" \
    --set data.sharding=record --set batch.global=$batch \
    --set train.steps="$count" --set run.progress=none "$@" >&2 || return
  ls -td "$out/runs/$name"/run-* | head -1
}
# Prints the mean loss of a run's last steps.
end_loss() { # RUN
  cat "$1"/[0-9]*/metrics.jsonl | sed -n 's/.*"type":"step".*"loss":\([^,}]*\).*/\1/p' | tail -5 |
    awk '{ sum += $1 } END { if (NR) printf "%.6f\n", sum / NR }'
}
learn() {
  local failed=0 model run mine theirs
  data || return
  for model in $learn_models; do
    run=$(train "learn-$model-$device" $model "$device" "$learn_steps") || return
    mine=$(end_loss "$run")
    run=$(train "learn-$model-$other" $model "$other" "$learn_steps") || return
    theirs=$(end_loss "$run")
    agree "$model, loss after $learn_steps steps on $device and on $other" "$mine" "$theirs" 0.05 || failed=1
  done
  return $failed
}
eval_loss() { "$echelon" eval "$1" "$out/data/images/test" --device "$2" | tee /dev/stderr | sed -n 's/^loss *//p' | head -1; }
# Each device reads checkpoints of the other, in training and in evaluation.
exchange() {
  local failed=0 from to run on=$((learn_steps / 2)) half more
  data || return
  for from in "$device" "$other"; do
    to=$other
    [ "$from" = "$device" ] || to=$device
    half=$(train "half-$from" lenet "$from" $on --set checkpoint.every_steps=$on) || return
    agree "lenet trained on $from, test loss by $from and by $to" "$(eval_loss "$half" "$from")" \
      "$(eval_loss "$half" "$to")" 0.001 || failed=1
    for kind in "$from" "$to"; do
      more=$(train "more-$from-$kind" lenet "$kind" "$learn_steps" --set run.resume_from="$half") || return
      eval "loss_$kind=$(end_loss "$more")"
    done
    eval "agree 'lenet resumed from $from, loss on $from and on $to' \"\$loss_$from\" \"\$loss_$to\" 0.05" || failed=1
  done
  return $failed
}
# Ranks share the device and sum their gradients through the host: the loss must be that of one rank.
ranks() {
  local run one two
  data || return
  run=$(train one-rank lenet "$device" "$learn_steps") || return
  one=$(end_loss "$run")
  run=$(launch="$mpirun -n 2 --bind-to none --oversubscribe --allow-run-as-root" train two-ranks lenet "$device" "$learn_steps" \
    --set exchange.algorithm=ring) || return
  two=$(end_loss "$run")
  agree "lenet, loss after $learn_steps steps on 2 ranks and on 1" "$two" "$one" 0.05
}

# ---- how long a step takes
# Prints samples a second, or tokens a second where a sample has several labels.
ours() { # model batch dtype [more]
  local json dtype=$3 tf32=false
  [ "$3" = tf32 ] && { dtype=f32; tf32=true; }
  json=$("$echelon" bench step "$configs/bench/$1.toml" --batch "$2" --steps "$steps" --json --set device.kind="$device" \
    --set device.dtype=$dtype $([ $tf32 = false ] || echo --set device.tf32=true) "${@:4}") || return
  echo "$1 $2 $3 ${*:4}: $json" >&2
  awk -v rate="$(field "$json" rate)" -v labels="$(field "$json" labels_a_sample)" \
    'BEGIN { printf "%.1f\n", rate * (labels > 1 ? labels : 1) }'
}
theirs() { # model batch dtype command...
  local dtype=float32
  [ "$3" = bf16 ] && dtype=bfloat16
  field "$("${@:4}" "$1" --batch "$2" --steps "$steps" --device cuda --dtype $dtype | tail -1)" rate
}
# Prints one line of the table; the best round of each side counts.
row() { # model batch dtype graphs(true|false) [PEER..]
  local model=$1 batch=$2 dtype=$3 graphs=$4 mine=0 without=0 peer=0 rate
  shift 4
  for _ in $(seq $rounds); do
    rate=$(ours "$model" "$batch" "$dtype") || return
    mine=$(best $mine "$rate")
    if $graphs; then
      rate=$(ours "$model" "$batch" "$dtype" --set device.cuda_graphs=false) || return
      without=$(best $without "$rate")
    fi
    [ $# -eq 0 ] || peer=$(best $peer "$(theirs "$model" "$batch" "$dtype" "$@")")
  done
  awk -v model="$model" -v batch="$batch" -v dtype="$dtype" -v mine="$mine" -v without="$without" -v peer="$peer" 'BEGIN {
    printf "| %s | %d | %s | %.0f | %s | %s | %s |\n", model, batch, dtype, mine, without + 0 ? sprintf("%.0f", without) : "",
      peer + 0 ? sprintf("%.0f", peer) : "", peer + 0 ? sprintf("%.2f", mine / peer) : "" }'
}
table() { # graphs MODELS [PEER..]
  local graphs=$1 models=$2 failed=0 model dtype
  shift 2
  echo "| model | batch | dtype | samples/s (tokens/s) | without graphs | peer | ours / peer |"
  echo "|-------|------:|-------|---------------------:|---------------:|-----:|------------:|"
  for dtype in $dtypes; do
    for model in $models; do row "${model%:*}" "${model#*:}" "$dtype" "$graphs" "$@" || failed=1; done
  done
  return $failed
}
steps() { table false "$main_models" "$@"; }
models() { table false "$other_models" "$@"; }
graphs() {
  [ "$device" = cuda ] || { echo "left out: device $device has no graphs"; return; }
  dtypes=${dtypes%% *} rounds=1 table true "$main_models $other_models"
}
profile() {
  local model
  for model in $main_models; do
    "$echelon" bench step "$configs/bench/${model%:*}.toml" --batch "${model#*:}" --steps "$steps" --ops \
      --set device.kind="$device" --set device.dtype="${dtypes%% *}" || return
  done
}
# Compares the memory that the plan predicts with the memory that a step takes.
memory() {
  local model json
  data || return
  for model in $main_models; do
    json=$("$echelon" bench step "$configs/bench/${model%:*}.toml" --batch "${model#*:}" --steps 1 --json \
      --set device.kind="$device" --set device.dtype="${dtypes%% *}") || return
    awk -v model="$model" -v all="$(field "$json" device_bytes)" -v held="$(field "$json" activation_bytes)" 'BEGIN {
      printf "%s: %.1f MiB on the device, %.1f of activations\n", model, all / 2 ^ 20, held / 2 ^ 20 }'
  done
  "$echelon" check "$configs/bench/lenet.toml" --set device.kind="$device" --set batch.global=$batch \
    --set data.train="$out/data/images/train" | grep -i '^memory'
}
# Each test runs in its own process: after an error from which a card does not recover, all tests of a process fail.
contract() {
  local name passed=0 failed=0
  while IFS= read -r name; do
    if "$tests" "${name//,/\\,}" < /dev/null >&2; then
      passed=$((passed + 1))
    else
      failed=$((failed + 1))
      echo "failed: $name"
    fi
  done < <("$tests" --list-test-names-only)
  echo "tests: $passed passed, $failed failed"
  [ $failed -eq 0 ] && [ $passed -gt 0 ]
}
sanitizer() {
  [ "$device" = cuda ] || { echo "left out: device $device is no GPU"; return; }
  command -v compute-sanitizer > /dev/null || { echo "left out: compute-sanitizer is not installed"; return; }
  compute-sanitizer --tool memcheck --error-exitcode 9 "$tests" "[cuda]~[slow]"
}

if [ -n "$stage" ]; then
  "$stage" "$@"
  exit
fi

# ---- the stages, with their limits in seconds
limits="contract:240 learn:150 exchange:120 steps:200 models:160 graphs:120 profile:90 ranks:90 memory:60 sanitizer:270"
settings="$("$echelon" --version 2>&1 | head -1), device $device$($small && echo ", small")"
if [ -e "$out/settings" ] && [ "$(cat "$out/settings")" != "$settings" ]; then
  echo "gpu.sh: $out holds results of $(cat "$out/settings"), this is $settings; name another folder with --out" >&2
  exit 2
fi
echo "$settings" > "$out/settings"
options=(--out "$out" --device "$device")
$small && options+=(--small)
failed=
for entry in $limits; do
  name=${entry%:*} limit=${entry#*:}
  [ -z "$only" ] || [[ ,$only, = *,$name,* ]] || continue
  if [ -e "$out/$name.done" ]; then
    echo "== $name: done before"
    continue
  fi
  echo "== $name, at most $limit s"
  begin=$(date +%s)
  timeout -k 10 "$limit" "$0" "${options[@]}" --stage "$name" "$echelon" "$tests" "$@" \
    > "$out/$name.txt" 2> "$out/$name.log"
  code=$?
  seconds=$(($(date +%s) - begin))
  cat "$out/$name.txt"
  if [ $code -eq 0 ]; then
    echo "$seconds" > "$out/$name.done"
  else
    [ $code -ne 124 ] || echo "it took more than $limit s"
    tail -5 "$out/$name.log"
    failed="$failed $name"
  fi
done

{
  echo "# $settings"
  "$echelon" info 2> /dev/null | grep -i gpu
  for entry in $limits; do
    name=${entry%:*}
    [ -e "$out/$name.txt" ] || continue
    if [ -e "$out/$name.done" ]; then verdict="$(cat "$out/$name.done") s"; else verdict="FAILED, see $name.log"; fi
    printf '\n## %s (%s)\n\n' "$name" "$verdict"
    tail -60 "$out/$name.txt"
  done
} > "$out/summary.md"
echo "results: $out/summary.md"
[ -z "$failed" ] || { echo "failed:$failed"; exit 1; }
