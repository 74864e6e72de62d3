// SPDX-License-Identifier: Apache-2.0
#include "planner/prediction.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/error.hpp"
#include "exchange/entry.hpp"

namespace echelon::inline planner {
namespace {

constexpr int kMostReplicas = 1'000'000;

struct Variant {
  double rate = 1, latency = 1, widened = 1;
  bool codec = true;
};

// The bandwidth between hosts under the load of this exchange, as a fraction of that of a single pair. A plan that uses
// the cards for a part of its time reaches the bandwidth under load only if that part does.
double share_under_load(const NetworkModel& network, const ExchangeConfig& exchange, int hosts) {
  const bool by_plan = strategy_traits(exchange.strategy).all_reduces() &&
                       !strategy_entry(exchange.strategy).to_neighbours && route_of(exchange) == CodecRoute::any &&
                       !algorithm_traits(exchange.algorithm).measured;
  if (!by_plan) return network.loaded_share(hosts, false);
  const AllreduceModel& model = allreduce_model(exchange.algorithm);
  const double share = network.loaded_share(hosts, model.sends_to_one);
  return share < 1 ? std::min(1.0, share / model.used) : share;
}

// A config with its mesh and a number of replicas, under one variant of the uncertain quantities.
class Case {
 public:
  Case(const ForecastRequest& request, int replicas) : request_(request), replicas_(replicas) {
    step_ = request.strong ? request.step.of_samples(request.step.samples / replicas) : request.step;
    group_ = model_group(request.config.parallel);
  }

  int group() const { return group_; }
  const StepModel& step() const { return step_; }
  bool simulated() const { return simulated_; }
  double error() const { return error_; }

  double step_s(const Variant& variant) {
    const int hosts = (replicas_ * group_ + request_.network.ranks_per_host - 1) / request_.network.ranks_per_host;
    const double share = share_under_load(request_.network, request_.config.exchange, hosts);
    PlanPricer& pricer = request_.pricers.at(variant.rate * share, variant.latency);
    pricer.begin();
    StrategySetting setting{.config = request_.config,
                            .work = request_.work,
                            .step = step_,
                            .pricer = pricer,
                            .codec_takes_time = variant.codec};
    setting.step.variation = step_.variation.widened(variant.widened);
    const double seconds = strategy_step_s(setting, replicas_);
    simulated_ = pricer.all_simulated();
    error_ = pricer.error();
    return seconds;
  }

 private:
  const ForecastRequest& request_;
  int replicas_, group_ = 1;
  StepModel step_;
  bool simulated_ = false;
  double error_ = 0;
};

int most_with(const std::vector<ForecastRow>& rows, double efficiency) {
  int most = 0;
  for (const ForecastRow& row : rows)
    if (row.efficiency >= efficiency) most = std::max(most, row.replicas);
  return most;
}

// Interpolates the rate between two rows as a power of k: `gain` is the factor per doubling.
int knee_of(const std::vector<ForecastRow>& rows) {
  int knee = 0;
  for (std::size_t i = 0; i + 1 < rows.size(); ++i) {
    const double doublings = std::log2(static_cast<double>(rows[i + 1].replicas) / rows[i].replicas);
    const double gain = std::pow(rows[i + 1].samples_per_s / rows[i].samples_per_s, 1 / doublings);
    if (gain < 1.5) return rows[i].replicas;
    knee = rows[i + 1].replicas;
  }
  return knee;
}

int whole_number(const std::string& text, const std::string& all) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 1 || value > kMostReplicas)
    throw ConfigError(
        fmt::format("--replicas {}: must be numbers from 1 to {}, such as 8..10000 or 1,2,4", all, kMostReplicas));
  return value;
}

}  // namespace

