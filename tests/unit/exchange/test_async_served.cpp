// SPDX-License-Identifier: Apache-2.0
// Effects of updates on the weights of an asynchronous server: delay compensation worked out by hand, and random
// updates by all rules against a plain loop over single values in double; the same bits out of the host's reach.
#include <catch2/catch.hpp>
#include <cmath>
#include <map>
#include <vector>

#include "base/check.hpp"
#include "base/hash_rng.hpp"
#include "exchange/asynchronous/served.hpp"
#include "tests/support/async_setting.hpp"
#include "tests/support/far_device.hpp"
#include "tests/support/schedules.hpp"

namespace echelon {
namespace {

using namespace test;

double compensated(const DelayCompensation& how, double value, double rate, double drift, double& mean_square) {
  const double weights = 5 + drift, pulled = 5;
  double out = 0;
  host_vector_ops().compensate(DType::f64, how,
                               {.out = &out,
                                .values = &value,
                                .rate = rate,
                                .weights = &weights,
                                .pulled = &pulled,
                                .mean_square = &mean_square},
                               1);
  return out;
}

// One value of the model, updated as the definitions say.
struct PlainValue {
  double weight = 0, sum = 0, mean_square = 0, first = 0, second = 0;  // first, second: states of the rule
  std::vector<double> pulled;                                          // one per worker
};

struct Setting {
  std::string rule = "sgd";
  AsyncServing serving;
  OptimiserConfig optimiser;
};

class PlainServer {
 public:
  PlainServer(const Setting& setting, const ParameterSet& parameters, const std::vector<double>& weights)
      : setting_(setting), parameters_(parameters), values_(weights.size()) {
    for (std::size_t i = 0; i < weights.size(); ++i) {
      values_[i].weight = weights[i];
      values_[i].pulled.assign(static_cast<std::size_t>(setting.serving.workers), weights[i]);
    }
  }

  void apply(ArenaRange range, int worker, const AsyncUpdate& update, double rate, const std::vector<double>& values) {
    double& rates = rates_[range.begin];
    rates += update.factor * rate;
    for (std::int64_t i = range.begin; i < range.end; ++i) {
      PlainValue& value = values_[static_cast<std::size_t>(i)];
      double sent = values[static_cast<std::size_t>(i - range.begin)];
      const bool statistic = is_statistic(i), gradients = setting_.serving.optimiser.has_value();
      const DelayCompensation& how = setting_.serving.compensation;
      if (how.on() && !statistic && rate > 0) {
        double gradient = gradients ? sent : -sent / rate, lambda = how.lambda;
        if (how.decay > 0) {
          value.mean_square = how.decay * value.mean_square + (1 - how.decay) * gradient * gradient;
          lambda /= std::sqrt(value.mean_square + 1e-7);
        }
        gradient += lambda * gradient * gradient * (value.weight - value.pulled[static_cast<std::size_t>(worker)]);
        sent = gradients ? gradient : -rate * gradient;
      }
      value.sum += update.factor * (gradients && !statistic ? rate : 1) * sent;
    }
    if (update.new_version) flush(range);
  }

  void flush(ArenaRange range) {
    const double rate = std::exchange(rates_[range.begin], 0);
    const std::int64_t update = ++versions_[range.begin];
    for (std::int64_t i = range.begin; i < range.end; ++i) {
      PlainValue& value = values_[static_cast<std::size_t>(i)];
      const double sum = std::exchange(value.sum, 0);
      if (!setting_.serving.optimiser || is_statistic(i))
        value.weight += sum;
      else if (rate > 0)
        step(value, sum / rate, rate, decays(i) ? setting_.optimiser.weight_decay : 0, static_cast<double>(update));
    }
  }

  void answer(ArenaRange range, int worker) {
    for (std::int64_t i = range.begin; i < range.end; ++i) {
      PlainValue& value = values_[static_cast<std::size_t>(i)];
      value.pulled[static_cast<std::size_t>(worker)] = value.weight;
    }
  }
  double weight(std::int64_t i) const { return values_[static_cast<std::size_t>(i)].weight; }

 private:
  bool is_statistic(std::int64_t i) const { return i >= parameters_[1].begin && i < parameters_[1].end(); }
  bool decays(std::int64_t i) const { return i < parameters_[0].end(); }

  void step(PlainValue& value, double gradient, double rate, double decay, double update) const {
    const OptimiserConfig& o = setting_.optimiser;
    gradient += decay * value.weight;
    if (o.rule == "sgd") {
      value.first = o.momentum * value.first + gradient;
      value.weight -= rate * value.first;
      return;
    }
    value.first = o.beta1 * value.first + (1 - o.beta1) * gradient;
    value.second = o.beta2 * value.second + (1 - o.beta2) * gradient * gradient;
    const double first = value.first / (1 - std::pow(o.beta1, update));
    const double second = value.second / (1 - std::pow(o.beta2, update));
    value.weight -= rate * first / (std::sqrt(second) + o.epsilon);
  }

