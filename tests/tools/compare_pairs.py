#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures how often `echelon compare` is right: false alarms on equal builds, and a slow-down that it must find.

  compare_pairs.py ECHELON [--pairs N] [--slowed N] [--attempts N] [--steps N] [--factor F]   from the repository's root

Each pair trains ATTEMPTS runs a side (3), in turns, of ResNet-20 on random data, one rank, one thread, real compute,
and compares the two folders. In `--pairs` (20) both sides are alike; in `--slowed` (10) the new side's forward and
backward passes take F times as long (1.05, by fault injection: "slow rank 0 by 1.05"). Needs a machine that does
nothing else. Prints a line per pair, and the counts.
"""
import argparse
import json
import subprocess
import tempfile
import time

CONFIG = "configs/bench/resnet20.toml"


def train(echelon, results, data, args, factor):
    words = [echelon, "train", CONFIG]
    for one in [f"train.steps={args.steps}", "train.epochs=0", f"data.train={data}", "batch.global=16", "data.test=",
                "run.progress=none", f"run.results={results}", "run.restart=never", "device.threads=1",
                "checkpoint.every_steps=0", "run.allow_faults=true"]:
        words += ["--set", one]
    if factor != 1:
        words += ["--set", f'fault.inject=["slow rank 0 by {factor}"]']
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL)


def pair(echelon, data, args, factor, work):
    """Returns the exit code of `compare`, and the changes that it found, with their intervals."""
    with tempfile.TemporaryDirectory(dir=work) as folder:
        for _ in range(args.attempts):
            train(echelon, f"{folder}/base", data, args, 1)
            train(echelon, f"{folder}/new", data, args, factor)
        compared = subprocess.run([echelon, "compare", f"{folder}/base", f"{folder}/new", "--only", "throughput",
                                   "--allow", "fault", "--json"], capture_output=True, text=True)
        if compared.returncode not in (0, 8):
            raise SystemExit(f"compare ended with {compared.returncode}: {compared.stderr}")
        figures = [f for run in json.loads(compared.stdout)["runs"] for f in run["figures"]]
        return compared.returncode, "; ".join(
            f"{f['figure']} {100 * f['change']:+.1f} % ({100 * f['low']:+.1f} to {100 * f['high']:+.1f})" for f in figures)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("echelon")
    parser.add_argument("--pairs", type=int, default=20)
    parser.add_argument("--slowed", type=int, default=10)
    parser.add_argument("--attempts", type=int, default=3)
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--factor", type=float, default=1.05)
    args = parser.parse_args()
    begun = time.monotonic()
    with tempfile.TemporaryDirectory() as work:
        data = f"{work}/data"
        subprocess.run([args.echelon, "data", "synth", "--out", data, "--samples", "512", "--shape", "3,32,32",
                        "--classes", "10"], check=True, stdout=subprocess.DEVNULL)
        counts = {}
        for what, number, factor in (("equal", args.pairs, 1), (f"slowed by {args.factor}", args.slowed, args.factor)):
            alarms = 0
            for i in range(number):
                code, found = pair(args.echelon, data, args, factor, work)
                alarms += code == 8
                print(f"{what} {i + 1}/{number}: exit {code}, {found}", flush=True)
            counts[what] = (alarms, number)
    for what, (alarms, number) in counts.items():
        print(f"{what}: {alarms} of {number} called worse")
    print(f"{time.monotonic() - begun:.0f} s")


if __name__ == "__main__":
    main()
