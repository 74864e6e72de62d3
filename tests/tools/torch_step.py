#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures a training step of a net of science in PyTorch, as a peer of tests/tools/cpu.sh.

  torch_step.py MODEL [--batch B] [--steps N] [--threads T] [--dtype float32|bfloat16] [--compile] [--channels-last]
                [--medium]
  MODEL: cosmoflow | unet_volumes | deepcam | unet, on samples of the shapes of configs/bench/MODEL.toml

It prints one line of JSON: the samples a second ("rate") of forward, backward and SGD with momentum on resident random
data, the median of the steps after a warm-up, and the largest resident memory of the process in MiB ("peak_mb").
"""
import argparse
import json
import resource
import statistics
import time

import torch
import torch.nn as nn

import torch_nets

MODELS = {  # net, sample, classes of a label for every place (0: a row of targets)
    "cosmoflow": (lambda: torch_nets.CosmoFlow(4, 128, (32, 64, 128, 256, 512), 4), (4, 128, 128, 128), 0),
    "unet_volumes": (lambda: torch_nets.UNet(3, 1, 2, (32, 64, 128, 256)), (1, 64, 64, 64), 2),
    "deepcam": (lambda: torch_nets.DeepCam(16, 3), (16, 192, 288), 3),
    "unet": (lambda: torch_nets.UNet(2, 3, 2, (64, 128, 256, 512, 1024)), (3, 128, 128), 2),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", choices=MODELS)
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--dtype", default="float32", choices=("float32", "bfloat16"))
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--channels-last", action="store_true")
    parser.add_argument("--medium", action="store_true", help="float32 data, products in bf16 where the library has them")
    a = parser.parse_args()

    torch.manual_seed(1)
    torch.set_num_threads(a.threads)
    if a.medium:
        torch.set_float32_matmul_precision("medium")
    build, sample, classes = MODELS[a.model]
    net, x = build(), torch.randn(a.batch, *sample)
    y = torch.randint(0, classes, (a.batch, *sample[1:])) if classes else torch.rand(a.batch, 4)
    loss_of = nn.CrossEntropyLoss() if classes else nn.MSELoss()
    if a.channels_last:
        form = torch.channels_last_3d if len(sample) == 4 else torch.channels_last
        net, x = net.to(memory_format=form), x.to(memory_format=form)
    step_net = torch.compile(net) if a.compile else net
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-3, momentum=0.9)

    def step():
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cpu", torch.bfloat16, enabled=a.dtype == "bfloat16"):
            loss = loss_of(step_net(x), y)
        loss.backward()
        optimizer.step()

    for _ in range(2):
        step()
    seconds = []
    for _ in range(a.steps):
        start = time.perf_counter()
        step()
        seconds.append(time.perf_counter() - start)
    print(json.dumps({"peer": "torch " + torch.__version__, "model": a.model, "rate": a.batch / statistics.median(seconds),
                      "step_s_median": statistics.median(seconds), "step_s_min": min(seconds),
                      "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}))


if __name__ == "__main__":
    main()
