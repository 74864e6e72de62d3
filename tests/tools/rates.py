#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures rates around training: start, checkpoints beside dd, `eval` and `predict` beside a step's forward pass.

  rates.py ECHELON [--rounds 5] [--only start|checkpoint|evaluation]     from the repository's root

Three Markdown tables, medians over the rounds, least and greatest behind. Imports: tests/tools/input.py."""
import argparse
import glob
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time

MODELS = {  # config, shape and classes of random data, samples
    "LeNet": ("configs/bench/lenet.toml", "1,28,28", 10, 8192),
    "ResNet-20": ("configs/bench/resnet20.toml", "3,32,32", 10, 1024),
}


def call(words, **more):
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300, **more)
    if done.returncode:
        sys.exit(f"{' '.join(words)}: code {done.returncode}\n{done.stdout[-2000:]}")
    return done.stdout


def train(args, config, data, results, sets, ranks=0):
    words = ["mpirun", "-n", str(ranks), "--bind-to", "none"] if ranks else []
    words += [args.echelon, "train", config]
    for one in [f"data.train={data}", f"run.results={results}", "run.progress=none", "device.threads=1", *sets]:
        words += ["--set", one]
    return call(words)


def synth(args, work, name):
    _, shape, classes, samples = MODELS[name]
    data = f"{work}/{name}"
    call([args.echelon, "data", "synth", "--out", data, "--samples", str(samples), "--shape", shape, "--classes",
          str(classes)])
    return data


def cell(values, form="{:.2f}"):
    texts = [form.format(value) for value in (statistics.median(values), min(values), max(values))]
    return "{} ({} to {})".format(*texts)


def start(args, work):
    data = synth(args, work, "LeNet")
    launches = {"without a launcher": 0, "`mpirun -n 1`": 1, "`mpirun -n 2`": 2}
    first, whole = ({name: [] for name in launches} for _ in range(2))
    for _ in range(args.rounds):
        for name, ranks in launches.items():
            with tempfile.TemporaryDirectory(dir=work) as results:
                begin = time.perf_counter()
                text = train(args, MODELS["LeNet"][0], data, results, ["train.steps=1"], ranks)
                whole[name].append(time.perf_counter() - begin)
            first[name].append(float(re.search(r"first step ([\d.]+) s after the start", text)[1]))
    print("| LeNet, one step | end of the first step after the start of a rank, s | whole command, s |\n|---|---:|---:|")
    for name in launches:
        print(f"| {name} | {cell(first[name])} | {cell(whole[name])} |")
    print(flush=True)


def dd_s(work, size):
    path = f"{work}/dd"
    begin = time.perf_counter()
    call(["dd", "if=/dev/zero", f"of={path}", "bs=1M", f"count={max(1, round(size / 2**20))}", "conv=fsync"])
    took = time.perf_counter() - begin
    os.unlink(path)
    return took


def checkpoint(args, work):
    data = f"{work}/vgg"
    call([args.echelon, "data", "synth", "--out", data, "--samples", "128", "--shape", "512,7,7", "--classes", "1000"])
    written, plain = [], []
    for _ in range(args.rounds):
        with tempfile.TemporaryDirectory(dir=work) as results:
            train(args, "configs/scaling/vgg_head.toml", data, results,
                  ["train.steps=6", "checkpoint.every_steps=2", "checkpoint.asynchronous=false", "optimizer.momentum=0"])
            (path,) = glob.glob(f"{results}/*/run-*/01/metrics.jsonl")
            with open(path) as file:
                rows = [row for row in map(json.loads, file) if row["type"] == "checkpoint"]
        size = rows[0]["bytes"]
        written.append(size / 1e6 / statistics.median(row["write_s"] for row in rows))
        plain.append(size / 1e6 / dd_s(work, size))
    print(f"| {size / 1e6:,.0f} MB, fsync included | MB/s |\n|---|---:|\n| checkpoint, checksums included | {cell(written, '{:.0f}')} |")
    print(f"| dd of zeros, `conv=fsync` | {cell(plain, '{:.0f}')} |\n", flush=True)


def forward_s(args, config):
    text = call([args.echelon, "bench", "step", config, "--batch", "256", "--threads", "1", "--steps", "10"])
    scale = {"us": 1e-6, "ms": 1e-3, "s": 1}
    return sum(float(time) * scale[unit] for time, unit in re.findall(r"^\S+ +forward +([\d.]+) (us|ms|s)\b", text, re.M))


def evaluation(args, work):
    print("| model, one thread | forward pass of a step, samples/s | `echelon eval` | `echelon predict` |\n|---|---:|---:|---:|")
    for name, (config, _, _, samples) in MODELS.items():
        data, results = synth(args, work, name), f"{work}/{name}-run"
        train(args, config, data, results, ["train.steps=1"])
        (run,) = glob.glob(f"{results}/*/run-*")
        found = {"forward": [], "eval": [], "predict": []}
        for _ in range(args.rounds):
            found["forward"].append(256 / forward_s(args, config))
            for way, more in (("eval", []), ("predict", ["--out", f"{work}/p.h5"])):
                begin = call([args.echelon, way, run, data, "--threads", "1", *more])
                found[way].append(float(re.search(r"speed +([\d,.]+) samples/s", begin)[1].replace(",", "")))
        print(f"| {name} | {' | '.join(cell(values, '{:,.0f}') for values in found.values())} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("echelon")
    parser.add_argument("--rounds", type=int, default=5)
    parts = {"start": start, "checkpoint": checkpoint, "evaluation": evaluation}
    parser.add_argument("--only", choices=parts)
    args = parser.parse_args()
    args.echelon = os.path.realpath(args.echelon)
    if os.geteuid() == 0:
        os.environ.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    for name, part in parts.items():
        if args.only in (None, name):
            with tempfile.TemporaryDirectory() as work:
                part(args, work)


if __name__ == "__main__":
    main()
