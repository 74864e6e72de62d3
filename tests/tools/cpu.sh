#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Measures training steps on this processor by data type, beside PyTorch; the most telling rows come first.
#   cpu.sh [OPTIONS] ECHELON [PEER...]
#     ECHELON  the executable: build/release/bin/echelon
#     PEER     a command to compare with, such as `python torch_bench.py`: called in turns with ours as
#              PEER MODEL --batch B --steps N --threads T [--dtype bfloat16] [--medium] [--compile] [--channels-last], it
#              prints a line of JSON with "rate": samples a second, or tokens a second for texts
#   --out FILE      where rows are kept (results/cpu.tsv): processor, row, value, spread in percent; FILE.md has a column
#                   per processor
#   --rounds N      turns of each (5); medians are kept; after the first turn the three fastest forms of the peer go on
#   --threads T     threads of a step (1)
#   --models A,B    these of the list below (charlstm,wordlstm,lenet,resnet20,resnet50); the peer of cosmoflow,
#                   unet_volumes and deepcam is torch_step.py
#   --stages A,B    these of: steps peers layers ranks (the last: 2 ranks that train beside PyTorch's DDP), which are
#                   all without it, and peers32, where both compute in f32
#   --cpu-time      processor time instead of wall time, for a machine that others use too; one thread
#   --again         also measures rows that exist
#
# A row that exists for this processor is skipped, so that the same command resumes where it was ended.
set -eu -o pipefail

# name:batch:steps:types[:shape of a sample]; tf32 is f32 with device.tf32
models="charlstm:32:20:f32,bf16,tf32 wordlstm:20:10:f32,bf16,tf32 lenet:64:50:f32,bf16,tf32
  resnet20:128:10:f32,bf16,tf32 resnet50:16:3:f32,bf16,tf32 cosmoflow:1:3:f32,bf16:4,128,128,128
  unet_volumes:1:3:f32,bf16:1,64,64,64 deepcam:1:3:f32,bf16:16,192,288"
peer_options=("--dtype bfloat16 --channels-last" "--dtype bfloat16" "--dtype bfloat16 --channels-last --compile"
  "--dtype bfloat16 --compile" "--dtype float32" "--dtype float32 --compile" "--channels-last --medium")
single_options=("--dtype float32" "--dtype float32 --channels-last" "--dtype float32 --compile")

usage() { sed -n '2,20s/^# \{0,1\}//p' "$0"; exit 2; }
out=results/cpu.tsv rounds=5 threads=1 only=charlstm,wordlstm,lenet,resnet20,resnet50 stages=steps,peers,layers,ranks cpu_time=false again=false
while [ $# -gt 0 ]; do
  case $1 in
    --out) out=${2:?}; shift 2 ;;
    --rounds) rounds=${2:?}; shift 2 ;;
    --threads) threads=${2:?}; shift 2 ;;
    --models) only=${2:?}; shift 2 ;;
    --stages) stages=${2:?}; shift 2 ;;
    --cpu-time) cpu_time=true; shift ;;
    --again) again=true; shift ;;
    --*) usage ;;
    *) break ;;
  esac
done
[ $# -ge 1 ] || usage
if $cpu_time && [ "$threads" != 1 ]; then echo "cpu.sh: --cpu-time is of one thread" >&2; exit 2; fi
echelon=$1
shift
configs=$(cd "$(dirname "$0")/../../configs/bench" && pwd)
export OMP_NUM_THREADS=$threads
units="no AVX2"
for flag in avx2 avx512f avx512_bf16 amx_bf16; do grep -qw "$flag" /proc/cpuinfo && units=$flag; done
cpu() { sed -n "s/^$1[^:]*: *//p" /proc/cpuinfo | head -1; }
processor="$(cpu 'model name') (model $(cpu 'model[^ ]')), $units"
[ "$threads" = 1 ] || processor="$processor, $threads threads"
$cpu_time && processor="$processor, by CPU time"
touch "$out"

has() { ! $again && grep -qF "$processor	$1	" "$out"; }
keep() { # ROW VALUE [SPREAD]
  local rest
  rest=$(grep -vF "$processor	$1	" "$out" || true)
  printf '%s\n%s\t%s\t%s\t%s\n' "$rest" "$processor" "$1" "$2" "${3:-}" | sed '/^$/d; s/\t$//' > "$out.new"
  mv "$out.new" "$out"
  echo "$1: $2 ${3:+(within $3 %)}"
}
# Keeps the median, and by how many percent of it the value farthest from it differs.
keep_median() { # ROW VALUES
  local found
  found=$(tr ' ' '\n' <<< "$2" | sed '/^$/d' | sort -g | awk '{ v[NR] = $1 } END { if (NR == 0) exit
    m = v[int((NR + 1) / 2)]; low = m - v[1]; high = v[NR] - m
    print m, (NR > 1 ? int(100 * (low > high ? low : high) / m + 0.5) : "") }')
  # shellcheck disable=SC2086
  [ -z "$found" ] || keep "$1" $found
}
wanted() { case ",$2," in *,"$1",*) ;; *) return 1 ;; esac; }
field() { sed -n "s/.*\"$2\": *\([0-9.eE+-]*\).*/\1/p" <<< "$1"; }

