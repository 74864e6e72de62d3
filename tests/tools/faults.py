#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Injects every fault under every strategy and checks the result (slurm/FAULTS.md).

  faults.py ECHELON [--only "NAME;.."] [--faults "NAME;.."] [--at-once N] [--out FILE.md]   from the repository's root

Three ranks learn data/digits. Each cell is a run with one fault: its exit code (status.json, where the launcher has its
own), what it prints, and the seconds from the fault to the end of the run must be as promised; the same command without
the fault must then finish. The columns are the lines of kills.py. The exit status is 1 where a promise was not kept.
"""
import argparse
import concurrent.futures
import glob
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from datetime import datetime, timezone

from kills import load, prepare_environment, tell, ways

RANKS, STEPS, LIMIT_S, HANG_S = 3, 48, 60, 6
COMMON = ["device.threads=1", "device.pace_ms=4", "train.epochs=0", f"train.steps={STEPS}", "checkpoint.every_steps=8",
          "checkpoint.every_epochs=0", "evaluate.every_epochs=0", "exchange.bucket_mb=0.05", "run.progress=none",
          "optimizer.schedule=constant",  # a run of more steps is still the same run
          f"run.hang_timeout_s={HANG_S}"]
CHECKED = ["exchange.check_messages=true"]
# name: (sentence, codes, printed pattern, further settings)
FAULTS = {
    "kill": ("kill rank 1 at step 20 in backward", {7}, "rank 1 on .* was lost", []),
    "stop": ("stop rank 1 at step 20", {7}, "has been waiting|was lost", []),
    "stop for 0.5 s": ("stop rank 1 for 500ms at step 20", {0}, "", []),
    "slow": ("slow rank 2 by 3", {0}, "", []),
    "delay": ("delay messages of rank 1 by 2ms", {0}, "", []),
    "drop, checked": ("drop message of rank 1 at step 20", {3, 7}, "was lost|has been waiting", CHECKED),
    "corrupt, checked": ("corrupt message of rank 1 at step 20", {3}, "message from rank 1 on .* arrived damaged", CHECKED),
    "cut": ("cut rank 1 at step 20", {7}, "has been waiting", []),
    "disk full": ("disk full after 20KB", {3}, "No space left on device", []),
    "short writes": ("short writes", {0}, "", []),
    "fsync fails": ("fsync fails at step 20", {3}, "Input/output error", []),
    "slow reads": ("reads at 500KB a second on rank 1", {0}, "", []),
    "flip weight": ("flip bit 10 of weight 20 of rank 1 at step 20", {0, 5}, "", ["exchange.verify_every_steps=4"]),
    "flip gradient": ("flip bit 3 of gradient 20 of rank 1 at step 20", {0}, "", []),
    "flip checkpoint": (f"flip checkpoint bit at step {STEPS}", {0}, "", ["checkpoint.every_steps=25"]),
    "flip shard": ("flip shard bit on rank 1", {4}, "damaged", []),
}


def run(command, limit_s=LIMIT_S):
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                               start_new_session=True)
    try:
        text, _ = process.communicate(timeout=limit_s)
        return process.returncode, text, False
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, 9)
        return -1, process.communicate()[0], True


def rewritten(attempt):
    """Tells whether a good checkpoint replaced the damaged one: at the end, when all replicas are as far as the first
    one was before."""
    with open(attempt + "/metrics.jsonl") as file:
        return sum(row["type"] == "checkpoint" and row["step"] == STEPS for row in map(json.loads, file)) > 1


def cell(echelon, sets, fault):
    """Tries one fault; returns "" and the seconds to the end, or what broke the promise."""
    sentence, codes, pattern, more = FAULTS[fault]
    with tempfile.TemporaryDirectory() as results:
        words = ["mpirun", "-n", str(RANKS), "--oversubscribe", "--bind-to", "none", echelon, "train",
                 "configs/smoke/digits.toml"]
        for one in [*COMMON, *sets, *more, f"run.results={results}"]:
            words += ["--set", one]
        faulty = words + ["--set", "run.allow_faults=true", "--set", f'fault.inject=["{sentence}"]']
        code, text, hung = run(faulty)
        ended = time.time()
        if hung:
            return f"no end within {LIMIT_S} s", None
        attempts = sorted(glob.glob(f"{results}/*/run-*/01"))
        status = load(attempts[0] + "/status.json") if attempts else {}
        disk = fault in ("disk full", "fsync fails")
        got = code if disk else status.get("exit_code", code)
        written = glob.glob(f"{results}/*/run-*/faults.jsonl")
        if not written:
            return "it did not happen", None
        with open(written[0]) as file:
            first = json.loads(file.readline())
        when = datetime.strptime(first["time"], "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=timezone.utc).timestamp()
        if got not in codes:
            return f"code {got} ({first['detail']}): {text[-600:]}", None
        if got != 0 and not re.search(pattern, text):
            return f"not named: {text[-600:]}", None
        if codes != {0} or fault == "flip checkpoint":
            again, text, hung = run(words + (["--set", f"train.steps={STEPS + 8}"] if got == 0 else []))
            if hung or again != 0:
                return f"not resumed ({again}): {text[-600:]}", None
            if fault == "flip checkpoint" and "damaged and was skipped" not in text and not rewritten(attempts[0]):
                return f"damage was not found: {text[-600:]}", None
        return "", max(0.0, ended - when) if got != 0 else None


def main():
    options = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    options.add_argument("echelon")
    options.add_argument("--only", default="", help="strategies or meshes, with ; between")
    options.add_argument("--faults", default="", help="faults, with ; between")
    options.add_argument("--at-once", type=int, default=2, help="runs")
    options.add_argument("--out", help="write the table here, as markdown")
    args = options.parse_args()
    echelon = os.path.realpath(args.echelon)
    prepare_environment()
    wanted, _ = ways(echelon, RANKS, args.only)
    faults = [name for name in FAULTS if not args.faults or name in args.faults.split(";")]
    kept, seconds, broken = {}, {}, 0
    with concurrent.futures.ThreadPoolExecutor(args.at_once) as pool:
        cells = {(way, fault): pool.submit(cell, echelon, sets, fault)
                 for way, sets in wanted.items() for fault in faults}
        for (way, fault), future in cells.items():
            wrong, took = future.result()
            kept[way, fault] = not wrong
            if took is not None:
                seconds.setdefault(fault, []).append(took)
            if wrong:
                broken += 1
                print(f"{way}, {fault}: {wrong}", flush=True)
    header = ["fault", *wanted, "as promised", "seconds to the end"]
    rows = []
    for fault in faults:
        took = sorted(seconds.get(fault, []))
        good = sum(kept[way, fault] for way in wanted)
        rows.append([fault, *("yes" if kept[way, fault] else "NO" for way in wanted), f"{good} of {len(wanted)}",
                     f"{statistics.median(took):.0f} ({took[0]:.0f} to {took[-1]:.0f})" if took else "-"])
    table = "\n".join("| " + " | ".join(row) + " |" for row in [header, ["---"] * len(header), *rows])
    print(table)
    if args.out:
        with open(args.out, "w") as file:
            file.write(table + "\n")
    return tell("faults", len(cells) - broken, len(cells))


if __name__ == "__main__":
    sys.exit(main())
