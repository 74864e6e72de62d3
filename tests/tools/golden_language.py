#!/usr/bin/env python3
"""Prints tests/unit/model/golden_language.hpp: the losses of PyTorch's first training steps of two small language models.

As tests/tools/golden_models.py: both sides make weights and texts of hashes that are exact in binary, so that only the
losses are kept. The header has those of double; the test holds f64 against them, and f32 on the CPU's fast path.

    python3 tests/tools/golden_language.py > tests/unit/model/golden_language.hpp
"""
import math

import torch
import torch.nn as nn

STEPS, BATCH, PLACES, VOCABULARY, FEATURES, UNITS = 10, 6, 7, 11, 12, 20
LEARNING_RATE, MOMENTUM = 0.01, 0.9
SAMPLES, LABELS = 1000, 2000  # streams of step s: SAMPLES + s, LABELS + s; parameter j has stream j


def hashed_bits(stream, n):
    """n whole numbers below 2^32."""
    i = torch.arange(1, n + 1, dtype=torch.int64)
    x = (i * 2654435761 + (stream + 1) * 2246822519) % 2**32
    x = x ^ (x >> 15)
    x = (x * 739019) % 2**32
    return x ^ (x >> 13)


class LanguageModel(nn.Module):
    def __init__(self, cell):
        super().__init__()
        self.embed = nn.Embedding(VOCABULARY, FEATURES)
        self.cells = cell(FEATURES, UNITS, 2, batch_first=True)
        self.out = nn.Linear(UNITS, VOCABULARY)

    def forward(self, x):
        return self.out(self.cells(self.embed(x))[0]).flatten(0, 1)


def losses(cell):
    net = LanguageModel(cell).double()
    with torch.no_grad():
        for j, p in enumerate(net.parameters()):
            values = (hashed_bits(j, p.numel()).to(torch.float64) / 2**31 - 1).reshape(p.shape)
            p.copy_(values / math.sqrt(p[0].numel()) if p.dim() > 1 else values * 0.125)
    rule = torch.optim.SGD(net.parameters(), lr=LEARNING_RATE, momentum=MOMENTUM)
    out = []
    for step in range(STEPS):
        x = (hashed_bits(SAMPLES + step, BATCH * PLACES) % VOCABULARY).reshape(BATCH, PLACES)
        labels = hashed_bits(LABELS + step, BATCH * PLACES) % VOCABULARY
        rule.zero_grad()
        loss = nn.functional.cross_entropy(net(x), labels)
        loss.backward()
        rule.step()
        out.append(loss.item())
    return out


def main():
    print(f"// Losses of the first steps, from torch {torch.__version__}. Made by tests/tools/golden_language.py; do not edit.")
    print("#pragma once\n\n#include <vector>\n\nnamespace echelon::golden {\n\n// clang-format off")
    print("struct LanguageCase {\n  const char* cell;\n  std::vector<double> losses;  // a token, of each step, before its update\n};\n")
    print("inline const std::vector<LanguageCase> kLanguageModels = {")
    for name, cell in (("lstm", nn.LSTM), ("gru", nn.GRU)):
        print(f'    {{"{name}", {{')
        print(",\n".join(f"        {loss!r}" for loss in losses(cell)) + "}},")
    print("};\n// clang-format on\n\n}  // namespace echelon::golden")


if __name__ == "__main__":
    main()
