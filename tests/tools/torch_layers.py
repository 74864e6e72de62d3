#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares models of the zoo with PyTorch in double: loss, gradients, outputs, and the activations of all layers.

PyTorch draws the weights. echelon reads them (model.weights), takes one step of plain SGD at a rate of 2^-7 on the
device "reference" in f64, and exports its weights: before less after, times 2^7, is the gradient. Prints for each model
the largest distance of a tensor's gradient, |a - b| over the largest |b| of the tensor (at least 1e-4 of the largest of
the net: some are 0 but for rounding), that of running statistics and of the loss, that of `echelon predict --outputs`,
and the largest one of a layer's activations (`--layer`), in evaluation: of every layer with parameters, and of all calls
of KINDS. Ends with 1 if one is above 1e-9. Needs torch, numpy and h5py:

    python3 tests/tools/torch_layers.py --echelon build/release/bin/echelon [--all] [MODEL..]

The nets (torch_nets.py) are written once more, from their sources, and not read from echelon.
"""
import argparse
import json
import os
import struct
import subprocess
import sys
import tempfile

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.overrides import TorchFunctionMode

from torch_nets import CosmoFlow, DeepCam, FrnnLstm, LeNet, ResNet18Cifar, TiedWords, UNet

BATCH, RATE = 3, 2.0**-7
TIED = """[[model.layers]]
type = "embedding"
name = "embed"
units = 6
[[model.layers]]
type = "lstm"
units = 6
[[model.layers]]
type = "dense"
units = 11
weights_of = "embed"
"""


def classes_of_places(places, classes):
    return lambda rng: rng.integers(0, classes, (BATCH, *places)).astype(np.uint8)


def hinge(outputs, labels):
    return F.relu(1 - labels * outputs).mean()


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
    "lenet": case(lambda: LeNet(1, 16, 20, 10), (1, 16, 20), classes_of_places((), 10), 'zoo = "lenet"', classes=10),
    "resnet18_cifar": case(lambda: ResNet18Cifar(10), (3, 16, 16), classes_of_places((), 10), 'zoo = "resnet18_cifar"',
                           classes=10),
    "tied words": case(lambda: TiedWords(11, 6), (5,), None, TIED, classes=11),
    "frnn_lstm": case(lambda: FrnnLstm(14), (9, 14), lambda r: np.where(r.normal(size=(BATCH, 9)) > 0, 1.0, -1.0),
                      'zoo = "frnn_lstm"\ndropout = 0\nloss = "hinge"', loss=hinge),
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


class Activations(TorchFunctionMode):
    """The outputs of layers of a net under echelon's names: of its modules, and of functions in the order of calls."""

    KINDS = {F.relu: "relu", F.leaky_relu: "leaky_relu", F.max_pool2d: "max_pool", F.max_pool3d: "max_pool",
             F.avg_pool2d: "avg_pool", torch.Tensor.tanh: "tanh", torch.cat: "concat"}

    def __init__(self, net):
        super().__init__()
        self.of, self.counts = {}, {}
        for name, module in net.named_children():
            if any(True for _ in module.parameters(recurse=False)):
                module.register_forward_hook(lambda _, inputs, output, name=name: self.put(name, output))

    def put(self, name, output):
        self.of[name] = output.detach().clone().numpy()

    def __torch_function__(self, function, types, args=(), kwargs=None):
        output = function(*args, **(kwargs or {}))
        if function in self.KINDS:
            kind = self.KINDS[function]
            self.counts[kind] = self.counts.get(kind, 0) + 1
            self.put(f"{kind}{self.counts[kind]}", output)
        return output


def distance(ours, theirs, least=1e-30):
    return float(np.abs(ours - theirs).max() / max(np.abs(theirs).max(), least))