settings() { # TYPE
  case $1 in tf32) echo --set device.dtype=f32 --set device.tf32=true ;; *) echo --set device.dtype="$1" ;; esac
}
our_rate() { # MODEL BATCH STEPS TYPE, of samples of $sample
  local json
  # shellcheck disable=SC2046
  json=$("$echelon" bench step "$configs/$1.toml" --set device.kind=onednn $(settings "$4") --batch "$2" --steps "$3" \
    --threads "$threads" ${sample:+--shape "$sample"} --json | tail -1)
  # Texts are counted in labels a second, as the peer counts them; pixels and voxels are not counted.
  local labels=1
  [ -n "$sample" ] || labels=$(field "$json" labels_a_sample)
  if $cpu_time; then
    awk -v rate="$(field "$json" rate)" -v labels="$labels" -v wall="$(field "$json" step_s_median)" -v cpu="$(field "$json" step_cpu_s)" \
      'BEGIN { print rate * labels * wall / cpu }'
  else
    awk -v rate="$(field "$json" rate)" -v labels="$labels" 'BEGIN { print rate * labels }'
  fi
}
# Prints the seconds of processor time that a command takes.
cpu_seconds() {
  local TIMEFORMAT='%U %S'
  { time "$@" > /dev/null 2>&1; } 2>&1 | tail -1 | awk '{ print $1 + $2 }'
}
peer_rate() { # MODEL BATCH STEPS OPTIONS: the rate; CPU time is that of more steps less that of fewer
  local json few many words
  read -ra words <<< "$4"
  local call=("${peer[@]}" "$1" --batch "$2" --threads "$threads" "${words[@]}")
  if ! $cpu_time; then
    json=$("${call[@]}" --steps "$3" 2> /dev/null | tail -1) && field "$json" rate
    return
  fi
  few=$(cpu_seconds "${call[@]}" --steps 1)
  many=$(cpu_seconds "${call[@]}" --steps $((1 + 4 * $3)))
  awk -v few="$few" -v many="$many" -v samples=$((4 * $2 * $3)) 'BEGIN { if (many > few) print samples / (many - few) }'
}

