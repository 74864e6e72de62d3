# SPDX-License-Identifier: Apache-2.0
"""encoded_files.py ROWS.h5 FOLDER: writes the padded rows of ROWS.h5 in other forms: of variable length (contiguous; in
chunks; written in the order of a file that grows) and opaque."""
import sys

import h5py
import numpy as np

with h5py.File(sys.argv[1]) as file:
    images = [row[:size] for row, size in zip(file["jpegs"][:], file["sizes"][:])]
    labels = file["y"][:]
    width = file["jpegs"].shape[1]
vlen = h5py.vlen_dtype(np.uint8)
for name, keys in {"vlen": {}, "vlen_chunks": {"chunks": (5,)}, "vlen_small": {"maxshape": (None,), "compression": 4}}.items():
    with h5py.File(f"{sys.argv[2]}/{name}.h5", "w") as file:
        rows = file.create_dataset("images", (len(images),), dtype=vlen, **keys)
        for i, image in enumerate(images): rows[i] = image
        file["y"] = labels
with h5py.File(f"{sys.argv[2]}/opaque.h5", "w") as file:
    file["images"] = np.array([np.void(image.tobytes().ljust(width, b"\0")) for image in images])
    file["y"] = labels