def run(echelon, folder, *words):
    done = subprocess.run([echelon, *words], cwd=folder, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"echelon {' '.join(words)} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout


def compare(name, echelon, folder, listed):
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
    text = given["labels"] is None  # windows of a text; labels are the next tokens
    with h5py.File(os.path.join(folder, "data.h5"), "w") as file:
        if text:
            tokens = rng.integers(0, given["classes"], BATCH * given["shape"][0] + 1).astype(np.uint8)
            samples, labels = (t.reshape(BATCH, -1).astype(np.int64) for t in (tokens[:-1], tokens[1:]))
            file["tokens"] = tokens
            file["vocabulary"] = np.frombuffer("".join(f"w{i}\0" for i in range(given["classes"])).encode(), np.uint8)
            file.attrs.update(format=np.bytes_("echelon-samples"), version=1, kind=np.bytes_("text"))
        else:
            samples = rounded(rng.normal(size=(BATCH, *given["shape"])))
            labels = given["labels"](rng)
            labels = labels if given["classes"] else rounded(labels)
            file["samples"], file["labels"] = samples, labels
            if given["classes"]:
                file.attrs["classes"] = given["classes"]
    before = tensors_of(net)
    write_safetensors(os.path.join(folder, "before.safetensors"), before)
    form = "dense" if labels.ndim > 1 else "class"
    form = form if given["classes"] else "values"
    axes = "NC" + "DHW"[4 - len(given["shape"]):]
    if len(given["shape"]) == 2:
        form, axes = "steps", "NTF"
    hdf5 = f"""[data.hdf5]
samples = "samples"
labels = "labels"
axes = "{axes}"
label_form = "{form}"
{f'classes = {given["classes"]}' if given["classes"] else ""}"""
    with open(os.path.join(folder, "net.toml"), "w") as file:
        file.write(f"""name = "net"
[model]
weights = "before.safetensors"
{given["config"]}
[data]
train = "data.h5"
shuffle = false
sharding = "record"
{f'sequence_length = {given["shape"][0]}' if text else hdf5}
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
    activations = Activations(net)
    with torch.no_grad():
        with activations:
            outputs = net(x)
        for child, module in net.named_children():
            if hasattr(module, "output"):
                activations.put(child, module.output)
        outputs = (torch.softmax(outputs, 1) if given["classes"] else outputs).numpy()
        outputs = np.moveaxis(outputs, 1, 2) if text else outputs
    layers = [word for layer in activations.of for word in ("--layer", layer)]
    run(echelon, folder, "predict", "results/net", "data.h5", "--out", "outputs.h5", "--outputs", *layers)
    with h5py.File(os.path.join(folder, "outputs.h5")) as file:
        seen = distance(file["outputs"][:].reshape(outputs.shape), outputs)
        wide = {layer: distance(file[f"layers/{layer}"][:].reshape(values.shape), values) for layer, values in activations.of.items()}
    widest = max(wide, key=wide.get)
    apart = abs(loss / exact.item() - 1)
    count = sum(p.numel() for p in net.parameters())
    print(f"{name:16} {count:>11,} parameters  gradients {far[worst]:.1e} ({worst})  "
          f"statistics {still:.1e}  loss {apart:.1e}  outputs {seen:.1e}  "
          f"{len(wide)} layers {wide[widest]:.1e} ({widest})", flush=True)
    for layer in wide if listed else ():
        print(f"    {layer:20} {'x'.join(map(str, activations.of[layer].shape)):>16} {wide[layer]:.1e}")
    return max(far[worst], still, apart, seen, wide[widest]) <= 1e-9


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--echelon", required=True)
    parser.add_argument("--all", action="store_true", help="print a line for every layer")
    parser.add_argument("models", nargs="*", help=f"default: all but deepcam, which takes a minute: {', '.join(CASES)}")
    args = parser.parse_args()
    good = True
    for name in args.models or [name for name in CASES if name != "deepcam"]:
        with tempfile.TemporaryDirectory() as folder:
            good = compare(name, os.path.abspath(args.echelon), folder, args.all) and good
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
