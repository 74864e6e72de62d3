#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Tests the claims of configs/claims/ that counts decide, and writes their page.
#   claims.sh ECHELON            runs them all; writes results/claims/NN.json and the page results/claims.md, .svg
#   claims.sh ECHELON --check    runs them all again and expects the same verdicts and, byte for byte, the same page
set -eu
echelon=$(realpath "$1")
cd "$(dirname "$0")/../.."
work=build/claims
rm -rf "$work"
mkdir -p "$work/records" "$work/page"
export OMP_WAIT_POLICY=passive PMIX_MCA_psec=${PMIX_MCA_psec-^munge}
[ "$(id -u)" = 0 ] && export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
for file in configs/claims/*.toml; do
  grep -q '^instrument = "exact"' "$file" || continue
  number=$(basename "$file" | cut -d_ -f1)
  ranks=$(sed -n 's/^ranks = \[\(.*\)\]/\1/p' "$file" | tr ', ' '\n' | sort -n | tail -1)
  timeout 300 mpirun -n "$ranks" --oversubscribe --bind-to none "$echelon" scale "$file" --set run.results="$work" \
    > "$work/$number.log" 2>&1 || { tail -20 "$work/$number.log" >&2; echo "claims: $file failed" >&2; exit 1; }
  cp "$work/claim-$number/claim.json" "$work/records/$number.json"
done
if [ "${2:-}" = --check ]; then
  "$echelon" report --claims "$work/records" --out "$work/page" | sed '/^written/,$d' > "$work/now.txt"
  "$echelon" report --claims results/claims --out "$work/page" | sed '/^written/,$d' > "$work/then.txt"
  diff "$work/then.txt" "$work/now.txt" || { echo "claims: a verdict is not that of results/claims" >&2; exit 1; }
  for file in claims.md claims.svg; do
    cmp "$work/page/$file" "results/$file" || { echo "claims: results/$file is not made from its records" >&2; exit 1; }
  done
  head -1 "$work/now.txt"
else
  mkdir -p results/claims
  cp "$work/records/"*.json results/claims/
  "$echelon" report --claims results/claims --out results
fi
