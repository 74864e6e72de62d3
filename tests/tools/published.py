#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints tables of results/planner.md and planner_large.md: `echelon plan` beside published scaling figures, as markdown on standard output.

  published.py ECHELON

Steps have the published samples/s of one device: a third forward, two thirds back-propagation, no optimiser; they vary by
1 % (an assumption: the papers do not give it). Networks are presets of src/planner/network_model.cpp. Takes some seconds."""
import json
import os
import subprocess
import sys
import tempfile

CONFIG = """name = "{zoo}"
[model]
zoo = "{zoo}"
[data]
train = "none"
[batch]
global = 64
[optimizer]
learning_rate = 0.01
momentum = 0.9
[exchange]
bucket_mb = 64
overlap = "buckets"
"""
RING, HALVING = ["exchange.algorithm=ring"], ["exchange.algorithm=halving_doubling"]
HIERARCHY = ["exchange.algorithm=hierarchical", "exchange.inner=ring", "exchange.outer=halving_doubling"]
SERVERS = ["exchange.algorithm=hierarchical", "exchange.inner=ring", "exchange.outer=server"]
LAYERS, FP16 = ["exchange.overlap=layers", "exchange.bucket_mb=8"], ["exchange.codec=fp16"]
# (model, batch of a device, samples/s of a device) on P100 and K80: TensorFlow's benchmarks of May 2017, synthetic data.
P100 = {"resnet50": (64, 219), "inception_v3": (64, 142), "vgg16": (64, 154), "wordlstm": (20, 285.7)}
K80 = {"inception_v3": (64, 29.7), "inception_v3 32": (32, 29.9), "resnet50": (64, 52.4), "alexnet": (512, 684)}
HOROVOD, P2_16, P2_8 = "25gbit,latency_us=5,ranks_per_host=4,inside=pcie", "25gbit,gbit=18.8,latency_us=40,ranks_per_host=16,inside=pcie", \
    "10gbit,latency_us=40,ranks_per_host=8,inside=pcie"
BIG_BASIN = "100gbit,gbit=47,latency_us=5,ranks_per_host=8,inside=nvlink"
ROWS = [  # source, model, device, network, replicas, settings, published efficiency
    ("Horovod, 128 x 4 P100, 25 Gbit/s", "inception_v3", P100["inception_v3"], HOROVOD, 512, RING, "90 %"),
    ("Horovod (ResNet-101)", "resnet50", P100["resnet50"], HOROVOD, 512, RING, "90 %"),
    ("Horovod", "vgg16", P100["vgg16"], HOROVOD, 512, RING, "68 %"),
    ("Horovod, 32 x 4 P100", "vgg16", P100["vgg16"], HOROVOD, 128, RING, "79 %"),
    ("Goyal 2017, 32 x 8 P100", "resnet50", (32, 195), BIG_BASIN, 256, HIERARCHY, "90 % of 8"),
    ("TensorFlow, 8 x 8 K80, 10 Gbit/s", "inception_v3", K80["inception_v3"], P2_8, 64, SERVERS, "94 %"),
    ("TensorFlow", "resnet50", K80["resnet50"], P2_8, 64, SERVERS, "82 %"),
    ("MXNet (ResNet-152), 16 x 16 K80", "resnet50", K80["resnet50"], P2_16, 256, SERVERS, "90 %"),
    ("MXNet", "inception_v3", K80["inception_v3 32"], P2_16, 256, SERVERS, "86 %"),
    ("MXNet", "alexnet", K80["alexnet"], P2_16, 256, SERVERS, "53 %"),
]
NAMES = {"inception_v3": "Inception-v3", "resnet50": "ResNet-50", "vgg16": "VGG-16", "alexnet": "AlexNet",
         "wordlstm": "LSTM 2 x 650"}


class Plans:
    def __init__(self, echelon, folder):
        self.echelon, self.folder = os.path.abspath(echelon), folder

    def rows(self, zoo, device, network, replicas, sets, batches=1, jitter=0.01):
        """Predicts by number of replicas. A larger batch has as many samples a second."""
        with open(f"{self.folder}/{zoo}.toml", "w") as file: file.write(CONFIG.format(zoo=zoo))
        samples, rate = device[0] * batches, device[1]
        words = [self.echelon, "plan", f"{zoo}.toml", "--step", f"samples={samples},samples_per_s={rate},jitter={jitter},"
                 "encode_gb_per_s=100,decode_gb_per_s=100", "--network", network, "--replicas", ",".join(map(str, replicas)),
                 "--compare", "none", "--out", ".", "--name", "plan"]
        for one in sets: words += ["--set", one]
        done = subprocess.run(words, cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if done.returncode: sys.exit(f"{' '.join(words)}\n{done.stdout}")
        return {row["replicas"]: row for row in json.load(open(self.folder + "/plan.json"))["plans"][0]["rows"]}

    def one(self, *rest, **more): return next(iter(self.rows(rest[0], rest[1], rest[2], [rest[3]], *rest[4:], **more).values()))


def percent(value): return f"{100 * value:.0f} %"


def published(plans):
    print("| published by | model | GPUs | published | predicted | range | compute | slowest | exchange | at 3 % |")
    print("|---|---|---:|---:|---:|---|---:|---:|---:|---:|")
    for source, zoo, device, network, k, sets, figure in ROWS:
        row, wide = (plans.one(zoo, device, network, k, sets, jitter=jitter) for jitter in (0.01, 0.03))
        low, high = (row["efficiency"] * row["step_s"] / row[end] for end in ("high_s", "low_s"))
        share = lambda name: percent(row[name] / row["step_s"])
        print(f"| {source} | {NAMES[zoo]} | {k} | {figure} | {percent(row['efficiency'])} | {percent(low)} to {percent(high)} "
              f"| {share('compute_s')} | {share('skew_s')} | {share('exchange_s')} | {percent(wide['efficiency'])} |", flush=True)


def servers(plans):
    print("\n| replicas | published | Inception-v3 on K80, 10 Gbit/s | 25 Gbit/s | P100, 10 Gbit/s | 25 Gbit/s |\n|---:|---|---:|---:|---:|---:|")
    columns = [(device, f"{rate}gbit") for device in (K80["inception_v3"], P100["inception_v3"]) for rate in (10, 25)]
    counts = {8: "6x", 50: "25 to 40x, 32x", 500: "300x"}
    found = [plans.rows("inception_v3", device, network, list(counts), ["exchange.strategy=asynchronous"])
             for device, network in columns]
    for k, figure in counts.items():
        print(f"| {k} | {figure} | " + " | ".join(f"{k * rows[k]['efficiency']:.0f}x" for rows in found) + " |")


def networks(plans):
    counts = [8, 64, 256, 512, 1024, 4096, 10000]
    print("\n| model | network | " + " | ".join(f"{k:,}" for k in counts) + " |\n|---|---|" + "---:|" * len(counts))
    for zoo in P100:
        for rate in (10, 25, 100):
            rows = plans.rows(zoo, P100[zoo], f"{rate}gbit,latency_us=5,ranks_per_host=4,inside=pcie", counts, HIERARCHY + LAYERS)
            print(f"| {NAMES[zoo]} | {rate} Gbit/s | " + " | ".join(percent(rows[k]["efficiency"]) for k in counts) + " |", flush=True)


def setups(plans):
    """Prints what reaches 95 % at 512, in rising order of expense."""
    steps = [("as published: ring, 64 MiB buckets", RING, "25gbit", 1), ("halving and doubling between hosts", HIERARCHY, "25gbit", 1),
             ("and each layer waits for its own weights", HIERARCHY + LAYERS, "25gbit", 1),
             ("and gradients in fp16", HIERARCHY + LAYERS + FP16, "25gbit", 1),
             ("and twice the batch of a GPU", HIERARCHY + LAYERS + FP16, "25gbit", 2),
             ("100 Gbit/s, fp32, the batch as published", HIERARCHY + LAYERS, "100gbit", 1),
             ("100 Gbit/s, fp16", HIERARCHY + LAYERS + FP16, "100gbit", 1),
             ("100 Gbit/s, fp16, twice the batch", HIERARCHY + LAYERS + FP16, "100gbit", 2),
             ("100 Gbit/s, fp16, four times the batch", HIERARCHY + LAYERS + FP16, "100gbit", 4)]
    print("\n| 512 P100, 4 a host | " + " | ".join(NAMES[zoo] for zoo in P100) + " |\n|---|" + "---:|" * len(P100))
    for label, sets, base, batches in steps:
        cells = [percent(plans.one(zoo, P100[zoo], f"{base},latency_us=5,ranks_per_host=4,inside=pcie", 512, sets, batches)["efficiency"])
                 for zoo in P100]
        print(f"| {label} | " + " | ".join(cells) + " |", flush=True)
    free = [percent(plans.one(zoo, P100[zoo], "400gbit,gbit=10000,latency_us=0,ranks_per_host=4,inside=nvlink,inside_latency_us=0", 512,
                              HIERARCHY + LAYERS)["efficiency"]) for zoo in P100]
    print("| an exchange that takes no time: the slowest of 512 alone | " + " | ".join(free) + " |")


def main():
    if len(sys.argv) != 2: sys.exit(__doc__)
    with tempfile.TemporaryDirectory() as folder:
        plans = Plans(sys.argv[1], folder)
        for table in (published, servers, networks, setups): table(plans)


if __name__ == "__main__":
    main()
