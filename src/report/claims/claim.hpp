// SPDX-License-Identifier: Apache-2.0
// A published claim as a study decides it: the sentence, its source, and the tests that the study's cells must pass. It
// is read from [claim] of a study's file (study/claim_section.cpp), kept in the study's record with a hash of its text,
// and judged by judge.hpp.
//
// Every test reduces to one number per seed, the effect d, and to a region in which the claim says that d lies:
//
//   kind          d, by seed                                            region
//   formula       log(figure / formula) of each setting                 within: |d| <= log(1 + within)
//                 (the figure itself, where the formula is 0)           |d| <= within
//   ratio         log(figure of `of` / figure of `over`)                expect +- within, at_least, at_most
//   difference    figure of `of` - figure of `over`                     expect +- within, at_least, at_most
//   equivalent    as ratio, with expect = 1                             within
//   trend         slope of the figure per value of the axis, as a       rises: above `at_least` (0); falls: below
//                 fraction of its mean                                  -at_least; flat: within +-within
//   order         log(first / second) of each neighbours in `order`     above 0
//   interaction   log(figure of `of` / the better one of `order`)       above 0 if more is better, else below 0
//   share         fraction of the settings for which `formula` holds    at_least, at_most
//
// Besides the figures of a run, a cell has: weights_distance (the largest difference between a weight and the same
// weight of the reference cell with the same seed, relative to the largest value of its tensor), wire_sent.largest and
// wire_received.largest (bytes per step of the busiest rank, all messages counted), to_servers and from_servers (bytes
// per step between training and serving ranks), cell_s (seconds of the cell) and price (of those seconds, by [cost]).
//
// The two sides of a ratio are cells that agree in all keys but those that `of` and `over` name. Instruments: exact
// (counts that no clock touches: one seed decides), real, paced (simulated device), shaped (simulated links),
// predicted.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace echelon::inline report {

enum class Instrument : std::uint8_t { exact, real, paced, shaped, predicted };
enum class TestKind : std::uint8_t { ratio, difference, formula, trend, equivalent, interaction, order, share };

inline const std::vector<std::string> kInstruments = {"exact", "real", "paced", "shaped", "predicted"};
inline const std::vector<std::string> kTestKinds = {"ratio",      "difference",  "formula", "trend",
                                                    "equivalent", "interaction", "order",   "share"};

// Conditions such as "exchange.algorithm=ring": a cell is selected if its keys have all of these values.
using CellSelection = std::vector<std::string>;

struct ClaimTest {
  std::string says = {};  // the assertion in words
  TestKind kind = TestKind::formula;
  std::string figure =
      {};  // a name of `echelon report --figures`, or an expression of such names and keys (formula.hpp)
  std::string formula = {};  // formula: the expected value; share: the condition
  CellSelection where = {}, of = {}, over = {};
  std::vector<CellSelection> order = {};
  std::string axis = {};          // trend: the key whose values form the axis
  std::string direction = {};     // trend: rises | falls | flat
  std::string better = "higher";  // interaction: higher | lower
  double expect = std::numeric_limits<double>::quiet_NaN();
  double within = 0;
  double at_least = -std::numeric_limits<double>::infinity();
  double at_most = std::numeric_limits<double>::infinity();
};

struct Claim {
  int number = 0;
  std::string sentence;  // the claim in the words of its source
  std::string source;    // article and section
  std::string note;      // place and reason of differences from the source
  Instrument instrument = Instrument::real;
  double margin = 0.01;                                  // smallest effect of interest, as a fraction
  CellSelection reference = {};                          // the cell that `weights_distance` is measured against
  std::vector<std::pair<std::string, std::string>> let;  // names for formulas: "G" = "4 * parameters"
  std::vector<ClaimTest> tests;
  std::string hash;  // hash of everything above
};

// One run of a study.
struct ClaimCell {
  std::map<std::string, std::string> keys;       // identify its setting: "ranks", "variant", "environment", axes
  std::map<std::string, std::string> sets = {};  // what its variant sets: these select cells too, but tell none apart
  std::uint64_t seed = 1;
  std::string outcome = "finished";            // finished | diverged | failed
  std::map<std::string, double> figures = {};  // figures of a finished run
};

}  // namespace echelon::inline report
