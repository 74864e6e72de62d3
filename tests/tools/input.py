#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures how fast data come in: the ways to shard reading, and importers.

  input.py ECHELON [--rounds N] [--ranks N] [--only sharding|import]     from the repository's root

Two Markdown tables, medians over N rounds (5) in turns:

  sharding  a linear model on 32x32 images in compressed shards, so that reading bounds a step; for each way of
            data.sharding: bytes read from the shards over those trained on, and samples a second over all ranks
  import    samples and MB a second of `echelon data import` by one process, from files in the page cache. Folders of
            images and archives need cjpeg (libjpeg-turbo-progs)
"""
import argparse
import glob
import json
import os
import random
import shutil
import statistics
import struct
import subprocess
import sys
import tarfile
import tempfile
import time

MODEL = """name = "input"
[[model.layers]]
type = "flatten"
[[model.layers]]
type = "dense"
units = 10
[batch]
global = 256
[train]
epochs = 2
[device]
threads = 1
[checkpoint]
every_epochs = 0
[run]
progress = "none"
"""
WAYS = {"file": [], "record": [], "record, in file order": ["data.sharding=record", "data.shuffle=false"], "node": [],
        "replicated": []}


def call(words, **more):
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **more)
    if done.returncode:
        sys.exit(f"{' '.join(words)}: code {done.returncode}\n{done.stdout[-2000:]}")


def sharding(args, work):
    call([args.echelon, "data", "synth", "--out", work + "/data", "--samples", "40960", "--shape", "3,32,32", "--shards",
          "16", "--compress", "1"])
    with open(work + "/model.toml", "w") as file:
        file.write(MODEL)
    found = {way: [] for way in WAYS}
    for number in range(args.rounds):
        for way, sets in WAYS.items():
            results = f"{work}/{number}-{way.split(',')[0]}-{len(sets)}"
            words = ["mpirun", "-n", str(args.ranks), "--oversubscribe", "--bind-to", "none", args.echelon, "train",
                     work + "/model.toml"]
            for one in [f"data.train={work}/data", f"run.results={results}", *(sets or [f"data.sharding={way}"])]:
                words += ["--set", one]
            call(words)
            with open(glob.glob(results + "/*/run-*/01/summary.json")[0]) as file:
                found[way].append(json.load(file))
    print("| data.sharding | read over used | least to greatest | samples/s | least to greatest |\n|---|--:|---|--:|---|")
    for way, runs in found.items():
        over = [run["bytes_read"] / run["bytes_used"] for run in runs]
        rate = [run["samples_per_s_overall"] for run in runs]
        print(f"| {way} | {statistics.median(over):.2f} | {min(over):.2f} to {max(over):.2f} | "
              f"{statistics.median(rate):,.0f} | {min(rate):,.0f} to {max(rate):,.0f} |", flush=True)


def write_idx(work, samples):
    pixels = random.Random(1).randbytes(28 * 28 * samples)
    with open(work + "/images.idx", "wb") as file:
        file.write(struct.pack(">IIII", 0x803, samples, 28, 28) + pixels)
    with open(work + "/labels.idx", "wb") as file:
        file.write(struct.pack(">II", 0x801, samples) + bytes(i % 10 for i in range(samples)))
    return ["idx", work + "/images.idx", work + "/labels.idx"], samples


def write_csv(work, samples):
    draws = random.Random(2)
    with open(work + "/table.csv", "w") as file:
        for i in range(samples):
            file.write(",".join(f"{draws.uniform(-1, 1):.4f}" for _ in range(32)) + f",{i % 10}\n")
    return ["csv", work + "/table.csv", "--shape", "32,1,1", "--stored", "f32"], samples


def write_text(work, words):
    draws = random.Random(3)
    kinds = ["".join(draws.choice("etaoinshrdlu") for _ in range(draws.randint(2, 9))) for _ in range(20000)]
    with open(work + "/text.txt", "w") as file:
        for i in range(words // 20):
            file.write(" ".join(draws.choice(kinds) for _ in range(20)) + "\n")
    return work + "/text.txt"


def smooth_image(draws, size):
    """Returns a PPM of a few gradients and boxes: it has a size that JPEG compresses like photographs."""
    a, b, c = (draws.randint(1, 5) for _ in range(3))
    rows = bytearray()
    for y in range(size):
        for x in range(size):
            rows += bytes(((a * x + y) & 255, (b * y + x // 2) & 255, (c * (x ^ y)) & 255))
    return b"P6\n%d %d\n255\n" % (size, size) + bytes(rows)


def write_images(work, samples, size=256, kinds=64):
    draws = random.Random(4)
    encoded = [subprocess.run(["cjpeg", "-quality", "85"], input=smooth_image(draws, size), stdout=subprocess.PIPE,
                              check=True).stdout for _ in range(kinds)]
    with tarfile.open(work + "/images.tar", "w") as archive:
        for i in range(samples):
            folder = f"{work}/images/class{i % 10}"
            os.makedirs(folder, exist_ok=True)
            path = f"{folder}/{i:06}.jpg"
            with open(path, "wb") as file:
                file.write(encoded[i % kinds])
            archive.add(path, f"{i:06}.jpg")
            label = f"{work}/label"
            with open(label, "w") as file:
                file.write(str(i % 10))
            archive.add(label, f"{i:06}.cls")
    return work + "/images", work + "/images.tar"


def importers(args, work):
    jobs = {"idx, 28x28": write_idx(work, 60000), "csv, 32 values": write_csv(work, 60000)}
    text = write_text(work, 1000000)
    jobs["words"] = (["words", text], 1000000)
    jobs["words, verbatim"] = (["words", text, "--tokens", "verbatim"], 1050000)
    jobs["characters"] = (["text", text], os.path.getsize(text))
    if shutil.which("cjpeg"):
        folder, archive = write_images(work, 2000)
        jobs["images, 256x256 JPEG to 64x64"] = (["images", folder, "--size", "64"], 2000)
        jobs["tar, the same"] = (["tar", archive, "--size", "64"], 2000)
    else:
        print("skipped: folders of images need cjpeg (libjpeg-turbo-progs)", file=sys.stderr)
    size = {name: sum(os.path.getsize(path) if os.path.isfile(path) else
                      sum(os.path.getsize(one) for one in glob.glob(path + "/*/*"))
                      for path in words if os.path.exists(path)) for name, (words, _) in jobs.items()}
    took = {name: [] for name in jobs}
    for _ in range(args.rounds):
        for name, (words, _) in jobs.items():
            shutil.rmtree(work + "/out", ignore_errors=True)
            start_s = time.monotonic()
            call([args.echelon, "data", "import", *words, "--out", work + "/out"])
            took[name].append(time.monotonic() - start_s)
    print("| import | samples or tokens/s | MB/s of input | seconds, least to greatest |\n|---|--:|--:|---|")
    for name, (_, samples) in jobs.items():
        mid = statistics.median(took[name])
        print(f"| {name} | {samples / mid:,.0f} | {size[name] / 1e6 / mid:,.1f} | "
              f"{min(took[name]):.2f} to {max(took[name]):.2f} |")


def main():
    options = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    options.add_argument("echelon")
    options.add_argument("--rounds", type=int, default=5)
    options.add_argument("--ranks", type=int, default=4)
    options.add_argument("--only", default="", choices=["", "sharding", "import"])
    args = options.parse_args()
    args.echelon = os.path.realpath(args.echelon)
    for name, table in (("sharding", sharding), ("import", importers)):
        if args.only in ("", name):
            with tempfile.TemporaryDirectory() as work:
                table(args, work)


if __name__ == "__main__":
    main()
