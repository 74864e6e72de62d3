// A claim of the field as a study decides it: the sentence, where it stands, and the tests that the study's cells must
// pass. Read from [claim] of a study's file (study/parse_claim.cpp), kept in the study's record with a hash of its
// text, judged by judge.hpp.
//
// Every test reduces to one number for each seed, the effect d, and a region in which the claim says that it lies:
//
//   kind          d, by seed                                            region
//   formula       log(figure / formula), of each setting                within: |d| <= log(1 + within)
//                 (figure itself, where the formula is 0)               |d| <= within
//   ratio         log(figure of `of` / figure of `over`)                expect +- within, at_least, at_most
//   difference    figure of `of` - figure of `over`                     expect +- within, at_least, at_most
//   equivalent    as ratio, with expect = 1                             within
//   trend         slope of the figure over the axis, in parts of its    rises: above `at_least` (0); falls: below
//                 mean for each value of the axis                       -at_least; flat: within +-within
//   order         of each neighbours in `order`: log(first / second)    above 0
//   interaction   log(figure of `of` / the better one of `order`)       above 0 where more is better, else below
//   share         part of the settings for which `formula` holds        at_least, at_most
//
// Beside the figures of a run a cell has: weights_distance (the largest difference of a weight from that of the
// reference cell of the same seed, in parts of the largest value of its tensor), wire_sent.largest and
// wire_received.largest (bytes a step of the busiest rank, all messages counted), to_servers and from_servers (bytes a
// step between ranks that train and ranks that serve), cell_s (seconds of the cell) and price (of these, by [cost]).
//
// Sides of a ratio are cells that agree in all keys but those that `of` and `over` name. Instruments: exact (counts
// that no clock touches: one seed decides), real, paced (a simulated device), shaped (simulated links), predicted.
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

// "exchange.algorithm=ring": cells whose key has this value. All of a list must hold.
using CellSelection = std::vector<std::string>;

struct ClaimTest {
  std::string says = {};  // the assertion in words
  TestKind kind = TestKind::formula;
  std::string figure =
      {};  // a name of `echelon report --figures`, or arithmetic over such names and keys (formula.hpp)
  std::string formula = {};  // formula: the expected value; share: the condition
  CellSelection where = {}, of = {}, over = {};
  std::vector<CellSelection> order = {};
  std::string axis = {};          // trend: the key along whose values
  std::string direction = {};     // trend: rises | falls | flat
  std::string better = "higher";  // interaction: higher | lower
  double expect = std::numeric_limits<double>::quiet_NaN();
  double within = 0;
  double at_least = -std::numeric_limits<double>::infinity();
  double at_most = std::numeric_limits<double>::infinity();
};

struct Claim {
  int number = 0;
  std::string sentence;  // of the source, in its words
  std::string source;    // article, section
  std::string note;      // where the set-up differs from the source, and why
  Instrument instrument = Instrument::real;
  double margin = 0.01;                                  // least effect of interest, in parts
  CellSelection reference = {};                          // cell from whose weights `weights_distance` is measured
  std::vector<std::pair<std::string, std::string>> let;  // names for formulas: "G" = "4 * parameters"
  std::vector<ClaimTest> tests;
  std::string hash;  // of everything above
};

// One run of a study.
struct ClaimCell {
  std::map<std::string, std::string> keys;       // what tells settings apart: "ranks", "variant", "environment", axes
  std::map<std::string, std::string> sets = {};  // what its variant sets: selects cells too, tells none apart
  std::uint64_t seed = 1;
  std::string outcome = "finished";            // finished | diverged | failed
  std::map<std::string, double> figures = {};  // of a finished one
};

}  // namespace echelon::inline report
