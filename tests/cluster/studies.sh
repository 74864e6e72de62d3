# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154
# Runs studies over hosts of their own. Part of run.sh, which has the functions and variables used here. The runs have
# one rank per host and then two: ranks 0 and 4 are on h1.
study() { # FILE SECTION..: digits.toml as a study
  local file=$1; shift
  { cat digits.toml; printf '%s\n' "$@"; } > "$file"
}
short=(--set train.epochs=1 --set optimizer.warmup_epochs=0 --set data.test= --set checkpoint.every_epochs=0 --set run.progress=none --set device.threads=1)
cells() { cat results/"$1"/*/cell.json 2> /dev/null; }

# Nothing arrives at h3 from h2, as behind a firewall that drops packets.
study blocked.toml '[study]' 'ranks = [4]' 'network = true'
nsenter --net=/run/netns/h2 ip neigh replace 10.78.0.3 lladdr 02:00:00:00:00:99 dev net0 nud permanent
timeout 180 "$hosts" mpirun -n 4 ./echelon scale blocked.toml "${short[@]}" --set name=blocked > blocked.log 2>&1
code=$?
nsenter --net=/run/netns/h2 ip neigh del 10.78.0.3 dev net0
verdict "${names[13]}" '8, h2 <-> h3 is blocked, no cell was run, 0 cells' \
  "$code, $(grep -o 'BLOCKED .*' blocked.log | grep -o 'h2 <-> h3 is blocked'), $(grep -o 'no cell was run' blocked.log), $(cells blocked | grep -c state) cells" \
  blocked.log

# Nothing arrives at h2 from h1. Ranks use that link before anything is measured; either end may name it first.
nsenter --net=/run/netns/h1 ip neigh replace 10.78.0.2 lladdr 02:00:00:00:00:99 dev net0 nud permanent
timeout 120 "$hosts" mpirun -n 4 ./echelon scale blocked.toml "${short[@]}" --set name=unmet > unmet.log 2>&1
code=$?
nsenter --net=/run/netns/h1 ip neigh del 10.78.0.2 dev net0
verdict "${names[14]}" '7, has not met all other ranks in 20 s: the link between h1 and h2, 0 cells' \
  "$code, $(grep -o 'on h[1-4] has not met all other ranks in 20 s: the link between h[1-4] and h[1-4]' unmet.log | head -1 | cut -d' ' -f3- | sed 's/h2 and h1/h1 and h2/'), $(cells unmet | grep -c state) cells" \
  unmet.log

# Two lanes have four ranks each, on two hosts; a cell of two ranks takes one of the hosts.
study lanes.toml '[study]' 'ranks = [2, 4]' 'side_by_side = 2' 'repeats = 2' '[study.axes]' '"exchange.algorithm" = ["ring", "tree"]'
timeout 180 "$hosts" mpirun -n 8 ./echelon scale lanes.toml "${short[@]}" --set name=lanes > lanes.log 2>&1
code=$?
hosts_of() { # RANKS: of its cells
  sed -n 's/^ *"hosts": \([0-9]*\),/\1/p' results/lanes/k"$1"_*/run-*/01/summary.json 2> /dev/null | sort | uniq -c | tr -s ' '
}
firsts() { # on how many hosts cells began
  grep -h -A1 '"hosts": \[' results/lanes/k*/run-*/01/summary.json 2> /dev/null | grep -o '"h[1-4]"' | sort -u | wc -l
}
verdict "${names[15]}" '0, 8 finished, k2: 4 1, k4: 4 2, first ranks on 2' \
  "$code, $(cells lanes | grep -c '"state": "finished"') finished, k2:$(hosts_of 2), k4:$(hosts_of 4), first ranks on $(firsts)" lanes.log
unset 'names[13]' 'names[14]' 'names[15]' # judged above: not to be skipped where Slurm is missing
