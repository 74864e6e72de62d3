#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures what checkpoints cost: training waits for the disk, or only for a copy of the state.

  checkpoints.py ECHELON [--rounds N] [--threads N] [--only NAME]     from the repository's root

Runs each model on one rank in turns: without checkpoints, with checkpoint.asynchronous = false, and = true; medians
over N rounds (5), of checkpoints that the end of the run does not wait for. Prints a Markdown table: how long training
was blocked by a checkpoint, how long its write took, and the mean step beside that without checkpoints.
"""
import argparse
import glob
import json
import os
import statistics
import subprocess
import tempfile

# Config, samples of random data (shape, classes), steps, steps between checkpoints, more settings.
MODELS = {
    "LeNet": ("configs/bench/lenet.toml", "1,28,28", 10, 300, 60, []),
    "ResNet-20": ("configs/bench/resnet20.toml", "3,32,32", 10, 24, 6, []),
    "dense layers of VGG-16": ("configs/scaling/vgg_head.toml", "512,7,7", 1000, 18, 6, ["optimizer.momentum=0"]),
}
WAYS = {"none": ["checkpoint.every_steps=0"], "waited for": ["checkpoint.asynchronous=false"],
        "beside": ["checkpoint.asynchronous=true"]}


def rows_of(results):
    for path in glob.glob(f"{results}/*/run-*/[0-9]*/metrics.jsonl"):
        with open(path) as file:
            yield from map(json.loads, file)


def run(echelon, model, way, args, data, results):
    """Returns checkpoints as (bytes, blocked, written), and the seconds of the mean step."""
    config, _, _, steps, every, sets = MODELS[model]
    words = [echelon, "train", config]
    for one in [f"train.steps={steps}", f"checkpoint.every_steps={every}", f"data.train={data}", "run.progress=none",
                f"run.results={results}", f"device.threads={args.threads}", *sets, *WAYS[way]]:
        words += ["--set", one]
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL)
    rows = list(rows_of(results))
    saved = [row for row in rows if row["type"] == "checkpoint" and row["step"] < steps]
    took = [row["time"]["total"] for row in rows if row["type"] == "step" and row["step"] > 1]
    return [(row["bytes"], row["blocked_s"], row["write_s"]) for row in saved], statistics.mean(took)


def measure(echelon, model, args, work):
    _, shape, classes, *_ = MODELS[model]
    data = f"{work}/data"
    subprocess.run([echelon, "data", "synth", "--out", data, "--samples", "512", "--shape", shape, "--classes",
                    str(classes)], check=True, stdout=subprocess.DEVNULL)
    saved = {way: [] for way in WAYS}
    step_s = {way: [] for way in WAYS}
    for round_ in range(args.rounds):
        for way in WAYS:
            with tempfile.TemporaryDirectory(dir=work) as results:
                checkpoints, mean_s = run(echelon, model, way, args, data, results)
            saved[way] += checkpoints
            step_s[way].append(mean_s)
    plain_s = statistics.median(step_s["none"])
    for way in ("waited for", "beside"):
        size, blocked_s, write_s = (statistics.median(values) for values in zip(*saved[way]))
        mean_s = statistics.median(step_s[way])
        every = MODELS[model][4]
        print(f"| {model} | {size / 1e6:,.1f} MB | {way} | {1e3 * write_s:,.1f} ms | {1e3 * blocked_s:,.2f} ms | "
              f"{100 * blocked_s / write_s:.1f} % | {1e3 * plain_s:,.2f} ms | {1e3 * (mean_s - plain_s) * every:+,.1f} ms |",
              flush=True)


def main():
    options = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    options.add_argument("echelon")
    options.add_argument("--rounds", type=int, default=5)
    options.add_argument("--threads", type=int, default=1)
    options.add_argument("--only", default="")
    args = options.parse_args()
    echelon = os.path.realpath(args.echelon)
    print("| model | checkpoint | training | write | blocked | of the write | step without | longer by, a checkpoint |")
    print("|---|--:|---|--:|--:|--:|--:|--:|")
    for model in MODELS:
        if args.only in ("", model):
            with tempfile.TemporaryDirectory() as work:
                measure(echelon, model, args, work)


if __name__ == "__main__":
    main()
