#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints tests/unit/model/golden_models.hpp: the losses of PyTorch's first training steps, in double.

Both sides start from the same weights and see the same samples, each number a hash of (stream, index) that is exact in
binary (`hashed` here, tests/unit/model/test_golden_models.cpp there), so that only the losses are kept. Needs torch; the
tests need only what this prints:

    python3 tests/tools/golden_models.py > tests/unit/model/golden_models.hpp

Adding a model: an entry in MODELS whose `parameters(net)` lists its learned tensors in echelon's canonical order (node
by node, each node's as its layer declares them: weight, bias; weight_x, weight_h, bias_x, bias_h), each of the shape
that echelon gives it, and a row in the test.
"""
import math

import torch
import torch.nn as nn

from torch_nets import CosmoFlow, UNet

STEPS, BATCH, CLASSES = 10, 8, 10
PLACES, VOCABULARY, FEATURES, UNITS = 7, 11, 12, 20  # sizes in the language models
LEARNING_RATE, MOMENTUM = 0.01, 0.9
SAMPLES, LABELS = 1000, 2000  # streams of step s are SAMPLES + s and LABELS + s; parameter j has stream j


def hashed_bits(stream, n):
    """Returns n whole numbers below 2^32."""
    i = torch.arange(1, n + 1, dtype=torch.int64)
    x = (i * 2654435761 + (stream + 1) * 2246822519) % 2**32
    x = x ^ (x >> 15)
    x = (x * 739019) % 2**32
    return x ^ (x >> 13)


def hashed(stream, shape):
    """Returns numbers in [-1, 1)."""
    n = math.prod(shape)
    return (hashed_bits(stream, n).to(torch.float64) / 2**31 - 1).reshape(shape)


def cnn_32_64():
    return nn.Sequential(
        nn.Conv2d(1, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(32, 64, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(64 * 3 * 3, 128), nn.ReLU(), nn.Linear(128, CLASSES))


class Residual(nn.Module):
    def __init__(self, cin, cout, stride):
        super().__init__()
        same = stride == 1 and cin == cout  # the shortcut's parameters come first, as in model/zoo/resnet.cpp
        self.skip = nn.Identity() if same else nn.Sequential(nn.Conv2d(cin, cout, 1, stride, bias=False), nn.BatchNorm2d(cout))
        self.body = nn.Sequential(
            nn.Conv2d(cin, cout, 3, stride, 1, bias=False), nn.BatchNorm2d(cout), nn.ReLU(),
            nn.Conv2d(cout, cout, 3, 1, 1, bias=False), nn.BatchNorm2d(cout))

    def forward(self, x):
        return torch.relu(self.body(x) + self.skip(x))


def resnet20():
    layers, c = [nn.Conv2d(3, 16, 3, 1, 1, bias=False), nn.BatchNorm2d(16), nn.ReLU()], 16
    for width, stride in ((16, 1), (32, 2), (64, 2)):
        for i in range(3):
            layers.append(Residual(c, width, stride if i == 0 else 1))
            c = width
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, CLASSES))


class LanguageModel(nn.Module):
    def __init__(self, cell):
        super().__init__()
        self.embed = nn.Embedding(VOCABULARY, FEATURES)
        self.cells = cell(FEATURES, UNITS, 2, batch_first=True)
        self.out = nn.Linear(UNITS, VOCABULARY)

    def forward(self, x):
        return self.out(self.cells(self.embed(x))[0]).flatten(0, 1)


def images(shape):
    """Returns the samples and labels of a step."""
    return lambda step: (hashed(SAMPLES + step, (BATCH, *shape)), hashed_bits(LABELS + step, BATCH) % CLASSES)


def texts(step):
    n = BATCH * PLACES
    samples = hashed_bits(SAMPLES + step, n) % VOCABULARY
    return samples.reshape(BATCH, PLACES), hashed_bits(LABELS + step, n) % VOCABULARY


def places(shape, classes):
    """The same with a class for every place of the sample, or numbers."""
    n = BATCH * math.prod(shape[1:])

    def batch(step):
        labels = hashed_bits(LABELS + step, n) % classes
        return hashed(SAMPLES + step, (BATCH, *shape)), labels.reshape(BATCH, *shape[1:])
    return batch


def targets(shape, count):
    return lambda step: (hashed(SAMPLES + step, (BATCH, *shape)), hashed(LABELS + step, (BATCH, count)))


def in_order(net):
    return list(net.parameters())


MODELS = {  # name: (build, a step's samples and labels, the parameters in canonical order)
    "cnn_32_64": (cnn_32_64, images((1, 12, 12)), in_order),
    "resnet20": (resnet20, images((3, 8, 8)), in_order),
    "lstm": (lambda: LanguageModel(nn.LSTM), texts, in_order),
    "gru": (lambda: LanguageModel(nn.GRU), texts, in_order),
    "unet": (lambda: UNet(2, 2, 3, (4, 6, 8)), places((2, 8, 12), 3), in_order),
    "unet_volumes": (lambda: UNet(3, 2, 3, (4, 6, 8)), places((2, 4, 8, 4), 3), in_order),
    "cosmoflow": (lambda: CosmoFlow(2, 9, (4, 6), 4), targets((2, 9, 9, 9), 4), in_order),
}


def start(net, parameters):
    """Sets a matrix or filter to +-1/sqrt(fan in), scales of batch norm near 1, and everything else near 0."""
    scales = {id(m.weight) for m in net.modules() if isinstance(m, (nn.BatchNorm2d, nn.BatchNorm3d))}
    with torch.no_grad():
        for j, p in enumerate(parameters):
            values = hashed(j, p.shape)
            if p.dim() > 1:
                p.copy_(values / math.sqrt(p[0].numel()))
            else:
                p.copy_(values * 0.125 + (1.0 if id(p) in scales else 0.0))


def losses(name):
    build, batch, parameters = MODELS[name]
    net = build().double()
    start(net, parameters(net))
    rule = torch.optim.SGD(net.parameters(), lr=LEARNING_RATE, momentum=MOMENTUM)
    out = []
    for step in range(STEPS):
        samples, labels = batch(step)
        rule.zero_grad()
        values = labels.is_floating_point()
        loss = (nn.functional.mse_loss if values else nn.functional.cross_entropy)(net(samples), labels)
        loss.backward()
        rule.step()
        out.append(loss.item())
    return out


def main():
    print("// SPDX-License-Identifier: Apache-2.0")
    print(f"// Losses of the first steps, from torch {torch.__version__}. Made by tests/tools/golden_models.py; do not edit.")
    print("#pragma once\n\n#include <vector>\n\nnamespace echelon::golden {\n\n// clang-format off")
    print("struct ModelCase {\n  const char* name;\n  std::vector<double> losses;  // a label, of each step, before its update\n};\n")
    print("inline const std::vector<ModelCase> kModels = {")
    for name in MODELS:
        print(f'    {{"{name}", {{')
        print(",\n".join(f"        {loss!r}" for loss in losses(name)) + "}},")
    print("};\n// clang-format on\n\n}  // namespace echelon::golden")


if __name__ == "__main__":
    main()
