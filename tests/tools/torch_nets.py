#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Nets of the zoo in PyTorch, written from their sources, whose layers have echelon's names and order. For
torch_layers.py and golden_models.py.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


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


class Lstm(nn.Module):
    """An LSTM with echelon's names, whose gates are i, f, g, o."""

    def __init__(self, features, units):
        super().__init__()
        for name, shape in {"weight_x": (4 * units, features), "weight_h": (4 * units, units), "bias_x": (4 * units,),
                            "bias_h": (4 * units,)}.items():
            self.register_parameter(name, nn.Parameter(torch.empty(shape).uniform_(-0.4, 0.4)))

    def forward(self, x):
        states = []
        h = c = x.new_zeros(x.shape[0], self.weight_h.shape[1])
        for t in range(x.shape[1]):
            i, f, g, o = (x[:, t] @ self.weight_x.T + self.bias_x + h @ self.weight_h.T + self.bias_h).chunk(4, 1)
            c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
            h = torch.sigmoid(o) * torch.tanh(c)
            states.append(h)
        self.output = torch.stack(states, 1)
        return self.output


class FrnnLstm(nn.Module):
    """Kates-Harbeck et al. 2019 for scalar signals, without dropout: a value for each step."""

    def __init__(self, features, units=(200, 200)):
        super().__init__()
        self.lstm1, self.lstm2 = Lstm(features, units[0]), Lstm(*units)
        self.dense1 = nn.Linear(units[1], 1)

    def forward(self, x):
        return self.dense1(self.lstm2(self.lstm1(x)))[..., 0]


class TiedWords(nn.Module):
    """A language model whose last layer has the table of its embedding as weights (Press, Wolf 2017)."""

    def __init__(self, words, units):
        super().__init__()
        self.embed, self.lstm1, self.dense1 = nn.Embedding(words, units), Lstm(units, units), nn.Module()
        self.dense1.register_parameter("bias", nn.Parameter(torch.empty(words).uniform_(-0.4, 0.4)))

    def forward(self, tokens):
        return (self.lstm1(self.embed(tokens)) @ self.embed.weight.T + self.dense1.bias).transpose(1, 2)


class LeNet(Net):
    """LeCun et al. 1998 with a softmax and pools without weights."""

    def __init__(self, cin, height, width, classes):
        super().__init__(2)
        self.convs = held((self.conv(cin, 6, 5, padding=2), self.conv(6, 16, 5)))
        flat = 16 * ((height // 2 - 4) // 2) * ((width // 2 - 4) // 2)
        self.units = held((self.dense(flat, 120), self.dense(120, 84), self.dense(84, classes)))

    def forward(self, x):
        for conv in self.convs:
            x = F.avg_pool2d(conv(x).tanh(), 2)
        x = x.flatten(1)
        for unit in self.units[:-1]:
            x = unit(x).tanh()
        return self.units[-1](x)


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

    def __init__(self, classes, channels=3):
        super().__init__(2)
        self.stem, self.blocks, c = held((self.conv_norm(channels, 64, 3),)), [], 64
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
        low = self.narrow[0](low)
        parts = [one(x) for one in self.pyramid]
        spread = F.relu(self.mean[1](self.mean[0](x.mean((2, 3), keepdim=True))))
        x = self.joined[0](torch.cat(parts + [spread.expand(-1, -1, *x.shape[2:])], 1))
        x = torch.cat([self.ups[1](self.ups[0](x)), low], 1)
        for one in self.mixed:
            x = one(x)
        return self.out[1](self.out[0](x))
