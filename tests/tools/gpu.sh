#!/usr/bin/env bash
# Asks a machine with a GPU all at once: does the device keep its contract, and how long does a step take?
#   gpu.sh ECHELON TESTS [PEER...]
#     ECHELON  the executable: build/release/bin/echelon, in the bundle bin/echelon
#     TESTS    the tests of the device: build/release/tests/cuda, in the bundle bin/echelon-cuda-tests
#     PEER     a command to compare with, such as `python torch_bench.py`: called in turns with ours as
#              PEER MODEL --batch B --steps N --device cuda --dtype float32|bfloat16, it prints a line of JSON with "rate",
#              samples (tokens, of texts) a second
#
# tf32 is f32 whose products may be rounded; to the peer both are float32 (PyTorch rounds its convolutions by default).
# STEPS (50) of each model and ROUNDS (3) by turns; the best round counts. With GRAPHS=1 also ours with device.cuda_graphs.
set -eu
[ $# -ge 2 ] || { sed -n '2,11s/^# \{0,1\}//p' "$0"; exit 2; }
echelon=$1 tests=$2
shift 2
here=$(cd "$(dirname "$0")" && pwd)
for configs in "$here/../../configs/bench" "$here/../share/echelon/configs/bench"; do [ -d "$configs" ] && break; done

field() { sed -n "s/.*\"$2\": \"\{0,1\}\([^,\"}]*\).*/\1/p" <<< "$1"; }
best() { awk -v a="$1" -v b="$2" 'BEGIN { print (a + 0 > b + 0 ? a : b) }'; }

# Samples a second, or tokens where a sample has several labels.
ours() { # model batch dtype [more]
  local json dtype=$3 tf32=false
  [ "$3" = tf32 ] && { dtype=f32; tf32=true; }
  json=$("$echelon" bench step "$configs/$1.toml" --batch "$2" --steps "${STEPS:-50}" --json \
    --set device.kind=cuda --set device.dtype=$dtype $([ $tf32 = false ] || echo --set device.tf32=true) "${@:4}")
  awk -v rate="$(field "$json" rate)" -v labels="$(field "$json" labels_a_sample)" \
    'BEGIN { printf "%.1f\n", rate * (labels > 1 ? labels : 1) }'
}
theirs() { # model batch dtype command...
  local dtype=float32
  [ "$3" = bf16 ] && dtype=bfloat16
  field "$("${@:4}" "$1" --batch "$2" --steps "${STEPS:-50}" --device cuda --dtype $dtype | tail -1)" rate
}

row() { # model batch dtype, then the peer
  local model=$1 batch=$2 dtype=$3 mine=0 graphs=0 peer=0
  shift 3
  for _ in $(seq "${ROUNDS:-3}"); do
    mine=$(best $mine "$(ours "$model" "$batch" "$dtype")")
    [ "${GRAPHS:-0}" = 0 ] || graphs=$(best $graphs "$(ours "$model" "$batch" "$dtype" --set device.cuda_graphs=true)")
    [ $# -eq 0 ] || peer=$(best $peer "$(theirs "$model" "$batch" "$dtype" "$@")")
  done
  awk -v model="$model" -v batch="$batch" -v dtype="$dtype" -v mine="$mine" -v graphs="$graphs" -v peer="$peer" 'BEGIN {
    printf "| %s | %d | %s | %.0f | %s | %s | %s |\n", model, batch, dtype, mine, graphs ? sprintf("%.0f", graphs) : "",
      peer ? sprintf("%.0f", peer) : "", peer ? sprintf("%.2f", mine / peer) : "" }'
}

"$tests"
echo
"$echelon" info 2> /dev/null | grep -i gpu || true
echo "| model | batch | dtype | samples/s (tokens/s) | with graphs | peer | ours / peer |"
echo "|-------|------:|-------|---------------------:|------------:|-----:|------------:|"
for dtype in f32 tf32 bf16; do
  row resnet50 128 $dtype "$@"
  row resnet20 128 $dtype "$@"
  row wordlstm 20 $dtype "$@"
  row charlstm 32 $dtype "$@"
  row lenet 64 $dtype "$@"
done
