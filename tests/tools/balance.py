#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares data.balance = "speed" with equal shares, with one rank at half speed, and with the ideal of both.

  balance.py ECHELON [--ranks 2 4] [--rounds N] [--steps N] [--gflops X]     from the repository's root

Ranks compute for real and sleep until the time that a step of their samples would take at --gflops; the last rank takes
twice as long. The ideal is the rate of k - 1/2 ranks of full speed, of which the run without a slow rank has k. Prints
a Markdown table of the median step after the first 20: medians over the rounds, which run in turns."""
import argparse
import glob
import json
import statistics
import subprocess
import tempfile

WAYS = {"all alike": [], "one at half speed, equal shares": ["slow"],
        "one at half speed, data.balance = \"speed\"": ["slow", "data.balance=speed"]}
SKIPPED = 20  # first steps, before shares are known


def step_ms(args, ranks, ways):
    sets = ["train.epochs=0", f"train.steps={args.steps}", "run.progress=none", "device.threads=1", "device.pace_ms=-1",
            f"device.paced_gflops={args.gflops}", f"batch.global={48 * ranks}", "evaluate.every_epochs=0",
            "checkpoint.every_epochs=0", "data.ragged=zero_weight", "optimizer.warmup_epochs=0"]
    sets += [f"device.pace_factors=[{', '.join(['1'] * (ranks - 1) + ['2'])}]" if way == "slow" else way for way in ways]
    with tempfile.TemporaryDirectory() as results:
        words = ["mpirun", "-n", str(ranks), "--oversubscribe", "--bind-to", "none", args.echelon, "train",
                 "configs/smoke/digits.toml", "--set", f"run.results={results}"]
        for one in sets:
            words += ["--set", one]
        subprocess.run(words, check=True, stdout=subprocess.DEVNULL, timeout=300)
        (path,) = glob.glob(f"{results}/*/run-*/01/metrics.jsonl")
        with open(path) as file:
            rows = [json.loads(line) for line in file]
    return 1e3 * statistics.median(row["time"]["total"] for row in rows if row["type"] == "step" and row["step"] > SKIPPED)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("echelon")
    parser.add_argument("--ranks", type=int, nargs="+", default=[2, 4])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--gflops", type=float, default=1)
    args = parser.parse_args()
    print("| ranks | | ms a step | beside ideal |\n|--:|---|--:|--:|")
    for ranks in args.ranks:
        took = {way: [] for way in WAYS}
        for _ in range(args.rounds):
            for way, sets in WAYS.items():
                took[way].append(step_ms(args, ranks, sets))
        ms = {way: statistics.median(times) for way, times in took.items()}
        ideal = ms["all alike"] * ranks / (ranks - 0.5)
        for way, figure in ms.items():
            print(f"| {ranks} | {way} | {figure:.1f} | {'' if way == 'all alike' else f'{figure / ideal:.2f}'} |")
        print(f"| {ranks} | ideal | {ideal:.1f} | 1 |", flush=True)


if __name__ == "__main__":
    main()
