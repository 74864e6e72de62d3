#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Compares [network] with links that are really shaped: `bench allreduce` runs in turns over hosts (hosts.sh) and over
# ranks of this machine whose messages are slowed down; prints the median round of each and their ratio.
#   shaped.sh OUT [ROUNDS [HOSTS..]]      OUT: the build folder; 3 rounds of 2, 4 and 8 hosts by default
# Needs root, network namespaces and an otherwise quiet machine.
set -euo pipefail
cd "$(dirname "$0")/../.."
hosts=$PWD/tests/cluster/hosts.sh
echelon=$(realpath "$1/bin/echelon") rounds=${2:-3}
[ $# -gt 2 ] && shift 2 && counts=("$@") || counts=(2 4 8)
. tests/cluster/shaped_pairs.sh
most=$(printf '%s\n' "${counts[@]}" | sort -n | tail -1)
"$hosts" up "$most" 100mbit > /dev/null
trap '"$hosts" down' EXIT
printf '%-8s %-6s %-8s %10s %10s %8s\n' rate hosts algorithm hosts_ms shaped_ms ratio
for setting in 100mbit:4MiB 1gbit:32MiB; do
  "$hosts" shape "${setting%:*}"
  for count in "${counts[@]}"; do
    shaped_pairs "$count" "${setting%:*}" "${setting#*:}" "$rounds" |
      while read -r algorithm real shaped ratio; do
        printf '%-8s %-6s %-8s %10s %10s %8s\n' "${setting%:*}" "$count" "$algorithm" "$real" "$shaped" "$ratio"
      done
  done
done
