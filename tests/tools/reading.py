#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares how fast training samples are read: HDF5 files of other programs as they lie, shards made from them, PyTorch.

  reading.py ECHELON [--python PYTHON] [--rounds 5] [--workers 1] [--mb 150] [--epochs 3] [--only LAYOUT ..] [--folder DIR]

PYTHON has h5py, numpy and PyTorch (pip install h5py torch). Files in the layouts of public data sets are made with h5py
(about --mb MB each, smooth random values), imported with `echelon data import hdf5`, and read for --epochs epochs in turns by
`echelon bench data` and by PyTorch's DataLoader with h5py, in f32, normalised, channels first. PyTorch reads sample by sample
in random order, or in blocks of a batch in random order, whichever is faster, and has read one epoch before, while
echelon's rate has its start in it. PyTorch's workers are processes, those of echelon threads (each with a loader).

The bound is one thread that does nothing but read(2) of all bytes of the files, 256 KiB at a time into one buffer, and one
copy of as many f32 values as the samples have into the memory of three batches, used again and again; not for compressed
files. The tables have medians over rounds, least and greatest behind; memory is the peak of echelon's process, and the sum
of the proportional set sizes (PSS) of PyTorch's processes."""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile

# name: [data.hdf5] table, axes of a sample in the file (N left out), scale, paths of samples, path of labels, where
TABLES = {
    "Caffe": ('samples = "data"\nlabels = "label"\nclasses = 10', "CHW", 1, ["data"], "label", "rows"),
    "ModelNet40": ('samples = "data"\naxes = "NWC"\nlabels = "label"\nclasses = 40', "WC", 1, ["data"], "label", "rows"),
    "PCam": ('samples = "x"\naxes = "NHWC"\nlabels = "y"\nlabels_file = ["_x.h5", "_y.h5"]\nclasses = 2', "HWC", 1 / 255,
             ["x"], "y", "pair"),
    "Galaxy10": ('samples = "images"\naxes = "NHWC"\nlabels = "ans"\nclasses = 10', "HWC", 1 / 255, ["images"], "ans",
                 "rows"),
    "RadioML": ('samples = "X"\naxes = "NWC"\nlabels = "Y"\nlabel_form = "one_hot"', "WC", 1, ["X"], "Y", "rows"),
    "So2Sat": ('samples = ["sen1", "sen2"]\naxes = "NHWC"\nlabels = "label"\nlabel_form = "one_hot"', "HWC", 1,
               ["sen1", "sen2"], "label", "rows"),
    "BigGAN": ('samples = "imgs"\nlabels = "labels"\nclasses = 1000', "CHW", 1 / 255, ["imgs"], "labels", "rows"),
    "Fuel": ('samples = "features"\nlabels = "targets"\nclasses = 10\nsplit = "train"', "CHW", 1 / 255, ["features"],
             "targets", "rows"),
    "HEP-CNN": ('samples = "all_events/hist"\naxes = "NHW"\nlabels = "all_events/y"\nclasses = 2', "HW", 1,
                ["all_events/hist"], "all_events/y", "rows"),
    "CosmoFlow": ('samples = "x"\naxes = "DHWC"\nlabels = "y"\ntransform = "log1p"', "DHWC", "log1p", ["x"], "y", "files"),
    "DeepCAM": ('samples = "climate/data"\naxes = "HWC"\nlabels = "climate/labels_0"\nlabel_form = "dense"\nclasses = 3',
                "HWC", 1, ["climate/data"], "climate/labels_0", "files"),
    "LBANN": ('samples = "volume"\naxes = "DHW"\nlabels = "segmentation"\nlabel_form = "dense"\nclasses = 4', "DHW", 1,
              ["volume"], "segmentation", "files"),
    "The Well": ('samples = ["t0_fields/density", "t0_fields/pressure"]\naxes = "NCHW"\nlabels = "t0_fields/density"\n'
                 'label_form = "values"', "CHW", 1, ["t0_fields/density", "t0_fields/pressure"], "t0_fields/density",
                 "rows"),
}

# Classes or numbers of a label; for labels of places, of each place.
OUTPUTS = {"Caffe": 10, "ModelNet40": 40, "PCam": 2, "Galaxy10": 10, "RadioML": 24, "So2Sat": 17, "BigGAN": 1000, "Fuel": 10,
           "HEP-CNN": 2, "CosmoFlow": 4, "DeepCAM": 3, "LBANN": 4, "The Well": 8}


def location(folder, name):
    where = TABLES[name][5]
    return f"{folder}/{name}" + {"rows": "/all.h5", "pair": "/all_x.h5", "files": ""}[where]


