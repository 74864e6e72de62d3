#include "report/codec_accuracy.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "config/traits/codecs.hpp"

namespace echelon::inline report {
namespace {

constexpr double kTolerated = 0.01;

struct Accuracies {
  std::vector<double> all;
  void add(const RunRecord& run) { all.push_back(run.test_accuracy); }
  double median() const {
    std::vector<double> sorted = all;
    std::sort(sorted.begin(), sorted.end());
    const std::size_t half = sorted.size() / 2;
    return sorted.size() % 2 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2;
  }
  std::string text() const {
    return fmt::format("{:.2f} % ({} run{})", 100 * median(), all.size(), all.size() == 1 ? "" : "s");
  }
};

using Trained = std::tuple<std::string, std::int64_t, std::int64_t>;  // experiment, epochs, steps
Trained trained(const RunRecord& run) { return {run.experiment, run.epochs, run.steps}; }

bool counts(const RunRecord& run) { return !run.paced && std::isfinite(run.test_accuracy); }
bool exact(const RunRecord& run) {
  const CodecTraits* codec = find_traits(kCodecs, run.codec);
  return !codec || !codec->lossy;
}

}  // namespace

std::vector<std::string> codec_warnings(const std::vector<RunRecord>& runs) {
  std::map<Trained, Accuracies> plain;
  std::map<std::pair<Trained, int>, Accuracies> plain_by_ranks;
  std::map<std::tuple<Trained, std::string, int>, Accuracies> coded;
  for (const RunRecord& run : runs) {
    if (!counts(run)) continue;
    if (exact(run)) {
      plain[trained(run)].add(run);
      plain_by_ranks[{trained(run), run.ranks}].add(run);
    } else {
      coded[{trained(run), run.codec_text, run.ranks}].add(run);
    }
  }
  std::vector<std::string> warnings;
  for (const auto& [key, accuracies] : coded) {
    const auto& [same, codec, ranks] = key;
    const auto everywhere = plain.find(same);
    if (everywhere == plain.end()) continue;
    const auto here = plain_by_ranks.find({same, ranks});
    const Accuracies& without = here != plain_by_ranks.end() ? here->second : everywhere->second;
    const double lost = without.median() - accuracies.median();
    if (lost > kTolerated + 1e-9)
      warnings.push_back(fmt::format(
          "codec {} on {} rank{} costs {:.2f} points of test accuracy: {} beside {} without a codec after {} steps",
          codec, ranks, ranks == 1 ? "" : "s", 100 * lost, accuracies.text(), without.text(), std::get<2>(same)));
  }
  return warnings;
}

}  // namespace echelon::inline report
