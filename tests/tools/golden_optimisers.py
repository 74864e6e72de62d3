#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints tests/unit/optim/golden_optimisers.hpp: weights after 6 updates by PyTorch's own optimisers, in double.

LARS and LAMB, which torch.optim lacks, are written out here from the papers (You et al. 2017, algorithm 1; You et al.
2020, algorithm 2) with torch's norms. Needs torch; the tests need only what this prints:

    python3 tests/tools/golden_optimisers.py > tests/unit/optim/golden_optimisers.hpp
"""
import torch

STEPS = 6
SIZES = {"a": 7, "b": 3, "c": 5}  # b is a bias: it neither decays nor takes a trust ratio


def start():
    """Returns the weights, which are exact in binary and the same as in test_golden.cpp."""
    values = [((7 * i + 3) % 11 - 5) / 8 for i in range(sum(SIZES.values()))]
    out, at = {}, 0
    for name, n in SIZES.items():
        out[name] = torch.nn.Parameter(torch.tensor(values[at : at + n], dtype=torch.float64))
        at += n
    return out


def set_gradients(weights, step):
    at = 0
    for w in weights.values():
        values = [((5 * (at + i) + 3 * step + 1) % 13 - 6) / 16 for i in range(w.numel())]
        w.grad = torch.tensor(values, dtype=torch.float64)
        at += w.numel()


def torch_rule(make, clip=0.0, **options):
    weights = start()
    decay = options.pop("weight_decay", 0.0)
    groups = [
        {"params": [weights["a"], weights["c"]], "weight_decay": decay},
        {"params": [weights["b"]], "weight_decay": 0.0},
    ]
    optimiser = make(groups, **options)
    for step in range(STEPS):
        set_gradients(weights, step)
        if clip:
            torch.nn.utils.clip_grad_norm_(list(weights.values()), clip)
        optimiser.step()
    return weights


def lars(lr, momentum, weight_decay, eta):
    weights = start()
    velocity = {name: torch.zeros_like(w) for name, w in weights.items()}
    for step in range(STEPS):
        set_gradients(weights, step)
        with torch.no_grad():
            for name, w in weights.items():
                decay, rate = (0.0, 1.0) if name == "b" else (weight_decay, None)
                if rate is None:
                    rate = eta * w.norm() / (w.grad.norm() + decay * w.norm())
                velocity[name] = momentum * velocity[name] + lr * rate * (w.grad + decay * w)
                w -= velocity[name]
    return weights


def lamb(lr, beta1, beta2, eps, weight_decay):
    weights = start()
    m = {name: torch.zeros_like(w) for name, w in weights.items()}
    v = {name: torch.zeros_like(w) for name, w in weights.items()}
    for step in range(STEPS):
        set_gradients(weights, step)
        with torch.no_grad():
            for name, w in weights.items():
                decay = 0.0 if name == "b" else weight_decay
                m[name] = beta1 * m[name] + (1 - beta1) * w.grad
                v[name] = beta2 * v[name] + (1 - beta2) * w.grad**2
                m_hat, v_hat = m[name] / (1 - beta1 ** (step + 1)), v[name] / (1 - beta2 ** (step + 1))
                update = m_hat / (v_hat.sqrt() + eps) + decay * w
                trust = 1.0 if name == "b" else w.norm() / update.norm()
                w -= lr * trust * update
    return weights


CASES = {
    "sgd": torch_rule(torch.optim.SGD, lr=0.1, momentum=0.75, weight_decay=0.05),
    "nesterov": torch_rule(torch.optim.SGD, lr=0.1, momentum=0.75, weight_decay=0.05, nesterov=True),
    "adam": torch_rule(torch.optim.Adam, lr=0.05, betas=(0.8, 0.95), eps=1e-6, weight_decay=0.1),
    "adamw": torch_rule(torch.optim.AdamW, lr=0.05, betas=(0.8, 0.95), eps=1e-6, weight_decay=0.1),
    "rmsprop": torch_rule(torch.optim.RMSprop, lr=0.02, alpha=0.9, eps=1e-6, weight_decay=0.1),
    "rmsprop_momentum": torch_rule(torch.optim.RMSprop, lr=0.02, alpha=0.9, eps=1e-6, weight_decay=0.1, momentum=0.5),
    "lars": lars(lr=2.0, momentum=0.75, weight_decay=0.05, eta=0.02),
    "lamb": lamb(lr=0.05, beta1=0.8, beta2=0.95, eps=1e-6, weight_decay=0.1),
    "sgd_clipped": torch_rule(torch.optim.SGD, clip=0.5, lr=0.1, momentum=0.75, weight_decay=0.05),
    "adam_clipped": torch_rule(torch.optim.Adam, clip=0.5, lr=0.05, betas=(0.8, 0.95), eps=1e-6),
}

print(f"""// Weights after {STEPS} updates, from torch {torch.__version__}. Made by tests/tools/golden_optimisers.py; do not edit.
#pragma once

#include <vector>

namespace echelon::golden {{

// clang-format off
struct OptimiserCase {{
  const char* name;
  std::vector<double> weights;  // a (7), b (3), c (5)
}};

constexpr int kSteps = {STEPS};

inline const std::vector<OptimiserCase> kOptimisers = {{""")
for name, weights in CASES.items():
    rows = ["        " + ", ".join(repr(x) for x in w.detach().tolist()) for w in weights.values()]
    print(f'    {{"{name}", {{\n' + ",\n".join(rows) + "}},")
print("};\n// clang-format on\n\n}  // namespace echelon::golden")
