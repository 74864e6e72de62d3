#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares models of the zoo with PyTorch in double: the loss and the gradient of every parameter, and predictions.

PyTorch draws the weights. echelon reads them (model.weights), takes one step of plain SGD at a rate of 2^-7 on the
device "reference" in f64, and exports its weights: before less after, times 2^7, is the gradient. Prints for each model
the largest distance of a tensor's gradient, |a - b| over the largest |b| of the tensor (at least 1e-4 of the largest of
the net: some are 0 but for rounding), that of running statistics and of the loss, and that of `echelon predict
--outputs`, which writes f32. Ends with 1 if one of the first three is above 1e-9 or the last one above 1e-6. Needs
torch, numpy and h5py:

    python3 tests/tools/torch_layers.py --echelon build/release/bin/echelon [MODEL..]

The nets are written here once more, from their sources, and not read from echelon.
"""
import argparse
import json
import math
import os
import struct
import subprocess
import sys
import tempfile

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

BATCH, RATE = 3, 2.0**-7


class Net(nn.Module):
    """Layers under echelon's names: conv1, conv2, batch_norm1, .."""

    def __init__(self, axes):
        super().__init__()
        self.axes, self.counts = axes, {}

    def put(self, kind, module):
        self.counts[kind] = self.counts.get(kind, 0) + 1
        self.add_module(f"{kind}{self.counts[kind]}", module)
        return module

    def of(self, kind):
        return getattr(nn, f"{kind}{self.axes}d")

    def conv(self, *args, **keys):
        return self.put("conv", self.of("Conv")(*args, **keys))

    def norm(self, channels):
        return self.put("batch_norm", self.of("BatchNorm")(channels))

    def conv_norm(self, cin, cout, kernel, stride=1, dilation=1):
        pad = dilation * (kernel // 2)
        return nn.Sequential(self.conv(cin, cout, kernel, stride, pad, dilation, bias=False), self.norm(cout))

    def conv_norm_relu(self, *args, **keys):
        return nn.Sequential(self.conv_norm(*args, **keys), nn.ReLU())

    def transposed(self, cin, cout, **keys):
        return self.put("conv_transpose", self.of("ConvTranspose")(cin, cout, **keys))

    def dense(self, fin, fout):
        return self.put("dense", nn.Linear(fin, fout))


def held(modules):
    """Returns a list whose modules the net already has under their own names."""
    return tuple(modules)


class UNet(Net):
    """Ronneberger et al. 2015 for images, Cicek et al. 2016 for volumes, padded and with batch norm."""

    def __init__(self, axes, cin, planes, widths):
        super().__init__(axes)
        self.down, self.ups, c = [], [], cin
        for w in widths:
            first = w // 2 if axes == 3 else w
            self.down.append(held((self.conv_norm_relu(c, first, 3), self.conv_norm_relu(first, w, 3))))
            c = w
        for w in reversed(widths[:-1]):
            c_up = c if axes == 3 else w
            up = self.transposed(c, c_up, kernel_size=2, stride=2)
            self.ups.append(held((up, self.conv_norm_relu(c_up + w, w, 3), self.conv_norm_relu(w, w, 3))))
            c = w
        self.last = held((self.conv(c, planes, 1),))

    def forward(self, x):
        kept = []
        for i, (a, b) in enumerate(self.down):
            if i > 0:
                x = (F.max_pool2d if self.axes == 2 else F.max_pool3d)(x, 2)
            x = b(a(x))
            kept.append(x)
        kept.pop()
        for up, a, b in self.ups:
            x = b(a(torch.cat([up(x), kept.pop()], 1)))
        return self.last[0](x)


class CosmoFlow(Net):
    """mlcommons/hpc, cosmoflow/models/cosmoflow.py without dropout."""

    def __init__(self, cin, side, widths, targets):
        super().__init__(3)
        self.blocks = []
        for w in widths:
            self.blocks.append(held((self.conv(cin, w, 3, padding=1),)))
            cin, side = w, side // 2
        self.units = held((self.dense(cin * side**3, 128), self.dense(128, 64), self.dense(64, targets)))

    def forward(self, x):
        for (conv,) in self.blocks:
            x = F.max_pool3d(F.leaky_relu(conv(x), 0.3), 2)
        x = x.flatten(1)
        for unit in self.units[:-1]:
            x = F.leaky_relu(unit(x), 0.3)
        return 1.2 * torch.tanh(self.units[-1](x))


class ResNet18Cifar(Net):
    """github.com/kuangliu/pytorch-cifar, ResNet18."""

    def __init__(self, classes):
        super().__init__(2)
        self.stem, self.blocks, c = held((self.conv_norm(3, 64, 3),)), [], 64
        for w, stride in ((64, 1), (128, 2), (256, 2), (512, 2)):
            for s in (stride, 1):
                skip = self.conv_norm(c, w, 1, s) if s != 1 or c != w else nn.Identity()
                self.blocks.append(held((skip, self.conv_norm(c, w, 3, s), self.conv_norm(w, w, 3))))
                c = w
        self.last = held((self.dense(512, classes),))

    def forward(self, x):
        x = F.relu(self.stem[0](x))
        for skip, a, b in self.blocks:
            x = F.relu(b(F.relu(a(x))) + skip(x))
        return self.last[0](x.mean((2, 3)))


class DeepCam(Net):
    """mlcommons/hpc, deepcam/src/deepCam/architecture/deeplab_xception.py, output stride 16."""

    def __init__(self, cin, classes):
        super().__init__(2)
        self.stem = held((self.conv_norm_relu(cin, 32, 3, 2), self.conv_norm_relu(32, 64, 3)))
        self.flow = [self.block(64, 128, 2, 2), self.block(128, 256, 2, 2), self.block(256, 728, 2, 2, more=True)]
        self.flow += [self.block(728, 728, 3, 1) for _ in range(16)]
        self.flow.append(self.block(728, 1024, 2, 1, grow_first=False, more=True))
        self.exits = held([self.separable_norm(a, b, 2) for a, b in ((1024, 1536), (1536, 1536), (1536, 2048))])
        self.narrow = held((self.conv_norm_relu(128, 48, 1),))
        self.pyramid = held([self.conv_norm_relu(2048, 256, k, 1, d) for k, d in ((1, 1), (3, 6), (3, 12), (3, 18))])
        self.mean = held((self.conv(2048, 256, 1, bias=False), self.conv(256, 256, 1, groups=256)))
        self.joined = held((self.conv_norm_relu(1280, 256, 1),))
        self.ups = held([nn.Sequential(self.doubled(256), self.norm(256), nn.ReLU()) for _ in range(2)])
        self.mixed = held((self.conv_norm_relu(304, 256, 3), self.conv_norm_relu(256, 256, 3), self.conv(256, 256, 1)))
        self.out = held((nn.Sequential(self.doubled(256), self.norm(256), nn.ReLU()), self.doubled(classes)))

    def doubled(self, cout):
        return self.transposed(256, cout, kernel_size=3, stride=2, padding=1, output_padding=1, bias=False)

    def separable(self, cin, cout, stride=1, dilation=1):
        return nn.Sequential(self.conv(cin, cin, 3, stride, dilation, dilation, groups=cin, bias=False),
                             self.conv(cin, cout, 1, bias=False))

    def separable_norm(self, cin, cout, dilation):
        return nn.Sequential(self.separable(cin, cout, 1, dilation), self.norm(cout), nn.ReLU())

    def block(self, cin, cout, reps, stride, grow_first=True, more=False):
        skip = self.conv_norm(cin, cout, 1, stride) if stride != 1 or cin != cout else nn.Identity()
        body, c = [], cin
        for i in range(reps):
            w = cout if grow_first or i == reps - 1 else cin
            body += [self.separable(c, w), self.norm(w)] + ([nn.ReLU()] if i < reps - 1 else [])
            c = w
        if stride != 1 or more:
            body.append(self.separable(cout, cout, stride))
        return held((skip, nn.Sequential(*body)))

    def forward(self, x):
        x = self.stem[1](self.stem[0](x))
        for i, (skip, body) in enumerate(self.flow):
            x = body(x) + skip(x)
            if i < len(self.flow) - 1:
                x = F.relu(x)  # the first one in place, so that the low-level features have it too
            low = x if i == 0 else low
        for one in self.exits:
            x = one(x)
        parts = [one(x) for one in self.pyramid]
        spread = F.relu(self.mean[1](self.mean[0](x.mean((2, 3), keepdim=True))))
        x = self.joined[0](torch.cat(parts + [spread.expand(-1, -1, *x.shape[2:])], 1))
        x = torch.cat([self.ups[1](self.ups[0](x)), self.narrow[0](low)], 1)
        for one in self.mixed:
            x = one(x)
        return self.out[1](self.out[0](x))


def classes_of_places(places, classes):
    return lambda rng: rng.integers(0, classes, (BATCH, *places)).astype(np.uint8)


def case(net, shape, labels, config, loss=F.cross_entropy, classes=0):
    return {"net": net, "shape": shape, "labels": labels, "config": config, "loss": loss, "classes": classes}


CASES = {
    "unet of images": case(lambda: UNet(2, 2, 3, (5, 6, 10)), (2, 12, 20), classes_of_places((12, 20), 3),
                           'zoo = "unet"\nwidths = [5, 6, 10]', classes=3),
    "unet of volumes": case(lambda: UNet(3, 2, 4, (6, 8, 10)), (2, 8, 12, 4), classes_of_places((8, 12, 4), 4),
                            'zoo = "unet"\nwidths = [6, 8, 10]', classes=4),
    "unet of numbers": case(lambda: UNet(2, 1, 2, (4, 6)), (1, 6, 10), lambda r: r.normal(size=(BATCH, 2, 6, 10)),
                            'zoo = "unet"\nwidths = [4, 6]', loss=F.mse_loss),
    "cosmoflow": case(lambda: CosmoFlow(4, 9, (5, 7, 9), 4), (4, 9, 9, 9), lambda r: r.uniform(-1, 1, (BATCH, 4)),
                      'zoo = "cosmoflow"\nwidths = [5, 7, 9]\ndropout = 0', loss=F.mse_loss),
    "resnet18_cifar": case(lambda: ResNet18Cifar(10), (3, 16, 16), classes_of_places((), 10), 'zoo = "resnet18_cifar"',
                           classes=10),
    "deepcam": case(lambda: DeepCam(16, 3), (16, 32, 32), classes_of_places((32, 32), 3), 'zoo = "deepcam"', classes=3),
}


def write_safetensors(path, tensors):
    header, end, parts = {}, 0, []
    for name, value in tensors.items():
        data = np.ascontiguousarray(value, np.float64).tobytes()
        header[name] = {"dtype": "F64", "shape": list(value.shape), "data_offsets": [end, end + len(data)]}
        end += len(data)
        parts.append(data)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as out:
        out.write(struct.pack("<Q", len(text)) + text + b"".join(parts))


def read_safetensors(path):
    with open(path, "rb") as file:
        (length,) = struct.unpack("<Q", file.read(8))
        header = json.loads(file.read(length))
        values = file.read()
    types = {"F64": np.float64, "F32": np.float32, "I32": np.int32}
    tensors = {}
    for name, entry in header.items():
        if name != "__metadata__":
            begin, end = entry["data_offsets"]
            tensors[name] = np.frombuffer(values[begin:end], types[entry["dtype"]]).reshape(entry["shape"])
    return tensors


def tensors_of(net):
    return {name: value.detach().numpy().copy() for name, value in net.state_dict().items()
            if not name.endswith("num_batches_tracked")}


def distance(ours, theirs, least=1e-30):
    return float(np.abs(ours - theirs).max() / max(np.abs(theirs).max(), least))


def run(echelon, folder, *words):
    done = subprocess.run([echelon, *words], cwd=folder, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"echelon {' '.join(words)} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout


def compare(name, echelon, folder):
    import h5py

    given = CASES[name]
    rng = np.random.default_rng(7)
    torch.manual_seed(3)
    net = given["net"]().double()
    for module in net.modules():
        if isinstance(module, (nn.BatchNorm2d, nn.BatchNorm3d)):
            nn.init.uniform_(module.weight, 0.5, 1.5)
            nn.init.uniform_(module.bias, -0.5, 0.5)
    rounded = lambda values: values.astype(np.float32).astype(np.float64)  # as echelon reads numbers
    samples = rounded(rng.normal(size=(BATCH, *given["shape"])))
    labels = given["labels"](rng)
    labels = labels if given["classes"] else rounded(labels)
    with h5py.File(os.path.join(folder, "data.h5"), "w") as file:
        file["samples"], file["labels"] = samples, labels
        if given["classes"]:
            file.attrs["classes"] = given["classes"]
    before = tensors_of(net)
    write_safetensors(os.path.join(folder, "before.safetensors"), before)
    form = "dense" if labels.ndim > 1 else "class"
    form = form if given["classes"] else "values"
    axes = "NC" + "DHW"[4 - len(given["shape"]):]
    with open(os.path.join(folder, "net.toml"), "w") as file:
        file.write(f"""name = "net"
[model]
weights = "before.safetensors"
{given["config"]}
[data]
train = "data.h5"
shuffle = false
sharding = "record"
[data.hdf5]
samples = "samples"
labels = "labels"
axes = "{axes}"
label_form = "{form}"
{f'classes = {given["classes"]}' if given["classes"] else ""}
[batch]
global = {BATCH}
[train]
epochs = 0
steps = 1
[optimizer]
learning_rate = {RATE}
momentum = 0
[device]
kind = "reference"
dtype = "f64"
""")
    run(echelon, folder, "train", "net.toml")
    run(echelon, folder, "export", "results/net", "--format", "safetensors", "--out", "after.safetensors")
    after = read_safetensors(os.path.join(folder, "after.safetensors"))
    for root, _, files in os.walk(os.path.join(folder, "results")):
        if "metrics.jsonl" in files:
            with open(os.path.join(root, "metrics.jsonl")) as file:
                rows = [json.loads(line) for line in file]
    loss = next(row["loss"] for row in rows if "loss" in row)

    x, t = torch.from_numpy(samples), torch.from_numpy(labels.astype(np.int64) if given["classes"] else labels)
    exact = given["loss"](net(x), t)
    exact.backward()
    gradients = {name: p.grad.numpy() for name, p in net.named_parameters()}
    statistics = {name: value for name, value in tensors_of(net).items() if "running" in name}
    if set(after) != set(before):
        sys.exit(f"{name}: tensors {sorted(set(after) ^ set(before))} are on one side only")
    least = 1e-4 * max(np.abs(g).max() for g in gradients.values())
    far = {n: distance((before[n] - after[n]) / RATE, g, least) for n, g in gradients.items()}
    worst = max(far, key=far.get)
    still = max((distance(after[n], value) for n, value in statistics.items()), default=0)

    net.load_state_dict({n: torch.from_numpy(v.copy()) for n, v in after.items()}, strict=False)
    net.eval()
    with torch.no_grad():
        outputs = net(x)
        outputs = (torch.softmax(outputs, 1) if given["classes"] else outputs).numpy()
    run(echelon, folder, "predict", "results/net", "data.h5", "--out", "outputs.h5", "--outputs")
    with h5py.File(os.path.join(folder, "outputs.h5")) as file:
        predicted = file["outputs"][:]
    apart, seen = abs(loss / exact.item() - 1), distance(predicted, outputs)
    print(f"{name:16} {sum(p.numel() for p in net.parameters()):>11,} parameters  gradients {far[worst]:.1e} ({worst})  "
          f"statistics {still:.1e}  loss {apart:.1e}  outputs {seen:.1e}", flush=True)
    return max(far[worst], still, apart) <= 1e-9 and seen <= 1e-6


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--echelon", required=True)
    parser.add_argument("models", nargs="*", help=f"default: all but deepcam, which takes a minute: {', '.join(CASES)}")
    args = parser.parse_args()
    good = True
    for name in args.models or [name for name in CASES if name != "deepcam"]:
        with tempfile.TemporaryDirectory() as folder:
            good = compare(name, os.path.abspath(args.echelon), folder) and good
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
