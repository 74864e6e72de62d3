// SPDX-License-Identifier: Apache-2.0
// Parses short texts with a grammar of their own. An input is a byte, the number of the grammar, and the text.
#include <cmath>

#include "base/quantities.hpp"
#include "config/faults.hpp"
#include "config/trace_steps.hpp"
#include "tests/fuzz/mutate.hpp"
#include "tests/fuzz/targets.hpp"

namespace echelon::fuzz {
namespace {

class SentencesTarget final : public Target {
 public:
  explicit SentencesTarget(const Place& place) {
    for (const std::string& file : corpus_of(place, "sentences"))
      for (const std::string& line : lines_of(file)) lines_.push_back(line);
    words_ = {"rank ",       "at step ", "a random rank", "to ", "from ", "for ", "by ", "messages of ",
              "in backward", "5ms",      "1MB",           "s",   "-",     ".",    "..",  ",",
              "KiB",         "/s",       "gbit",          " ",   ";",     "step"};
  }

  std::string draw(Draws& draws) override {
    return static_cast<char>(draws.below(4)) + mutate_text(draws.one_of(lines_), lines_, words_, draws);
  }

  bool take(const std::string& input) override {
    if (input.empty()) return false;
    const std::string text = input.substr(1);
    return refused_with({kExitConfig}, [&] {
      switch (static_cast<unsigned char>(input[0]) % 4) {
        case 0:
          for (const std::string& sentence : split_faults(text)) check(parse_fault(sentence));
          return;
        case 1:
          for (const std::int64_t bytes : parse_sizes(text, "--sizes"))
            if (bytes < 0) throw Defect("a negative size");
          return;
        case 2:
          if (const double rate = parse_rate(text, "--rate"); !(rate > 0) || !std::isfinite(rate))
            throw Defect("a rate that is none");
          return;
        default: {
          Config config;
          config.run.trace = text;
          if (const auto steps = trace_steps(config); steps && (steps->first < 1 || steps->last < steps->first))
            throw Defect("steps out of order");
        }
      }
    });
  }

 private:
  static void check(const Fault& fault) {
    if (fault.rank < -1 || fault.first_step < 0 || fault.last_step < fault.first_step || !std::isfinite(fault.amount) ||
        fault.amount < 0)
      throw Defect("a fault with an impossible number: " + fault.text);
  }

  std::vector<std::string> lines_, words_;
};

}  // namespace

std::unique_ptr<Target> make_sentences(const Place& place) { return std::make_unique<SentencesTarget>(place); }

}  // namespace echelon::fuzz
