// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/report/made_record.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/hash_rng.hpp"
#include "report/compare/student.hpp"

namespace echelon::test {
namespace {

// Returns normal scores of mean 0 and standard deviation 1 (n - 1 in the denominator), in the order of the stream.
std::vector<double> scores(int n, const HashRng& stream) {
  std::vector<double> z;
  for (int i = 0; i < n; ++i) z.push_back(student_quantile((i + 0.5) / n, std::numeric_limits<double>::infinity()));
  double squares = 0;
  for (const double value : z) squares += value * value;
  if (n > 1)
    for (double& value : z) value /= std::sqrt(squares / (n - 1));
  for (int i = n - 1; i > 0; --i)
    std::swap(z[static_cast<std::size_t>(i)],
              z[stream.below(static_cast<std::uint64_t>(i), static_cast<std::uint64_t>(i) + 1)]);
  return z;
}

}  // namespace

Made& Made::rate(double samples_per_s, double noise) { return rate_ = samples_per_s, rate_noise_ = noise, *this; }
Made& Made::accuracy(double mean, double noise) { return accuracy_ = mean, accuracy_noise_ = noise, *this; }
Made& Made::loss(double mean, double noise) { return loss_ = mean, loss_noise_ = noise, *this; }
Made& Made::seconds(double to_goal, double noise) { return seconds_ = to_goal, seconds_noise_ = noise, *this; }
Made& Made::reached(int repetitions) { return reached_ = repetitions, *this; }
Made& Made::diverged(int repetitions) { return diverged_ = repetitions, *this; }
Made& Made::failed(int repetitions) { return failed_ = repetitions, *this; }
Made& Made::repetitions(int n) { return repetitions_ = n, *this; }
Made& Made::samples(double trained) { return samples_ = trained, *this; }
Made& Made::hosts(int n) { return hosts_ = n, *this; }
Made& Made::servers(int n) { return servers_ = n, *this; }
Made& Made::codec(std::string name) { return codec_ = std::move(name), *this; }
Made& Made::strategy(std::string name) { return strategy_ = std::move(name), *this; }
Made& Made::environment(std::string name) { return environment_ = std::move(name), *this; }
Made& Made::paced() { return paced_ = true, *this; }
Made& Made::label(std::string name) { return label_ = std::move(name), *this; }
Made& Made::curve(std::vector<Evaluation> evaluations) { return curve_ = std::move(evaluations), *this; }

Setting Made::setting(int repetitions_of_study) const {
  const int n = repetitions_ >= 0 ? repetitions_ : repetitions_of_study;
  Setting s;
  s.label = label_;
  s.environment = environment_;
  s.all_ranks = ranks_;
  s.row.ranks = ranks_ - servers_;
  s.row.servers = servers_;
  s.row.hosts = hosts_;
  s.row.codec = codec_;
  s.row.strategy = strategy_;
  s.row.paced = paced_;
  s.row.global_batch = 64;
  s.row.test_accuracy = paced_ ? kUnknown : accuracy_;
  const HashRng stream = HashRng(1, label_ + "@" + environment_).at(static_cast<std::uint64_t>(ranks_));
  const std::vector<double> of_rate = scores(n, stream.at(1)), of_accuracy = scores(n, stream.at(2)),
                            of_loss = scores(n, stream.at(3)), of_seconds = scores(n, stream.at(4));
  for (int i = 0; i < n; ++i) {
    const auto at = static_cast<std::size_t>(i);
    Repetition r{.repeat = i + 1, .seed = static_cast<std::uint64_t>(i) + 1, .attempt = ""};
    if (i < diverged_) {
      r.outcome = echelon::Outcome::diverged;
      r.code = 5;
    } else if (i < diverged_ + failed_) {
      r.outcome = echelon::Outcome::failed;
      r.code = 1;
    } else {
      r.samples_per_s = rate_ * std::exp(rate_noise_ * of_rate[at]);
      r.samples = samples_;
      r.wall_s = samples_ / r.samples_per_s;
      r.curve = curve_;
      if (!paced_) {
        r.test_accuracy = accuracy_ + accuracy_noise_ * of_accuracy[at];
        r.test_loss = loss_ + loss_noise_ * of_loss[at];
        const bool gets_there = reached_ < 0 || i - diverged_ - failed_ < reached_;
        if (gets_there && !std::isnan(seconds_)) {
          r.seconds_to_target = seconds_ * std::exp(seconds_noise_ * of_seconds[at]);
          r.samples_to_target = rate_ * r.seconds_to_target;
        }
      }
    }
    s.repetitions.push_back(std::move(r));
  }
  return s;
}

Evidence made_record(int repetitions, const std::vector<Made>& settings, const Asked& asked) {
  Evidence evidence{
      .goal = asked.goal, .cost = asked.cost, .rules = asked.rules, .settings = {}, .controls = asked.controls};
  for (const Made& made : settings) evidence.settings.push_back(made.setting(repetitions));
  for (Setting& s : evidence.settings)
    for (Repetition& r : s.repetitions) {
      if (asked.machine.empty()) continue;
      const double factor = asked.machine.at(static_cast<std::size_t>(r.repeat) - 1);
      r.samples_per_s *= factor;
      r.wall_s /= factor;
      r.seconds_to_target /= factor;
    }
  complete(evidence);
  return evidence;
}

}  // namespace echelon::test