def make(folder, name, mb):
    import h5py
    import numpy as np
    rng = np.random.default_rng(len(name))

    def smooth(n, shape, kind, most=255):
        """Waves with noise, so that they compress somewhat, as measured data do."""
        axes = np.meshgrid(*[np.linspace(0, 6, s) for s in shape], indexing="ij")
        base = sum(np.sin(a * (k + 1)) for k, a in enumerate(axes)) / len(shape) / 2 + 0.5
        for i in range(n):
            noise = rng.integers(0, 9, shape, "u1") / 255
            yield np.clip((base * (0.5 + (i % 7) / 14) + noise) * most, 0, most).astype(kind)

    def fill(file, path, n, shape, kind, most=255, **storage):
        to = file.create_dataset(path, (n,) + shape, kind, **storage)
        for i, sample in enumerate(smooth(n, shape, kind, most)):
            to[i] = sample

    def count(shape, bytes_each):
        return max(8, int(mb * 1e6 / (np.prod(shape) * bytes_each)))

    os.makedirs(f"{folder}/{name}")
    whole = lambda n, most, kind: rng.integers(0, most, n).astype(kind)
    if TABLES[name][5] == "files":
        paths, label = TABLES[name][3], TABLES[name][4]
        shape, kind, labels = {"CosmoFlow": ((128, 128, 128, 4), "i2", None), "DeepCAM": ((384, 576, 16), "f4", 3),
                               "LBANN": ((64, 64, 64), "u2", 4)}[name]
        n = count(shape, np.dtype(kind).itemsize)
        for i, sample in enumerate(smooth(n, shape, kind)):
            with h5py.File(f"{folder}/{name}/sample-{i:05}.h5", "w") as file:
                file[paths[0]] = sample
                places = shape[:-1] if name == "DeepCAM" else shape
                file[label] = (rng.standard_normal(4).astype("f4") if labels is None else
                               rng.integers(0, labels, places).astype("u1"))
        return
    with h5py.File(location(folder, name), "w") as file:
        if name == "Caffe":
            n = count((28, 28), 4)
            fill(file, "data", n, (1, 28, 28), "f4")
            file["label"] = whole(n, 10, "f4")
        elif name == "ModelNet40":
            n = count((2048, 3), 4)
            fill(file, "data", n, (2048, 3), "f4", 1, compression="gzip", chunks=(64, 2048, 3))
            file["label"] = whole((n, 1), 40, "u1")
        elif name == "PCam":
            n = count((96, 96, 3), 1)
            fill(file, "x", n, (96, 96, 3), "u1")
            with h5py.File(f"{folder}/{name}/all_y.h5", "w") as labels:
                labels["y"] = whole((n, 1, 1, 1), 2, "u1")
        elif name == "Galaxy10":
            n = count((69, 69, 3), 1)
            fill(file, "images", n, (69, 69, 3), "u1")
            file["ans"] = whole(n, 10, "u1")
        elif name == "RadioML":
            n = count((1024, 2), 4)
            fill(file, "X", n, (1024, 2), "f4", 1)
            file["Y"] = np.eye(24, dtype="i8")[whole(n, 24, "i8")]
        elif name == "So2Sat":
            n = count((32, 32, 18), 8)
            fill(file, "sen1", n, (32, 32, 8), "f8", 1)
            fill(file, "sen2", n, (32, 32, 10), "f8", 1)
            file["label"] = np.eye(17)[whole(n, 17, "i8")]
        elif name == "BigGAN":
            n = count((3, 128, 128), 1)
            fill(file, "imgs", n, (3, 128, 128), "u1", chunks=(64, 3, 128, 128), compression="lzf")
            file["labels"] = whole(n, 1000, "i8")
        elif name == "Fuel":
            n = count((3, 32, 32), 1)
            fill(file, "features", n, (3, 32, 32), "u1")
            file["targets"] = whole((n, 1), 10, "u1")
            form = np.dtype([("split", "S5"), ("source", "S8"), ("start", "i8"), ("stop", "i8")])
            file.attrs["split"] = np.array([(b"train", b"features", 0, n), (b"train", b"targets", 0, n)], form)
        elif name == "HEP-CNN":
            n = count((64, 64), 4)
            fill(file, "all_events/hist", n, (64, 64), "f4")
            file["all_events/y"] = whole(n, 2, "f4")
        else:
            n = count((8, 128, 128), 8)
            for path in TABLES[name][3]:
                fill(file, path, n, (8, 128, 128), "f4", 1)


