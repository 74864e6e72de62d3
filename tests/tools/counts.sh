#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Compares bytes and messages of short runs with those recorded in tests/counts: they follow from the plans of the
# exchange, so any difference is a change of the program. Ends with code 8 where a run sends more.
#   counts.sh ECHELON [JUNIT]       compare; JUNIT: a file for the CI's list of tests
#   counts.sh ECHELON --record      stores what this build sends as the new record
set -eu
cd "$(dirname "$0")/../.."
echelon=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
[ "$(id -u)" = 0 ] && export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMP_WAIT_POLICY=passive OMPI_MCA_rmaps_base_oversubscribe=1

train() { # name ranks settings...
  local sets=() name=$1 ranks=$2; shift 2
  for set in "name=$name" run.results="$work" run.progress=none device.threads=1 train.epochs=0 train.steps=6 "$@"; do
    sets+=(--set "$set")
  done
  mpirun -n "$ranks" --oversubscribe --bind-to none "$echelon" train configs/smoke/digits.toml "${sets[@]}" > "$work/log" 2>&1 ||
    { cat "$work/log"; exit 1; }
}
train ring 3 exchange.segment_kb=16
train server 3 exchange.algorithm=server exchange.servers=2
train averaging 2 exchange.strategy=averaging exchange.averaging.period=2
train tensor 2 parallel.tensor=2

if [ "${2:-}" = --record ]; then
  python3 - "$work" tests/counts << 'PYTHON'
import glob, json, os, shutil, sys
shutil.rmtree(sys.argv[2], ignore_errors=True)
for run in glob.glob(sys.argv[1] + "/*/run-*/01"):
    to = os.path.join(sys.argv[2], run.split("/")[-3])
    os.makedirs(to)
    summary = json.load(open(run + "/summary.json"))
    del summary["device_text"]
    summary["provenance"] = {"commit": summary["provenance"]["commit"].removesuffix("-dirty")}
    json.dump(summary, open(to + "/summary.json", "w"), indent=1)
    json.dump({"state": "finished", "exit_code": 0, "reason": "", "step": 6, "checkpoint": ""}, open(to + "/status.json", "w"))
    lines = [line for line in open(run + "/config.toml") if not line.startswith("results = ")]
    open(to + "/config.toml", "w").writelines(lines)
PYTHON
else
  "$echelon" compare tests/counts "$work" --only counts --allow device_text ${2:+--junit "$2"}
fi
