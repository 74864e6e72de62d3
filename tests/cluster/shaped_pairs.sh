# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# shaped_pairs COUNT RATE SIZE ROUNDS: prints for each algorithm its name, ms over real links, ms with slowed messages,
# and their ratio. Needs $hosts (hosts.sh, up with links of this RATE) and $echelon. All ranks run at a real-time
# priority, because other work of the machine would delay them, and both networks with them.
shaped_pairs() {
  local bench=(bench allreduce --algorithms "ring,tree,server" --sizes "$3" --iterations 5 --warmup 1 --json)
  local rows; rows=$(mktemp)
  for _ in $(seq "$4"); do
    timeout 120 chrt -r 5 "$hosts" mpirun -n "$1" "$echelon" "${bench[@]}" | sed 's/^/hosts /' >> "$rows"
    (eval "$("$hosts" env)"; unset OMPI_MCA_btl OMPI_MCA_btl_tcp_if_include OMPI_MCA_oob_tcp_if_include
     timeout 120 chrt -r 5 mpirun -n "$1" --oversubscribe --bind-to none "$echelon" "${bench[@]}" --shaped "$2") |
      sed 's/^/shaped /' >> "$rows"
  done
  python3 - "$rows" << 'PYTHON'
import json, statistics, sys
times = {}
for line in open(sys.argv[1]):
    kind, row = line.split(" ", 1)
    row = json.loads(row)
    times.setdefault(row["algorithm"], {}).setdefault(kind, []).append(1e3 * row["p50_s"])
for name in ("ring", "tree", "server"):
    real, shaped = (statistics.median(times[name][kind]) for kind in ("hosts", "shaped"))
    print(name, f"{real:.1f} {shaped:.1f} {shaped / real:.3f}")
PYTHON
  rm -f "$rows"
}
