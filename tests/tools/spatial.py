#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Strong scaling over ranks that share each volume: a small CosmoFlow and a 3-D U-Net (configs/scaling/spatial_*.toml).

  spatial.py ECHELON [--rounds 3] [--ranks 1,2,4] [--kinds onednn,paced]      from the repository's root

Writes volumes of random numbers, runs every net on every number of ranks in turns, and prints two Markdown tables:
time a step with speed-up, halos and waits (medians over the rounds, least and greatest behind), and by rank the memory
that `check` predicts, the memory held and the bytes read. Ranks beyond the cores share them, except on `paced`, whose
ops sleep while reading and exchange are real. Needs h5py and numpy."""
import argparse
import glob
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile

import h5py
import numpy

SIDE, FILES = 64, 4
NETS = {"CosmoFlow": "cosmoflow", "3-D U-Net": "unet"}
UNITS = {"B": 1 / 2**20, "KiB": 1 / 2**10, "MiB": 1, "GiB": 2**10}


def call(words):
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=900)
    if done.returncode:
        sys.exit(f"{' '.join(words)}: code {done.returncode}\n{done.stdout[-2000:]}")
    return done.stdout


def write_volumes(folder, net):
    os.makedirs(folder)
    draws = numpy.random.default_rng(5)
    for i in range(FILES):
        with h5py.File(f"{folder}/{i}.h5", "w") as file:
            if net == "cosmoflow":
                file["x"] = draws.standard_normal((SIDE, SIDE, SIDE, 4)).astype("f4")
                file["y"] = draws.uniform(-1, 1, 4).astype("f4")
            else:
                file["x"] = draws.standard_normal((SIDE, SIDE, SIDE)).astype("f4")
                file["y"] = draws.integers(0, 3, (SIDE, SIDE, SIDE)).astype("u1")


def settings(data, kind, ranks):
    sets = [f"data.train={data}", f"device.kind={kind}", f"parallel.space={ranks}", "run.progress=none"]
    if kind == "paced":
        sets += ["device.paced_gflops=20", "device.paced_gb_per_s=4"]
    return [word for one in sets for word in ("--set", one)]


def train(args, work, net, kind, ranks):
    with tempfile.TemporaryDirectory(dir=work) as results:
        words = ["mpirun", "-n", str(ranks), "--bind-to", "none"] if ranks > 1 else []
        call(words + [args.echelon, "train", f"configs/scaling/spatial_{net}.toml", "--set", f"run.results={results}"]
             + settings(f"{work}/{net}", kind, ranks))
        with open(glob.glob(f"{results}/*/run-*/01/summary.json")[0], encoding="utf-8") as file:
            return json.load(file)


def predicted_mb(args, work, net, ranks):
    out = call([args.echelon, "check", f"configs/scaling/spatial_{net}.toml", "--ranks", str(ranks)]
               + settings(f"{work}/{net}", "onednn", ranks))
    amounts = re.findall(r"^ +\d+ .* ([\d.]+) (B|KiB|MiB|GiB)$", out, re.M) or re.findall(
        r"^memory +([\d.]+) (B|KiB|MiB|GiB)", out, re.M)
    return max(float(amount) * UNITS[unit] for amount, unit in amounts)


def spread(values, form):
    return f"{statistics.median(values):{form}} ({min(values):{form}} to {max(values):{form}})"


def share(summary, part):
    return 100 * summary["time_split_s"][part] / summary["time_split_s"]["total"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("echelon")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--ranks", default="1,2,4")
    parser.add_argument("--kinds", default="onednn,paced")
    args = parser.parse_args()
    args.echelon = os.path.abspath(args.echelon)
    ranks = [int(k) for k in args.ranks.split(",")]
    kinds = args.kinds.split(",")
    runs = {(name, kind, k): [] for name in NETS for kind in kinds for k in ranks}
    with tempfile.TemporaryDirectory() as work:
        for net in NETS.values():
            write_volumes(f"{work}/{net}", net)
        for _ in range(args.rounds):
            for name, kind, k in runs:
                runs[name, kind, k].append(train(args, work, NETS[name], kind, k))
        memory = {(name, k): predicted_mb(args, work, NETS[name], k) for name in NETS for k in ranks}
    print("| net | device | ranks | s a step | speed-up | halos a step, MiB | waiting for neighbours, % |")
    print("|---|---|---:|---:|---:|---:|---:|")
    for (name, kind, k), made in runs.items():
        steps = [run["step_s"]["median"] for run in made]
        alone = statistics.median(run["step_s"]["median"] for run in runs[name, kind, ranks[0]])
        halos = (made[0].get("halo_bytes_per_step") or 0) / 2**20
        print(f"| {name} | {kind} | {k} | {spread(steps, '.3f')} | {alone / statistics.median(steps):.2f} | {halos:.2f} "
              f"| {spread([share(run, 'split') for run in made], '.0f')} |")
    print("\n| net | ranks | memory a rank, predicted, MiB | held, MiB | of one rank | read a rank, MiB | of one rank |")
    print("|---|---:|---:|---:|---:|---:|---:|")
    for name in NETS:
        one = runs[name, kinds[0], ranks[0]][0]
        for k in ranks:
            run = runs[name, kinds[0], k][0]
            held, read = max(run["device_peak_mb"]), run["bytes_read"] / k
            print(f"| {name} | {k} | {memory[name, k]:.1f} | {held:.1f} | {held / one['device_peak_mb'][0]:.2f} "
                  f"| {read / 2**20:.2f} | {read / one['bytes_read']:.2f} |")


if __name__ == "__main__":
    main()
