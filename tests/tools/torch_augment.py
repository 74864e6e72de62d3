#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds each change of training images against torchvision's on the same images with the same drawn parameters.

  torch_augment.py ECHELON [--images 32] [--size 90x120]
`echelon bench data --out` writes what the model sees of a batch. The parameters are drawn again here by the same
hashes (src/base/hash_rng.hpp, src/data/{augment,colour,erase,resize}.cpp) and given to the functions of
torchvision.transforms.v2 on tensors of doubles in [0, 1]. Prints the largest and the mean difference in levels of
255; ends with 1 if the largest exceeds its bound, or the mean 4. Run it with the Python of PyTorch,
torchvision, Pillow and h5py."""
import argparse
import io
import math
import subprocess
import sys
import tempfile

import h5py
import numpy as np
import torch
from PIL import Image
from torchvision.io import ImageReadMode, decode_jpeg
from torchvision.transforms.v2 import functional as F

BITS = (1 << 64) - 1
WINDOW, TURN, COLOURS, ERASE, CUTOUT = range(16, 21)


def mix64(z):
    z = (z + 0x9e3779b97f4a7c15) & BITS
    z = ((z ^ (z >> 30)) * 0xbf58476d1ce4e5b9) & BITS
    z = ((z ^ (z >> 27)) * 0x94d049bb133111eb) & BITS
    return z ^ (z >> 31)


def name_hash(name):
    h = 0xcbf29ce484222325
    for byte in name.encode(): h = ((h ^ byte) * 0x100000001b3) & BITS
    return mix64(h)


class Draws:
    def __init__(self, key): self.key = key
    def at(self, word): return Draws(mix64(self.key ^ mix64(word)))
    def bits(self, i): return mix64(self.key ^ mix64(i))
    def uniform(self, i): return (self.bits(i) >> 11) * 2.0**-53
    def below(self, i, bound): return self.bits(i) * bound >> 64


def draws_of(seed, sample, epoch=0): return Draws(mix64(mix64(seed) ^ mix64(name_hash("augment")))).at(epoch).at(sample)


def window(draws, height, width, scale, ratio):
    for attempt in range(10):
        draw = draws.at(attempt)
        area = height * width * (scale[0] + (scale[1] - scale[0]) * draw.uniform(0))
        aspect = math.exp(math.log(ratio[0]) + (math.log(ratio[1]) - math.log(ratio[0])) * draw.uniform(1))
        w, h = round(math.sqrt(area * aspect)), round(math.sqrt(area / aspect))
        if 1 <= w <= width and 1 <= h <= height:
            return draw.below(2, height - h + 1), draw.below(3, width - w + 1), h, w
    raise SystemExit("no window was drawn; choose other images")


def crop(x, draws, keys):
    top, left, h, w = window(draws.at(WINDOW), x.shape[1], x.shape[2], keys["scale"], [0.75, 4 / 3])
    return F.resized_crop(x, top, left, h, w, keys["to"], antialias=True)


def central(x, draws, keys):
    return F.center_crop(F.resize(x, [keys["resize"]], antialias=True), keys["to"])


def colours(x, draws, keys):
    draws, order = draws.at(COLOURS), [0, 1, 2, 3]
    for i in (3, 2, 1):
        j = draws.below(i, i + 1)
        order[i], order[j] = order[j], order[i]
    for step in order:
        name = ["brightness", "contrast", "saturation", "hue"][step]
        if name not in keys: continue
        low, high = (-keys[name], keys[name]) if name == "hue" else (max(0, 1 - keys[name]), 1 + keys[name])
        x = getattr(F, "adjust_" + name)(x, low + (high - low) * draws.uniform(8 + step))
    return x


def flip(x, draws, keys): return F.horizontal_flip(x) if draws.below(2, 2) == 1 else x


def flip_rows(x, draws, keys): return F.vertical_flip(x) if draws.at(TURN).below(2, 2) == 1 else x


def erase(x, draws, keys):
    draws, (height, width) = draws.at(ERASE), x.shape[1:]
    if draws.uniform(0) >= 1: return x
    low, high = math.log(1 / 3.3), math.log(1 / 0.3)  # of width / height
    for attempt in range(10):
        draw = draws.at(1).at(attempt)
        part, ratio = 0.02 + 0.31 * draw.uniform(0), math.exp(low + (high - low) * draw.uniform(1))
        h, w = round(math.sqrt(height * width * part / ratio)), round(math.sqrt(height * width * part * ratio))
        if 1 <= h < height and 1 <= w < width:
            return F.erase(x, draw.below(2, height - h + 1), draw.below(3, width - w + 1), h, w, torch.zeros(()))
    return x


def photograph(rng, height, width):
    fy, fx = np.fft.fftfreq(height)[:, None], np.fft.rfftfreq(width)[None, :]
    amplitude = 1 / np.maximum(np.hypot(fy, fx), 1 / max(height, width))
    phases = [np.exp(2j * np.pi * rng.random(amplitude.shape)) for _ in "rgb"]
    planes = [np.fft.irfft2(amplitude * phase, (height, width)) for phase in phases]
    return np.clip(np.stack([127 + 50 * p / p.std() for p in planes], -1), 0, 255).astype(np.uint8)


CASES = {  # name: keys of the experiment, function, its keys, bound in levels of 255 (f32 beside f64)
    "resized crop, pixels": (["data.image_size=[32,40]", "data.augment.crop_scale=[0.1,1]"], crop,
                             {"scale": [0.1, 1], "to": [32, 40]}, 0.01),
    "resized crop, JPEG of full size": (["data.image_size=[80,100]", "data.augment.crop_scale=[0.1,1]"], crop,
                                        {"scale": [0.1, 1], "to": [80, 100], "jpeg": True}, 0.01),
    "resized crop, JPEG decoded smaller": (["data.image_size=[20,24]", "data.augment.crop_scale=[0.4,1]"], crop,
                                           {"scale": [0.4, 1], "to": [20, 24], "jpeg": True}, 64),
    "resize and centre crop": (["data.image_size=[32,40]", "data.evaluation_resize=48"], central,
                               {"resize": 48, "to": [32, 40]}, 0.01),
    "brightness": (["data.augment.brightness=0.4"], colours, {"brightness": 0.4}, 0.01),
    "contrast": (["data.augment.contrast=0.4"], colours, {"contrast": 0.4}, 0.01),
    "saturation": (["data.augment.saturation=0.4"], colours, {"saturation": 0.4}, 0.01),
    "hue": (["data.augment.hue=0.1"], colours, {"hue": 0.1}, 0.01),
    "all colours": ([f"data.augment.{k}" for k in ("brightness=0.4", "contrast=0.4", "saturation=0.4", "hue=0.1")],
                    colours, {"brightness": 0.4, "contrast": 0.4, "saturation": 0.4, "hue": 0.1}, 0.01),
    "mirrored columns": (["data.augment_flip=true"], flip, {}, 1e-4),
    "mirrored rows": (["data.augment.flip_rows=true"], flip_rows, {}, 1e-4),
    "random erasing": (["data.augment.erase=1"], erase, {}, 1e-4),
}
CONFIG = """name = "changes"
seed = 3
[data]
train = "{file}"
{hdf5}
[batch]
global = {count}
[model]
zoo = "resnet18_cifar"
"""


def differences(args, work, name, images, jpegs):
    sets, function, keys, _ = CASES[name]
    encoded = "jpeg" in keys
    hdf5 = '[data.hdf5]\nsamples = "{}"\nlabels = "labels"\nclasses = 10\n{}'.format(
        *(("jpegs", 'encoded = "rgb"') if encoded else ("images", 'axes = "NHWC"')))
    with open(work + "/changes.toml", "w") as file:
        file.write(CONFIG.format(file=work + "/images.h5", hdf5=hdf5, count=len(images)))
    words = [w for s in sets for w in ("--set", s)]
    subprocess.run([args.echelon, "bench", "data", work + "/changes.toml", "--out", work + "/batch.h5", "--seconds",
                    "0.01", *words], check=True, capture_output=True)
    with h5py.File(work + "/batch.h5") as file: seen, ids = file["samples"][:], file["ids"][:]
    most, total = 0, 0
    for x, i in zip(seen, ids):
        image = decode_jpeg(torch.from_numpy(jpegs[i].copy()), ImageReadMode.RGB) if encoded \
            else torch.from_numpy(images[i]).permute(2, 0, 1)
        expected = function(image.double() / 255, draws_of(3, int(i)), keys)
        apart = np.abs(x - expected.numpy()) * 255
        most, total = max(most, apart.max()), total + apart.mean()
    return most, total / len(seen)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("echelon")
    parser.add_argument("--images", type=int, default=32)
    parser.add_argument("--size", default="90x120")
    args = parser.parse_args()
    rng = np.random.default_rng(2)
    images = [photograph(rng, *map(int, args.size.split("x"))) for _ in range(args.images)]
    jpegs = []
    for image in images:
        into = io.BytesIO()
        Image.fromarray(image).save(into, "JPEG", quality=90)
        jpegs.append(np.frombuffer(into.getvalue(), np.uint8))
    failed = False
    with tempfile.TemporaryDirectory() as work:
        with h5py.File(work + "/images.h5", "w") as file:
            file["images"], file["labels"] = np.stack(images), np.arange(args.images) % 10
            rows = file.create_dataset("jpegs", (args.images,), dtype=h5py.vlen_dtype(np.uint8))
            for i, jpeg in enumerate(jpegs): rows[i] = jpeg
        print("| change | largest difference, levels of 255 | mean | bound |\n|---|---:|---:|---:|")
        for name, (_, _, _, bound) in CASES.items():
            most, mean = differences(args, work, name, images, jpegs)
            failed |= not (most <= bound and mean <= 4)
            print(f"| {name} | {most:.2g} | {mean:.2g} | {bound:g} |", flush=True)
    sys.exit(1 if failed else 0)


if __name__ == "__main__": main()