# Samples a second of two ranks that train in bf16 on random images of a shape; the images are kept for the next turn.
images=
trap '[ -z "$images" ] || rm -rf "$images"' EXIT
trained_rate() { # CONFIG SHAPE BATCH STEPS
  local folder
  [ -n "$images" ] || images=$(mktemp -d)
  folder=$images/${2//,/x}
  [ -d "$folder" ] || "$echelon" data synth --out "$folder" --samples $((2 * $3 * 8)) --shape "$2" --classes 10 > /dev/null
  rm -rf "$images/runs"
  mpirun -n 2 --oversubscribe --bind-to none "$echelon" train "$configs/$1.toml" --set data.train="$folder" \
    --set device.kind=onednn --set device.threads="$threads" --set device.dtype=bf16 --set batch.global=$((2 * $3)) \
    --set train.steps=$((4 * $4)) --set run.results="$images/runs" 2> /dev/null |
    sed -n 's|^\([0-9,.]*\) samples/s (.*|\1|p' | tr -d , | tail -1
}

peer=("$@")
# Measures the model in a type once more, in turns with forms of the peer.
beside_peers() { # TYPE PREFIX-OF-ROWS FORMS..
  local type=$1 prefix=$2 ours='' options i
  shift 2
  [ ${#peer[@]} -gt 0 ] && ! has "$name, $type beside peers" || return 0
  local -A peers=()
  local forms=("$@")
  for ((i = 0; i < rounds; ++i)); do
    ours+="$(our_rate "$name" "$batch" "$steps" "$type" || true) "
    for options in "${forms[@]}"; do
      peers[$options]+="$(peer_rate "$name" "$batch" "$steps" "$options" || true) "
    done
    [ "$i" != 0 ] || mapfile -t forms < <(for options in "${forms[@]}"; do echo "${peers[$options]:-0} $options"; done |
      sort -gr | head -3 | sed 's/^[^ ]* *//')
  done
  for options in "$@"; do keep_median "$name, ${prefix}peer ${options//--/}" "${peers[$options]}"; done
  keep_median "$name, $type beside peers" "$ours"
}

for row in $models; do
  IFS=: read -r name batch steps types sample <<< "$row"
  wanted "$name" "$only" || continue
  if wanted steps "$stages"; then
    declare -A found=()
    todo=
    for type in ${types//,/ }; do has "$name, $type" || todo="$todo $type"; done
    [ -z "$todo" ] || for ((i = 0; i < rounds; ++i)); do
      for type in $todo; do
        found[$type]+="$(our_rate "$name" "$batch" "$steps" "$type" || true) "
      done
    done
    for type in $todo; do keep_median "$name, $type" "${found[$type]}"; done
  fi
  wanted peers "$stages" && beside_peers bf16 "" "${peer_options[@]}"
  wanted peers32 "$stages" && beside_peers f32 "f32 " "${single_options[@]}"
  shape=$(sed -n 's/.* --shape \([0-9,]*\).*/\1/p' "$configs/$name.toml")
  if wanted ranks "$stages" && [ ${#peer[@]} -gt 0 ] && [ -n "$shape" ] && ! has "$name, 2 ranks, bf16"; then
    ours=
    declare -A ddp=()
    for ((i = 0; i < rounds; ++i)); do
      ours+="$(trained_rate "$name" "$shape" "$batch" "$steps" || true) "
      for options in "${peer_options[@]:0:4}"; do
        ddp[$options]+="$(peer_rate "$name" "$batch" "$steps" "$options --ranks 2" || true) "
      done
    done
    for options in "${peer_options[@]:0:4}"; do keep_median "$name, 2 ranks, DDP ${options//--/}" "${ddp[$options]}"; done
    keep_median "$name, 2 ranks, bf16" "$ours"
  fi
  # Share of a large product's rate that convolutions and products reach in bf16, by work; then the ops below 0.4.
  if wanted layers "$stages" && { ! has "$name, share of the peak in bf16"; }; then
    json=$("$echelon" bench step "$configs/$name.toml" --set device.kind=onednn --set device.dtype=bf16 \
      ${sample:+--shape "$sample"} --batch "$batch" --steps "$steps" --threads "$threads" --ops --json | tail -1)
    peak=$(python3 -c '
import json, sys
ops = [op for op in json.loads(sys.argv[1])["ops"] if "of_peak" in op]
print("%.3f" % (sum(op["seconds"] * op["of_peak"] for op in ops) / sum(op["seconds"] for op in ops)))
for op in ops:
    if op["of_peak"] < 0.4: print("%.2f %8.0f us  %s  %s" % (op["of_peak"], 1e6 * op["seconds"], op["op"], op["implementation"]))
' "$json")
    keep "$name, share of the peak in bf16" "$(head -1 <<< "$peak")"
    tail -n +2 <<< "$peak" | sort -u > "${out%.tsv}_$name.txt"
  fi
done

awk -F'\t' '
  { if (!($1 in seen)) { seen[$1] = 1; processors[++n] = $1 }
    if (!($2 in rows)) { rows[$2] = 1; names[++m] = $2 }
    value[$1, $2] = $3; if ($4 != "") spread[$1, $2] = sprintf(" ±%d %%", $4)
    split($2, part, ", ")
    if ($2 ~ /, peer/ && $3 + 0 > best[$1, part[1]] + 0) best[$1, part[1]] = $3
    if ($2 ~ /, f32 peer/ && $3 + 0 > best32[$1, part[1]] + 0) best32[$1, part[1]] = $3
    if ($2 ~ /, DDP/ && $3 + 0 > best[$1, part[1] ", 2 ranks"] + 0) best[$1, part[1] ", 2 ranks"] = $3 }
  END {
    print "# Training steps by processor\n\nMade by `tests/tools/cpu.sh`: samples (tokens, of texts) a second, medians;\n± the value farthest from the median, where it was kept. By CPU time: a second of the\nprocessor, measured where others worked, too.\n"
    for (i = 1; i <= n; ++i) printf "%d. %s\n", i, processors[i]
    printf "\n| row |"; for (i = 1; i <= n; ++i) printf " %d |", i
    printf "\n|---|"; for (i = 1; i <= n; ++i) printf "---:|"; print ""
    for (j = 1; j <= m; ++j) {
      printf "| %s |", names[j]
      for (i = 1; i <= n; ++i) {
        if (value[processors[i], names[j]] == "") printf " |"
        else printf " %.4g%s |", value[processors[i], names[j]], spread[processors[i], names[j]] }
      print "" }
    for (j = 1; j <= m; ++j) if (names[j] ~ /, bf16$/) {
      name = names[j]; sub(/, bf16/, "", name)
      if (name !~ /ranks/) printf "| %s, bf16 over f32 |", name
      if (name !~ /ranks/) for (i = 1; i <= n; ++i) {
        f = value[processors[i], name ", f32"]; b = value[processors[i], names[j]]
        printf (f > 0 && b > 0 ? " %.2f |" : " |"), (f > 0 ? b / f : 0) }
      if (name !~ /ranks/) print ""
      printf "| %s, bf16 over the best peer |", name
      for (i = 1; i <= n; ++i) {
        p = best[processors[i], name]; b = value[processors[i], names[j] " beside peers"]
        if (b == "") b = value[processors[i], names[j]]
        printf (p > 0 && b > 0 ? " %.2f |" : " |"), (p > 0 ? b / p : 0) }
      print "" }
    for (j = 1; j <= m; ++j) if (names[j] ~ /, f32 beside peers$/) {
      name = names[j]; sub(/, f32.*/, "", name)
      printf "| %s, f32 over the best peer in f32 |", name
      for (i = 1; i <= n; ++i) {
        p = best32[processors[i], name]; f = value[processors[i], names[j]]
        printf (p > 0 && f > 0 ? " %.2f |" : " |"), (p > 0 ? f / p : 0) }
      print "" } }' "$out" > "${out%.tsv}.md"
echo "${out%.tsv}.md"