def read_bytes(folder, name, batch, epochs):
    """The bound. Prints {"samples_s":, "peak_mb":}."""
    import time
    import h5py
    import numpy as np
    paths, files = TABLES[name][3], files_of(folder, name)
    samples = elems = stored = 0
    for path in files:
        with h5py.File(path) as file:
            each = [file[p] for p in paths]
            samples += 1 if TABLES[name][5] == "files" else len(each[0])
            elems += sum(one.size for one in each)
            stored += sum(one.nbytes for one in each)
    piece = 256 << 10
    read, values = np.empty(piece, "u1"), np.ones(int(piece * elems / stored), "f4")
    batches = np.ones(max(3 * batch * elems // samples, len(values)), "f4")
    at, start = 0, 0.0
    for epoch in range(epochs + 1):
        if epoch == 1:
            start = time.perf_counter()
        for path in files:
            file = os.open(path, os.O_RDONLY)
            offset = 0
            while got := os.preadv(file, [read], offset):
                offset += got
                at = 0 if at + len(values) > len(batches) else at
                batches[at:at + len(values)] = values
                at += len(values)
            os.close(file)
    print(json.dumps({"samples_s": epochs * samples / (time.perf_counter() - start), "peak_mb": 0}))


def files_of(folder, name):
    import glob
    return sorted(glob.glob(location(folder, name) + ("/*.h5" if TABLES[name][5] == "files" else "")))


def read_with_torch(folder, name, mode, workers, batch, epochs):
    """Prints {"samples_s":, "peak_mb":}."""
    import time
    import h5py
    import numpy as np
    import torch
    table, axes, scale, paths, label, where = TABLES[name]
    files = files_of(folder, name)
    with h5py.File(files[0]) as first:
        n = len(files) if where == "files" else len(first[paths[0]])
    at = {letter: i for i, letter in enumerate(axes)}
    order = [at[letter] for letter in "CDHW" if letter in at]

    def fit(arrays, rows):
        """Samples as h5py gives them become f32, channels first."""
        shift = 1 if rows else 0
        parts = []
        for array in arrays:
            x = torch.from_numpy(array if array.dtype != np.uint16 else array.astype("i4")).to(torch.float32)
            x = torch.log1p(x) if scale == "log1p" else x if scale == 1 else x * scale
            x = x.permute(*range(shift), *[o + shift for o in order])
            parts.append(x if "C" in at else x.unsqueeze(shift))
        return (parts[0] if len(parts) == 1 else torch.cat(parts, shift)).contiguous()

    def labels_of(values):
        """As losses of PyTorch take them: classes as 64-bit integers, numbers as f32."""
        y = torch.from_numpy(np.asarray(values))
        return y.to(torch.int64 if "classes" in table or "one_hot" in table else torch.float32)

    class Opened:
        def open(self):
            if not hasattr(self, "file"):
                self.file = h5py.File(files[0])
                self.labels = h5py.File(files[0].replace("_x.h5", "_y.h5")) if where == "pair" else self.file

    class Samples(torch.utils.data.Dataset, Opened):
        def __len__(self):
            return n

        def __getitem__(self, i):
            if where == "files":
                with h5py.File(files[i]) as file:
                    return fit([file[p][()] for p in paths], False), labels_of(file[label][()])
            self.open()
            return fit([self.file[p][i] for p in paths], False), labels_of(self.labels[label][i])

    class Blocks(torch.utils.data.Dataset, Opened):
        """A batch is a block of rows that lie together."""
        def __len__(self):
            return (n + batch - 1) // batch

        def __getitem__(self, i):
            self.open()
            rows = slice(i * batch, min(n, (i + 1) * batch))
            return fit([self.file[p][rows] for p in paths], True), labels_of(self.labels[label][rows])

    torch.set_num_threads(1)
    if mode == "blocks":
        loader = torch.utils.data.DataLoader(Blocks(), batch_size=None, shuffle=True, num_workers=workers,
                                             persistent_workers=True)
    else:
        loader = torch.utils.data.DataLoader(Samples(), batch_size=batch, shuffle=True, num_workers=workers,
                                             persistent_workers=True)

    def memory_mb():
        family = [os.getpid()] + [int(p) for p in open(f"/proc/self/task/{os.getpid()}/children").read().split()]
        kib = 0
        for process in family:
            kib += sum(int(line.split()[1]) for line in open(f"/proc/{process}/smaps_rollup") if line.startswith("Pss:"))
        return kib / 1024

    peak, seconds = 0.0, 0.0
    for epoch in range(epochs + 1):
        start = time.perf_counter()
        for i, (x, y) in enumerate(loader):
            if epoch == 0 and i % 4 in (1, 2):
                peak = max(peak, memory_mb())
        seconds += time.perf_counter() - start if epoch > 0 else 0
    print(json.dumps({"samples_s": epochs * n / seconds, "peak_mb": peak}))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("echelon", nargs="?")
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--mb", type=float, default=150)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--only", nargs="*", default=list(TABLES))
    parser.add_argument("--folder", help="keep the files here and use them again")
    parser.add_argument("--step", nargs="+", help=argparse.SUPPRESS)  # what a child process does
    options = parser.parse_args()
    if options.step:
        step, folder, name, *rest = options.step
        if step == "make":
            return make(folder, name, options.mb)
        if step == "bound":
            return read_bytes(folder, name, int(rest[0]), options.epochs)
        return read_with_torch(folder, name, rest[0], options.workers, int(rest[1]), options.epochs)

    def run(*words):
        done = subprocess.run(words, capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"{' '.join(words)}\n{done.stdout}{done.stderr}")
        return done.stdout

    temporary = tempfile.TemporaryDirectory()
    folder = options.folder or temporary.name
    os.makedirs(folder, exist_ok=True)
    me = [options.python, os.path.abspath(__file__), "--mb", str(options.mb), "--workers", str(options.workers),
          "--epochs", str(options.epochs)]
    print("| layout | as the files lie | shards | PyTorch | bound |\n|---|---:|---:|---:|---:|", flush=True)
    ratios = []
    for name in options.only:
        experiment = f"{folder}/{name}.toml"
        if not os.path.exists(experiment):
            run(*me, "--step", "make", folder, name)
            layer = "[[model.layers]]\ntype = "
            model = layer + (f'"conv"\nchannels = {OUTPUTS[name]}\nkernel = 1\n' if name in ("DeepCAM", "LBANN", "The Well")
                             else f'"flatten"\n{layer}"dense"\nunits = {OUTPUTS[name]}\n')
            for what, data in (("", f'train = "{location(folder, name)}"\n[data.hdf5]\n{TABLES[name][0]}\n'),
                               (".shards", f'train = "{folder}/{name}.out"\n')):
                with open(f"{folder}/{name}{what}.toml", "w") as file:
                    file.write(f'name = "reading"\n[data]\n{data}{model}')
            run(options.echelon, "data", "import", "hdf5", experiment, "--out", f"{folder}/{name}.out")
        batch = 2 if name in ("CosmoFlow", "DeepCAM") else 32 if name in ("LBANN", "The Well") else 64
        ways = {"files": lambda: run(options.echelon, "bench", "data", experiment, *echelon),
                "shards": lambda: run(options.echelon, "bench", "data", f"{folder}/{name}.shards.toml", *echelon),
                "bound": lambda: run(*me, "--step", "bound", folder, name, str(batch)),
                "samples": lambda: run(*me, "--step", "torch", folder, name, "samples", str(batch))}
        if name in ("ModelNet40", "BigGAN"):  # each sample would have a whole compressed chunk decoded
            del ways["samples"], ways["bound"]
        echelon = ["--readers", str(options.workers), "--batch", str(batch), "--seconds", "1000",
                   "--epochs", str(options.epochs), "--json"]
        if TABLES[name][5] != "files":
            ways["blocks"] = lambda: run(*me, "--step", "torch", folder, name, "blocks", str(batch))
        found = {way: [] for way in ways}
        for _ in range(options.rounds):
            for way, measure in ways.items():
                found[way].append(json.loads(measure()))
        rates = {way: [r["samples_s"] for r in found[way]] for way in ways}
        memory = {way: statistics.median(r["peak_mb"] for r in found[way]) for way in ways}
        middle = {way: statistics.median(rates[way]) for way in ways}
        best = max((way for way in ways if way in ("samples", "blocks")), key=middle.get)
        cell = lambda way: f"{middle[way]:,.0f} ({min(rates[way]):,.0f} to {max(rates[way]):,.0f})" if way in ways else ""
        print(f"| {name} | {cell('files')} | {cell('shards')} | {cell(best)} | {cell('bound')} |", flush=True)
        ratios.append(f"| {name} | {best} | {middle['files'] / middle[best]:.1f} | {middle['shards'] / middle[best]:.1f} "
                      f"| {memory['files']:.0f}, {memory['shards']:.0f}, {memory[best]:.0f} |")
    print("\n| layout | PyTorch by | files / PyTorch | shards / PyTorch | MiB: files, shards, PyTorch |\n"
          "|---|---|---:|---:|---|\n" + "\n".join(ratios))


if __name__ == "__main__":
    main()
