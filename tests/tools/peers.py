#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares training steps of larger nets with PyTorch on the CPU: rates and peak memory, in turns.

  peers.py ECHELON [--python PYTHON] [--rounds 3] [--threads 1] [--only NET:BATCH ..]

PYTHON has PyTorch (pip install torch). Each turn runs PyTorch as it is, PyTorch compiled, and `echelon bench step`, each in a
process of its own: f32, SGD with momentum, resident random data, the layers of echelon's zoo. The table has medians over
rounds of the median step of a process, least and greatest rate behind; memory is the peak of the whole process (libraries
included)."""
import argparse
import json
import resource
import statistics
import subprocess
import sys
import time

NETS = {"resnet50": 6, "vgg16": 3, "transformer": 60, "translation": 60}  # number of timed steps
CASES = ["resnet50:8", "resnet50:16", "vgg16:8", "vgg16:16", "transformer:32", "translation:32"]
CONFIG = "configs/bench/resnet50.toml"


def models():
    import torch
    from torch import nn

    class Bottleneck(nn.Module):
        def __init__(self, inputs, width, stride):
            super().__init__()
            outputs = 4 * width
            norm, conv = nn.BatchNorm2d, lambda a, b, k, s: nn.Conv2d(a, b, k, s, k // 2, bias=False)
            self.body = nn.Sequential(conv(inputs, width, 1, 1), norm(width), nn.ReLU(inplace=True),
                                      conv(width, width, 3, stride), norm(width), nn.ReLU(inplace=True),
                                      conv(width, outputs, 1, 1), norm(outputs))
            same = stride == 1 and inputs == outputs
            self.skip = nn.Identity() if same else nn.Sequential(conv(inputs, outputs, 1, stride), norm(outputs))

        def forward(self, x):
            return torch.relu_(self.body(x) + self.skip(x))

    def resnet50():
        layers = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1)]
        channels = 64
        for width, blocks, stride in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
            for i in range(blocks):
                layers.append(Bottleneck(channels, width, stride if i == 0 else 1))
                channels = 4 * width
        return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, 1000))

    def vgg16():
        layers, channels = [], 3
        for width, count in ((64, 2), (128, 2), (256, 3), (512, 3), (512, 3)):
            for _ in range(count):
                layers += [nn.Conv2d(channels, width, 3, padding=1), nn.ReLU(inplace=True)]
                channels = width
            layers.append(nn.MaxPool2d(2))
        hidden = lambda n: [nn.Linear(n, 4096), nn.ReLU(inplace=True), nn.Dropout(0.5)]
        return nn.Sequential(*layers, nn.Flatten(), *hidden(512 * 49), *hidden(4096), nn.Linear(4096, 1000))

    class Block(nn.Module):
        def __init__(self, features=128, heads=4):
            super().__init__()
            linear = nn.Linear
            self.heads, self.before, self.behind = heads, nn.LayerNorm(features), nn.LayerNorm(features)
            self.q, self.k, self.v = linear(features, features), linear(features, features, bias=False), linear(features, features)
            self.out = linear(features, features)
            self.hidden = nn.Sequential(linear(features, 4 * features), nn.GELU(), linear(4 * features, features))

        def forward(self, x):  # (B, T, features)
            normed = self.before(x)
            heads = [part(normed).unflatten(2, (self.heads, -1)).transpose(1, 2) for part in (self.q, self.k, self.v)]
            y = nn.functional.scaled_dot_product_attention(*heads, is_causal=True)
            x = x + self.out(y.transpose(1, 2).flatten(2))
            return x + self.hidden(self.behind(x))

    class Transformer(nn.Module):
        def __init__(self, length=64, vocabulary=65, features=128):
            super().__init__()
            self.tokens, self.places = nn.Embedding(vocabulary, features), nn.Parameter(torch.zeros(length, features))
            self.body = nn.Sequential(Block(), Block(), nn.LayerNorm(features), nn.Linear(features, vocabulary))

        def forward(self, x):
            return self.body(self.tokens(x) + self.places).flatten(0, 1)

    class Translation(nn.Module):
        def __init__(self, vocabulary=64):
            super().__init__()
            self.source, self.target = nn.Embedding(vocabulary, 64), nn.Embedding(vocabulary, 64)
            self.encoder, self.decoder = nn.LSTM(64, 256), nn.LSTM(64, 256)
            self.out = nn.Linear(256, vocabulary)

        def forward(self, pair):  # both are (T, B)
            source, target = pair
            return self.out(self.decoder(self.target(target), self.encoder(self.source(source))[1])[0]).flatten(0, 1)

    def images(batch):
        return torch.randn(batch, 3, 224, 224), torch.randint(0, 1000, (batch,))

    def windows(batch):
        return torch.randint(0, 65, (batch, 64)), torch.randint(0, 65, (batch * 64,))

    def pairs(batch):
        return torch.randint(0, 64, (2, 24, batch)), torch.randint(0, 64, (24 * batch,))

    return {"resnet50": (resnet50, images), "vgg16": (vgg16, images), "transformer": (Transformer, windows),
            "translation": (Translation, pairs)}


def torch_steps(net, batch, threads, compiled):
    import torch
    torch.manual_seed(1)
    torch.set_num_threads(threads)
    build, data = models()[net]
    model, (x, y) = build(), data(batch)
    step_model = torch.compile(model) if compiled else model
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    times = []
    for _ in range(2 + NETS[net]):
        begin = time.perf_counter()
        optimizer.zero_grad(set_to_none=True)
        torch.nn.functional.cross_entropy(step_model(x), y).backward()
        optimizer.step()
        times.append(time.perf_counter() - begin)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    parameters = sum(p.numel() for p in model.parameters())
    print(json.dumps({"rate": batch / statistics.median(times[2:]), "bytes": peak, "parameters": parameters}))


def call(words):
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(words)}: code {done.returncode}\n{done.stderr[-2000:]}")
    return json.loads(done.stdout.strip().splitlines()[-1])


def measure(args, net, batch):
    shared = ["--child", net, "--batch", str(batch), "--threads", str(args.threads)]
    torch = [args.python, __file__, args.echelon, *shared]
    ours = [args.echelon, "bench", "step", CONFIG, "--set", "device.kind=onednn", "--set", "device.dtype=f32", "--set",
            f"model.zoo={net}", "--batch", str(batch), "--threads", str(args.threads), "--steps", str(NETS[net]), "--json"]
    found = {"PyTorch": [], "compiled": [], "echelon": []}
    for _ in range(args.rounds):
        found["PyTorch"].append(call(torch))
        found["compiled"].append(call([*torch, "--compiled"]))
        step = call(ours)
        step.update(bytes=step["process_peak_bytes"], rate=batch / step["step_s_median"])
        if step["parameters"] != found["PyTorch"][0]["parameters"]:
            sys.exit(f"{net}: {step['parameters']} parameters beside {found['PyTorch'][0]['parameters']} of PyTorch")
        found["echelon"].append(step)
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("echelon")
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--only", nargs="+", default=CASES)
    parser.add_argument("--child", choices=NETS, help=argparse.SUPPRESS)
    parser.add_argument("--batch", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--compiled", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child:
        return torch_steps(args.child, args.batch, args.threads, args.compiled)
    print("| net, batch | PyTorch, samples/s | compiled | echelon | over the better | MiB: PyTorch | compiled | echelon |")
    print("|---|---:|---:|---:|---:|---:|---:|---:|")
    for case in args.only:
        net, batch = case.split(":")
        found = measure(args, net, int(batch))
        rates = {who: [turn["rate"] for turn in turns] for who, turns in found.items()}
        middle = {who: statistics.median(values) for who, values in rates.items()}
        cells = [f"{middle[who]:.4g} ({min(values):.4g} to {max(values):.4g})" for who, values in rates.items()]
        memory = [f"{statistics.median(turn['bytes'] for turn in turns) / 2**20:.0f}" for turns in found.values()]
        better = middle["echelon"] / max(middle["PyTorch"], middle["compiled"])
        print(f"| {net}, {batch} | {' | '.join(cells)} | {better:.2f} | {' | '.join(memory)} |", flush=True)


if __name__ == "__main__":
    main()