PlanPricer& Pricers::at(double rate, double latency) {
  const auto found = known_.find({rate, latency});
  if (found != known_.end()) return found->second;
  Network network = network_.scaled(rate, latency);
  // The ranks of one model group send their parts at the same time, through one card if they share a host.
  network.between.bytes_per_s /= std::min(group_, network_.ranks_per_host);
  return known_.emplace(std::pair(rate, latency), PlanPricer(network, std::max(1, network_.ranks_per_host / group_)))
      .first->second;
}

int model_group(const ParallelConfig& parallel) {
  return static_cast<int>(parallel.pipeline * parallel.tensor * parallel.space);
}

double overlap_share(ForecastRequest request, int replicas, double measured_s) {
  const auto step_s = [&](double overlap) {
    request.step.overlap = overlap;
    return Case(request, replicas).step_s({});
  };
  const double hiding_s = step_s(1), bare_s = step_s(0);
  return bare_s > hiding_s ? std::clamp((bare_s - measured_s) / (bare_s - hiding_s), 0.0, 1.0) : 1;
}

ForecastRow forecast_row(const ForecastRequest& request, int replicas) {
  Case one(request, replicas);
  ForecastRow row{.replicas = replicas, .ranks = replicas * one.group()};
  const ExchangeConfig& exchange = request.config.exchange;
  if (strategy_traits(exchange.strategy).has_servers()) row.ranks += static_cast<int>(exchange.server.ranks);
  row.hosts = (row.ranks + request.network.ranks_per_host - 1) / request.network.ranks_per_host;
  row.step_s = one.step_s({});
  row.simulated = one.simulated();
  row.error = one.error();
  row.compute_s = one.step().total_s();
  const bool coded = is_coded(exchange) || strategy_entry(exchange.strategy).always_codes;
  row.codec_s = coded ? std::max(0.0, row.step_s - one.step_s({.codec = false})) : 0;
  row.skew_s = one.step().variation.varies() ? std::max(0.0, row.step_s - one.step_s({.widened = 0})) : 0;
  row.exchange_s = std::max(0.0, row.step_s - row.compute_s - row.codec_s - row.skew_s);
  row.compute_s = row.step_s - row.codec_s - row.skew_s - row.exchange_s;
  const std::int64_t measured = one.step().variation.measured_steps();
  const double wider = measured > 0 && replicas > measured ? 1.5 : 1.25, unknown = request.network.uncertainty;
  row.low_s = row.high_s = row.step_s;
  if (request.ranges) {
    row.low_s = std::min(row.step_s, one.step_s({.rate = 1 + unknown, .latency = 0.5, .widened = 1 / wider}));
    row.high_s = std::max(row.step_s, one.step_s({.rate = 1 - unknown, .latency = 2, .widened = wider}));
  }
  row.low_s -= row.error * row.exchange_s, row.high_s += row.error * row.exchange_s;
  row.samples = one.step().samples * replicas;
  row.samples_per_s = row.samples / row.step_s;
  const double alone = request.step.samples / request.step.total_s();
  row.efficiency = row.samples_per_s / (replicas * alone);
  return row;
}

Forecast forecast(const ForecastRequest& request) {
  Forecast all{.title = strategy_title(request.config.exchange), .rows = {}};
  for (const int replicas : request.replicas) all.rows.push_back(forecast_row(request, replicas));
  all.knee = knee_of(all.rows);
  all.most_at_90 = most_with(all.rows, 0.9), all.most_at_50 = most_with(all.rows, 0.5);
  return all;
}

std::vector<int> replica_list(const std::string& text) {
  std::vector<int> all;
  if (const std::size_t dots = text.find(".."); dots != std::string::npos) {
    const int first = whole_number(text.substr(0, dots), text), last = whole_number(text.substr(dots + 2), text);
    if (first > last) throw ConfigError(fmt::format("--replicas {}: the range must increase", text));
    for (std::int64_t k = first; k < last; k *= 2) all.push_back(static_cast<int>(k));
    all.push_back(last);
    return all;
  }
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    all.push_back(whole_number(text.substr(begin, end - begin), text));
    begin = end + 1;
  }
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  return all;
}

}  // namespace echelon::inline planner
