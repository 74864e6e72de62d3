// Losses of the first steps, from torch 2.15.0+cu132. Made by tests/tools/golden_models.py; do not edit.
#pragma once

#include <vector>

namespace echelon::golden {

// clang-format off
struct ModelCase {
  const char* name;
  std::vector<double> losses;  // of each step, before its update
};

inline const std::vector<ModelCase> kModels = {
    {"lenet", {
        2.2281300392644376,
        2.316375254759877,
        2.289857684696411,
        2.369768113355187,
        2.313254092270594,
        2.374162216742699,
        2.409403529629709,
        2.2651652570349277,
        2.369941304669063,
        2.341670700734206}},
    {"resnet20", {
        2.6928532907790164,
        2.483318473111192,
        2.232531649891016,
        2.4634499782049057,
        2.169206573829074,
        2.502275272617824,
        2.5827048522268345,
        2.324671949464701,
        2.342877598886116,
        2.7630036050187625}},
};
// clang-format on

}  // namespace echelon::golden