  Setting setting_;
  const ParameterSet& parameters_;
  std::vector<PlainValue> values_;
  std::map<std::int64_t, double> rates_;  // by range
  std::map<std::int64_t, std::int64_t> versions_;
};

// Returns all that a server keeps of its buckets, as its device gives it.
std::vector<double> all_values(const AsyncServed& served, const std::vector<ArenaRange>& own, bool adapts) {
  std::vector<double> all;
  for (int b = 0; b < static_cast<int>(own.size()); ++b) {
    const auto room = [&] {
      all.resize(all.size() + at(own[at(b)].elems()));
      return all.data() + all.size() - at(own[at(b)].elems());
    };
    served.read_weights(b, room());
    for (int s = 0; s < served.states(); ++s) served.read_state(b, s, room());
    if (adapts) served.read_mean_square(b, room());
  }
  return all;
}

// Runs a few hundred random updates in a random setting, on the host and out of its reach; returns the largest distance
// of a weight, relative to the size of the weights.
double worst_distance(std::uint64_t seed) {
  const HashRng random(seed, "async served");
  std::uint64_t draws = 0;
  const auto below = [&](std::uint64_t bound) { return static_cast<std::int64_t>(random.below(draws++, bound)); };
  const auto uniform = [&] { return 2 * random.uniform(draws++) - 1; };

  Setting setting;
  setting.optimiser.rule = below(2) == 0 ? "sgd" : "adam";
  setting.optimiser.weight_decay = below(2) == 0 ? 0 : 0.01;
  setting.serving.workers = 1 + static_cast<int>(below(4));
  const std::int64_t soft = 1 + below(4);
  setting.serving.adds_up = soft > 1;
  if (below(2) == 0) setting.serving.compensation = {.lambda = 0.3, .decay = below(2) == 0 ? 0 : 0.9};
  if (below(2) == 0) setting.serving.optimiser = setting.optimiser;

  const ParameterSet parameters = normed_layers(1 + below(70), 1 + below(9), 1 + below(70));
  const std::int64_t cut = 1 + below(static_cast<std::uint64_t>(parameters.elems() - 1));
  const std::vector<ArenaRange> own = {{cut, parameters.elems()}, {0, cut}};
  std::vector<double> weights(static_cast<std::size_t>(parameters.elems()));
  for (double& weight : weights) weight = uniform();
  AsyncServed served(open_device("reference", {}), parameters, DType::f64, own, setting.serving);
  AsyncServed far(make_far_device(), parameters, DType::f64, own, setting.serving);
  for (AsyncServed* server : {&served, &far}) server->begin(weights.data());
  PlainServer plain(setting, parameters, weights);

  std::int64_t pending[2] = {0, 0};
  for (int t = 0; t < 300; ++t) {
    const int b = static_cast<int>(below(2)), worker = static_cast<int>(below(setting.serving.workers));
    const ArenaRange range = own[static_cast<std::size_t>(b)];
    const double rate = below(8) == 0 ? 0 : 0.02 * (1 + static_cast<double>(below(3)));
    std::vector<double> values(static_cast<std::size_t>(range.elems()));
    for (double& value : values) value = (setting.serving.optimiser ? 1 : rate) * uniform();
    AsyncUpdate update{.factor = 0.25 * static_cast<double>(1 + below(4)), .new_version = ++pending[b] == soft};
    if (update.new_version) pending[b] = 0;
    plain.apply(range, worker, update, rate, values);
    std::vector<double> sent = values, answered(values.size()), answered_far(values.size());
    served.apply(b, worker, update, rate, values.data());
    far.apply(b, worker, update, rate, sent.data());
    std::fill(sent.begin(), sent.end(), 1e9);  // the message's owner reuses its memory
    if (below(20) == 0 && pending[b] > 0) {
      pending[b] = 0;
      plain.flush(range);
      served.flush(b);
      far.flush(b);
    }
    plain.answer(range, worker);
    served.answer(b, worker, answered.data());
    far.answer(b, worker, answered_far.data());
    ECHELON_CHECK(answered == answered_far, "answers of bucket {}", b);
  }
  const bool adapts = setting.serving.compensation.adapts();
  ECHELON_CHECK(all_values(served, own, adapts) == all_values(far, own, adapts), "other values out of reach");
  std::vector<double> found(weights.size());
  for (int b : {0, 1}) served.read_weights(b, found.data() + own[at(b)].begin);
  double worst = 0, size = 0;
  for (std::int64_t i = 0; i < parameters.elems(); ++i) {
    worst = std::max(worst, std::abs(found[at(i)] - plain.weight(i)));
    size = std::max(size, std::abs(plain.weight(i)));
  }
  return worst / size;
}

void run_updates(std::uint64_t seed) {
  const double worst = worst_distance(seed);
  ECHELON_CHECK(worst < 1e-10, "a distance of {}", worst);
}

}  // namespace

TEST_CASE("delay compensation by hand", "[exchange][asynchronous]") {
  double m = 0;
  // g = 2, W - W_pulled = 3: 2 + 0.5 * 4 * 3
  CHECK(compensated({.lambda = 0.5}, 2, 0, 3, m) == 8);
  CHECK(compensated({.lambda = 0.5}, -2, 0, 3, m) == 4);
  CHECK(compensated({.lambda = 0.5}, 2, 0, 0, m) == 2);
  // The same with the change of weights -0.125 g, so that the change becomes -0.125 * 8.
  CHECK(compensated({.lambda = 0.5}, -0.25, 0.125, 3, m) == -1);
  CHECK(m == 0);
  // m = 0.75 * 0 + 0.25 * 4 = 1, then 0.75 * 1 + 0.25 * 4
  CHECK(compensated({.lambda = 0.5, .decay = 0.75}, 2, 0, 3, m) == Approx(2 + 0.5 / std::sqrt(1 + 1e-7) * 12));
  CHECK(m == 1);
  CHECK(compensated({.lambda = 0.5, .decay = 0.75}, -0.25, 0.125, 3, m) ==
        Approx(-0.125 * (2 + 0.5 / std::sqrt(1.75 + 1e-7) * 12)));
  CHECK(m == 1.75);
}

TEST_CASE("what a server applies is what a plain loop over single values does", "[exchange][asynchronous]") {
  test::run_schedules(300, run_updates);
}
TEST_CASE("what a server applies is what a plain loop does, 20,000 times", "[exchange][asynchronous][.soak]") {
  test::run_schedules(20'000, run_updates);
}

}  // namespace echelon
