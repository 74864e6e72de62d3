// Losses of the first steps, from torch 2.15.0+cu132. Made by tests/tools/golden_language.py; do not edit.
#pragma once

#include <vector>

namespace echelon::golden {

// clang-format off
struct LanguageCase {
  const char* cell;
  std::vector<double> losses;  // a token, of each step, before its update
};

inline const std::vector<LanguageCase> kLanguageModels = {
    {"lstm", {
        2.404438253793251,
        2.3957224400482495,
        2.4019263927801746,
        2.4010720727539083,
        2.4068182360343084,
        2.401128251396759,
        2.3898393704227923,
        2.409164508004083,
        2.402045641553238,
        2.4043950156380163}},
    {"gru", {
        2.409539440096804,
        2.393762387497306,
        2.406747858877676,
        2.4053599141612043,
        2.407691006993898,
        2.4045251921856305,
        2.3865544584223306,
        2.411932968654791,
        2.4052476460779864,
        2.4127413992770066}},
};
// clang-format on

}  // namespace echelon::golden
