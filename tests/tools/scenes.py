#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Composes scenes of several garments with a class for every pixel from Fashion-MNIST, for configs/science/scenes.toml.

  scenes.py SHARDS OUT.h5 [--scenes 4000] [--side 64] [--garments 4] [--seed 1]
SHARDS is a folder that `echelon data import idx` wrote. Each scene holds 1 to --garments images at random places, the
later ones in front; a pixel brighter than 24 of 255 has its garment's class (0 to 9), all others 10. Background and
garments get noise of standard deviation 8. Writes images (N, side, side) and masks (N, side, side) in u8."""
import argparse
import glob

import h5py
import numpy as np


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("shards")
    parser.add_argument("out")
    parser.add_argument("--scenes", type=int, default=4000)
    parser.add_argument("--side", type=int, default=64)
    parser.add_argument("--garments", type=int, default=4)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    files = [h5py.File(path) for path in sorted(glob.glob(f"{args.shards}/*.h5"))]
    images = np.concatenate([file["samples"][:, 0] for file in files])
    classes = np.concatenate([file["labels"][:] for file in files])
    draws = np.random.default_rng(args.seed)
    scenes = np.zeros((args.scenes, args.side, args.side), "f4")
    masks = np.full(scenes.shape, 10, "u1")
    height, width = images.shape[1:]
    for scene, mask in zip(scenes, masks):
        for i in draws.integers(0, len(images), draws.integers(1, args.garments + 1)):
            row, column = draws.integers(0, args.side - height + 1), draws.integers(0, args.side - width + 1)
            part, shown = np.s_[row:row + height, column:column + width], images[i] > 24
            scene[part][shown] = images[i][shown]
            mask[part][shown] = classes[i]
    scenes += draws.normal(0, 8, scenes.shape)
    with h5py.File(args.out, "w") as file:
        file["images"] = scenes.clip(0, 255).astype("u1")
        file["masks"] = masks


if __name__ == "__main__":
    main()
