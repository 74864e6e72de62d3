#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains a recipe of images with echelon and with PyTorch, by the same config, and compares their test accuracies.

  torch_recipes.py ECHELON CONFIG [--seeds 1,2,3] [--threads 1] [--only echelon|torch] [--set KEY=VALUE ..]

CONFIG names a model of NETS below, images in shards of echelon, SGD with momentum and `one_cycle`; crops with padding,
mirroring and cutout are read from it. PyTorch trains with torch.optim.SGD and its OneCycleLR, under autocast if
device.dtype = "bf16"; biases and batch norm do not decay, as in echelon. Prints a Markdown table: test accuracy by
seed, mean and standard deviation, and the samples/s of training. Run it with the Python of PyTorch, numpy and h5py."""
import argparse
import glob
import json
import statistics
import subprocess
import sys
import tempfile
import time
import tomllib

import h5py
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

import torch_nets


class Residual(nn.Module):
    def __init__(self, cin, cout, stride):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(cin, cout, 3, stride, 1, bias=False), nn.BatchNorm2d(cout), nn.ReLU(),
                                  nn.Conv2d(cout, cout, 3, 1, 1, bias=False), nn.BatchNorm2d(cout))
        self.skip = nn.Identity() if cin == cout else nn.Sequential(nn.Conv2d(cin, cout, 1, stride, bias=False),
                                                                    nn.BatchNorm2d(cout))

    def forward(self, x): return F.relu(self.body(x) + self.skip(x))


def resnet20(channels, classes):
    blocks = [Residual(a, b, s) for a, b, s in ((16, 16, 1), (16, 16, 1), (16, 16, 1), (16, 32, 2), (32, 32, 1),
                                                (32, 32, 1), (32, 64, 2), (64, 64, 1), (64, 64, 1))]
    return nn.Sequential(nn.Conv2d(channels, 16, 3, 1, 1, bias=False), nn.BatchNorm2d(16), nn.ReLU(), *blocks,
                         nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, classes))


def cnn_32_64(channels, classes):
    return nn.Sequential(nn.Conv2d(channels, 32, 3, 1, 1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(32, 64, 3, 1, 1),
                         nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(64 * 7 * 7, 128), nn.ReLU(),
                         nn.Linear(128, classes))


NETS = {"cnn_32_64": cnn_32_64, "resnet20": resnet20,
        "resnet18_cifar": lambda channels, classes: torch_nets.ResNet18Cifar(classes, channels)}


def config_of(args):
    with open(args.config, "rb") as file:
        config = tomllib.load(file)
    for pair in args.set:
        *tables, key = pair.split("=", 1)[0].split(".")
        table = config
        for name in tables:
            table = table.setdefault(name, {})
        text = pair.split("=", 1)[1]
        try:
            table[key] = tomllib.loads(f"x = {text}")["x"]
        except tomllib.TOMLDecodeError:
            table[key] = text
    return config


def images_of(folder, like=None):
    """Returns normalised images, labels and (mean, std) of a folder of shards; the test set takes those of `like`."""
    files = [h5py.File(path) for path in sorted(glob.glob(f"{folder}/*.h5"))]
    mean, std = like or (files[0].attrs["mean"], files[0].attrs["std"])
    x = np.concatenate([file["samples"][:] for file in files]) * files[0].attrs["scale"]
    x = (x - mean[:, None, None]) / std[:, None, None]
    labels = np.concatenate([file["labels"][:] for file in files])
    return torch.tensor(x, dtype=torch.float32), torch.tensor(labels.astype("i8")), (mean, std)


def changed(x, data, draws):
    """Crops out of padded images, mirrors and covers squares, each image by draws of its own."""
    n, _, height, width = x.shape
    rows, columns = torch.arange(height), torch.arange(width)
    pad = data.get("augment_crop_padding", 0)
    if pad:
        shift = torch.randint(0, 2 * pad + 1, (2, n, 1), generator=draws)
        from_row, from_column = (rows + shift[0])[:, :, None], (columns + shift[1])[:, None, :]
        x = F.pad(x, (pad,) * 4)[torch.arange(n)[:, None, None], :, from_row, from_column].permute(0, 3, 1, 2)
    if data.get("augment_flip"):
        x = torch.where(torch.rand(n, 1, 1, 1, generator=draws) < 0.5, x.flip(3), x)
    side = data.get("augment", {}).get("cutout", 0)
    if side:
        first = [torch.randint(0, extent, (n, 1), generator=draws) - side // 2 for extent in (height, width)]
        inside = [(place >= from_) & (place < from_ + side) for place, from_ in zip((rows, columns), first)]
        x = x.masked_fill((inside[0][:, :, None] & inside[1][:, None, :])[:, None], 0)
    return x


def train_torch(config, seed, threads):
    """Returns the test accuracy in percent and the samples a second."""
    torch.manual_seed(seed)
    torch.set_num_threads(threads)
    data, optimizer = config["data"], config["optimizer"]
    x, labels, statistics_ = images_of(data["train"])
    test_x, test_labels, _ = images_of(data["test"], statistics_)
    net = NETS[config["model"]["zoo"]](x.shape[1], 10)
    batch, epochs = config["batch"]["global"], config["train"]["epochs"]
    steps = (len(x) + batch - 1) // batch
    weights = [p for p in net.parameters() if p.dim() > 1]
    others = [p for p in net.parameters() if p.dim() == 1]
    peak = optimizer["learning_rate"]
    sgd = torch.optim.SGD([{"params": weights, "weight_decay": optimizer["weight_decay"]}, {"params": others}], lr=peak,
                          momentum=optimizer["momentum"], nesterov=optimizer.get("nesterov", False))
    schedule = torch.optim.lr_scheduler.OneCycleLR(sgd, peak, total_steps=epochs * steps, cycle_momentum=False)
    draws = torch.Generator().manual_seed(seed)
    halves = config.get("device", {}).get("dtype") == "bf16"
    begun = time.perf_counter()
    for _ in range(epochs):
        order = torch.randperm(len(x), generator=draws)
        for first in range(0, len(x), batch):
            rows = order[first:first + batch]
            sgd.zero_grad(set_to_none=True)
            with torch.autocast("cpu", torch.bfloat16, enabled=halves):
                loss = F.cross_entropy(net(changed(x[rows], data, draws)), labels[rows])
            loss.backward()
            sgd.step()
            schedule.step()
    rate = epochs * len(x) / (time.perf_counter() - begun)
    net.eval()
    right = 0
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16, enabled=halves):
        for first in range(0, len(test_x), 500):
            right += (net(test_x[first:first + 500]).argmax(1) == test_labels[first:first + 500]).sum().item()
    return 100 * right / len(test_x), rate


def train_echelon(args, seed):
    with tempfile.TemporaryDirectory() as folder:
        sets = [f"seed={seed}", f"device.threads={args.threads}", f"run.results={folder}", "run.progress=none"]
        sets += args.set
        words = [args.echelon, "train", args.config] + [word for pair in sets for word in ("--set", pair)]
        done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=6 * 3600)
        if done.returncode:
            sys.exit(f"{' '.join(words)}: code {done.returncode}\n{done.stdout[-2000:]}")
        with open(glob.glob(f"{folder}/**/summary.json", recursive=True)[0]) as file:
            summary = json.load(file)
    return 100 * summary["test_accuracy"], summary["samples_per_s"]["median"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("echelon")
    parser.add_argument("config")
    parser.add_argument("--seeds", default="1,2,3")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--only", choices=("echelon", "torch"))
    parser.add_argument("--set", action="append", default=[])
    args = parser.parse_args()
    config, seeds = config_of(args), [int(seed) for seed in args.seeds.split(",")]
    runs = {"echelon": lambda seed: train_echelon(args, seed),
            "torch": lambda seed: train_torch(config, seed, args.threads)}
    found = {name: [] for name in ([args.only] if args.only else runs)}
    for seed in seeds:  # in turns
        for name, results in found.items():
            results.append(runs[name](seed))
            print(f"{name}, seed {seed}: {results[-1][0]:.2f} %, {results[-1][1]:.0f} samples/s", file=sys.stderr)
    heads = [f"seed {seed}" for seed in seeds] + ["mean", "deviation", "samples/s"]
    print(f"| {config['model']['zoo']}, {config['train']['epochs']} epochs | {' | '.join(heads)} |")
    print("|---|" + "---:|" * len(heads))
    for name, results in found.items():
        values = [accuracy for accuracy, _ in results]
        deviation = statistics.stdev(values) if len(values) > 1 else 0
        figures = [f"{value:.2f}" for value in values + [statistics.mean(values), deviation]]
        rate = statistics.median(rate for _, rate in results)
        print(f"| {name} | {' | '.join(figures)} | {rate:,.0f} |")


if __name__ == "__main__":
    main()
