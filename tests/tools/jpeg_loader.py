#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures how many training samples a second are made of JPEG bytes in HDF5, beside PyTorch's DataLoader.

  jpeg_loader.py ECHELON [--workers 1 2] [--images 1000] [--size 375x500] [--rounds 5] [--seconds 4] [--photos FOLDER]
Both read the same file (rows of variable length, as h5py writes them), take a random-resized crop of 224 x 224, mirror
half of them and normalise: `echelon bench data` with data.threads, and a DataLoader with as many workers that decodes
by Pillow, or by torchvision.io with transforms of tensors. The forms alternate within each round; the table has medians
and, behind them, least and greatest. Without --photos, images are noise whose amplitude falls with the frequency as that
of photographs does. Run it with the Python of PyTorch, torchvision, Pillow and h5py."""
import argparse
import glob
import io
import json
import os
import statistics
import subprocess
import tempfile
import time

import h5py
import numpy as np
import torch
from PIL import Image
from torchvision.io import ImageReadMode, decode_jpeg
from torchvision.transforms import v2

MEAN, STD = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]
CONFIG = """name = "jpeg"
[data]
train = "{file}"
image_size = [224, 224]
augment_flip = true
threads = {threads}
[data.augment]
crop_scale = [0.08, 1]
[data.hdf5]
samples = "images"
encoded = "rgb"
labels = "labels"
classes = 1000
mean = {mean}
std = {std}
[batch]
global = 64
[model]
zoo = "resnet18_cifar"
"""


def photograph(rng, height, width):
    fy, fx = np.fft.fftfreq(height)[:, None], np.fft.rfftfreq(width)[None, :]
    amplitude = 1 / np.maximum(np.hypot(fy, fx), 1 / max(height, width))
    shared, planes = None, []
    for _ in range(3):
        noise = np.fft.irfft2(amplitude * np.exp(2j * np.pi * rng.random(amplitude.shape)), (height, width))
        noise /= noise.std()
        shared = noise if shared is None else shared
        planes.append(127 + 50 * (0.9 * shared + 0.4 * noise))
    return Image.fromarray(np.clip(np.stack(planes, -1), 0, 255).astype(np.uint8))


def write_file(path, args):
    rng = np.random.default_rng(1)
    height, width = map(int, args.size.split("x"))
    photos = sorted(glob.glob(args.photos + "/*")) if args.photos else []
    kinds = []
    for i in range(min(args.images, 64 if not photos else len(photos))):
        image = Image.open(photos[i]).convert("RGB") if photos else photograph(rng, height, width)
        into = io.BytesIO()
        image.save(into, "JPEG", quality=90)
        kinds.append(np.frombuffer(into.getvalue(), np.uint8))
    with h5py.File(path, "w") as file:
        rows = file.create_dataset("images", (args.images,), dtype=h5py.vlen_dtype(np.uint8))
        for i in range(args.images): rows[i] = kinds[i % len(kinds)]
        file["labels"] = rng.integers(0, 1000, args.images)
    return sum(len(k) for k in kinds) / len(kinds)


class Images(torch.utils.data.Dataset):
    def __init__(self, path, count, by_pillow):
        self.path, self.count, self.by_pillow, self.file = path, count, by_pillow, None
        last = [v2.RandomHorizontalFlip(), v2.ToDtype(torch.float32, scale=True), v2.Normalize(MEAN, STD)]
        crop = v2.RandomResizedCrop(224, antialias=True)
        self.change = v2.Compose([crop, v2.ToImage(), *last] if by_pillow else [crop, *last])

    def __len__(self): return self.count

    def __getitem__(self, i):
        if self.file is None: self.file = h5py.File(self.path)
        data = self.file["images"][i]
        if self.by_pillow: image = Image.open(io.BytesIO(data.tobytes())).convert("RGB")
        else: image = decode_jpeg(torch.from_numpy(data), ImageReadMode.RGB)
        return self.change(image), int(self.file["labels"][i])


def torch_rate(path, args, workers, by_pillow):
    loader = torch.utils.data.DataLoader(Images(path, args.images, by_pillow), 64, shuffle=True, num_workers=workers,
                                         persistent_workers=True, drop_last=True)
    samples, begun = 0, None
    while True:
        for x, _ in loader:
            if begun is None: begun = time.monotonic()  # the first batch includes the workers' start
            else: samples += len(x)
            if time.monotonic() - begun > args.seconds: return samples / (time.monotonic() - begun)


def own_rate(args, config, workers):
    out = subprocess.run([args.echelon, "bench", "data", config, "--json", "--seconds", str(args.seconds), "--set",
                          f"data.threads={workers}"], capture_output=True, text=True, check=True).stdout
    return json.loads(out.strip().splitlines()[-1])["samples_s"]


def text(rates): return f"{statistics.median(rates):.0f} ({min(rates):.0f} to {max(rates):.0f})"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("echelon")
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--images", type=int, default=1000)
    parser.add_argument("--size", default="375x500")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=4)
    parser.add_argument("--photos")
    args = parser.parse_args()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as work:
        path, config = work + "/images.h5", work + "/jpeg.toml"
        each = write_file(path, args)
        with open(config, "w") as file: file.write(CONFIG.format(file=path, threads=1, mean=MEAN, std=STD))
        print(f"{args.images} JPEGs of {each / 1000:.0f} kB, {os.cpu_count()} cores, torch {torch.__version__}\n")
        print("| workers | echelon, samples/s | DataLoader, Pillow | DataLoader, torchvision.io | ratio to the faster |")
        print("|---:|---:|---:|---:|---:|")
        for workers in args.workers:
            rates = {"own": [], "pillow": [], "tensors": []}
            for _ in range(args.rounds):
                rates["own"].append(own_rate(args, config, workers))
                rates["pillow"].append(torch_rate(path, args, workers, True))
                rates["tensors"].append(torch_rate(path, args, workers, False))
            best = max(statistics.median(rates["pillow"]), statistics.median(rates["tensors"]))
            print(f"| {workers} | {text(rates['own'])} | {text(rates['pillow'])} | {text(rates['tensors'])} | "
                  f"{statistics.median(rates['own']) / best:.2f} |", flush=True)


if __name__ == "__main__": main()
