// SPDX-License-Identifier: Apache-2.0
#include "exchange/allreduce/autotune.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <sstream>

#include "base/check.hpp"
#include "base/clock.hpp"
#include "base/cores.hpp"
#include "base/error.hpp"
#include "base/text.hpp"
#include "comm/collective/algorithms.hpp"
#include "comm/collective/plan_time.hpp"
#include "comm/group.hpp"
#include "comm/link_probe.hpp"
#include "exchange/allreduce_request.hpp"
#include "exchange/buckets.hpp"

namespace echelon::inline exchange {
namespace {

constexpr std::size_t kTried = 4;  // number of the cheapest candidates that are measured
constexpr double kNear = 1.1;      // within this factor a time counts as equal to the best
constexpr double kTrial_s = 0.5;   // at most, per candidate, after two runs
constexpr int kMostRuns = 20;
constexpr double kSegments_kb[] = {64, 256, 1024};
constexpr double kBuckets_mb[] = {0.25, 1, 4, 16, 64};
constexpr std::int64_t kInFlight[] = {2, 4, 8, 16, 32};
constexpr std::int64_t kMostHelpers = 8;
constexpr double kFaster = 1.05;         // a measured choice must beat the config's by this factor
constexpr double kMostNaive = 64 << 20;  // bytes of extra memory for `naive`

struct Candidate {
  ExchangeConfig exchange;
  double priced_s = -1, measured_s = -1;  // -1: not priced, not measured
};

class Tuner {
 public:
  Tuner(const ExchangeConfig& config, Engine& engine, int first_channel, const ParameterSet& parameters, DType dtype)
      : config_(config),
        engine_(engine),
        group_(engine, first_channel),
        first_channel_(first_channel),
        parameters_(parameters),
        dtype_(dtype),
        data_(static_cast<std::size_t>(parameters.elems()) * size_of(dtype)) {}

  Tuned run() {
    const Network network = probe_network(engine_, first_channel_);
    std::vector<Candidate> tried = cheapest(network);
    for (Candidate& candidate : tried) candidate.measured_s = measure(candidate.exchange, true);
    const Candidate& best = best_of(tried);
    std::vector<Candidate> sized = by_bucket(best.exchange);
    for (Candidate& candidate : sized) candidate.measured_s = measure(candidate.exchange, false);
    const Candidate sizes_chosen = smallest_near(sized);
    const std::vector<Candidate> driven = by_engine(sizes_chosen.exchange);
    const Candidate& chosen = driven.empty() ? sizes_chosen : first_unless_slower(driven);

    Tuned tuned{.exchange = with_choice(config_, from_rank_0(choice_text(chosen.exchange))), .report = {}};
    if (engine_.rank() == 0) tuned.report = report(network, tried, sized, driven, tuned.exchange);
    return tuned;
  }

 private:
  std::vector<ArenaRange> buckets(const ExchangeConfig& exchange) const {
    return make_buckets(parameters_, size_of(dtype_), exchange.bucket_mb * 1024 * 1024);
  }
  std::int64_t largest_bucket() const {
    std::int64_t most = 0;
    for (const ArenaRange& bucket : buckets(config_)) most = std::max(most, bucket.elems());
    return most;
  }
  double bytes_of(std::int64_t elems) const {
    return static_cast<double>(elems) * static_cast<double>(size_of(dtype_));
  }

  // Whether there are several hosts, some with several ranks.
  bool layered() const {
    const auto host_count = engine_.transport().host_names().size();
    return host_count > 1 && host_count < engine_.transport().hosts().size();
  }

  // Returns every algorithm with a price, each with all segment sizes that make a difference here.
  std::vector<Candidate> candidates() const {
    std::vector<Candidate> all;
    const auto add = [&](ExchangeConfig exchange) {
      for (const double segment_kb : kSegments_kb) {
        exchange.segment_kb = segment_kb;
        all.push_back({.exchange = exchange});
        if (!algorithm_traits(exchange.algorithm).reads.contains("segment_kb") ||
            segment_kb * 1024 >= bytes_of(largest_bucket()))
          break;
      }
    };
    for (const std::string& name : allreduce_names()) {
      ExchangeConfig exchange = config_;
      exchange.algorithm = name;
      const AlgorithmTraits traits = algorithm_traits(name);
      if (traits.library || traits.in_memory || (traits.nests && !layered())) continue;
      if (name == "naive" && bytes_of(largest_bucket()) * engine_.size() > kMostNaive) continue;
      if (!traits.nests) {
        add(exchange);
        continue;
      }
      for (const char* inner : {"ring", "server", "binomial"})
        for (const char* outer : {"ring", "halving_doubling"}) {
          exchange.inner = inner, exchange.outer = outer;
          add(exchange);
        }
    }
    return all;
  }

  double price(const ExchangeConfig& exchange, const Network& network) const {
    const std::vector<int>& hosts = engine_.transport().hosts();
    AllreduceRequest request = allreduce_request(exchange, hosts, dtype_);
    request.elems = largest_bucket();
    std::vector<std::shared_ptr<const Plan>> plans;
    for (; request.rank < request.ranks; ++request.rank) plans.push_back(make_allreduce(exchange.algorithm, request));
    return plan_time_s(plans, hosts, network, size_of(dtype_));
  }

  // Rank 0 prices the candidates. Of one algorithm at most two segment sizes are tried, and one if both cost the same.
  std::vector<Candidate> cheapest(const Network& network) {
    std::string list;
    if (engine_.rank() == 0) {
      std::vector<Candidate> all = candidates();
      for (Candidate& candidate : all) candidate.priced_s = price(candidate.exchange, network);
      std::stable_sort(all.begin(), all.end(),
                       [](const Candidate& a, const Candidate& b) { return a.priced_s < b.priced_s; });
      std::vector<std::string> taken;
      double last_s = -1;
      for (const Candidate& candidate : all) {
        const std::string& name = candidate.exchange.algorithm;
        const bool same = !taken.empty() && taken.back() == name && candidate.priced_s == last_s;
        if (taken.size() == kTried) break;
        if (same || std::count(taken.begin(), taken.end(), name) == 2) continue;
        taken.push_back(name);
        last_s = candidate.priced_s;
        list += fmt::format("{} {}\n", candidate.priced_s, choice_text(candidate.exchange));
      }
    }
    std::vector<Candidate> tried;
    std::istringstream lines(from_rank_0(list));
    for (double priced_s = 0; lines >> priced_s;) {
      std::string choice;
      std::getline(lines >> std::ws, choice);
      tried.push_back({.exchange = with_choice(config_, choice), .priced_s = priced_s});
    }
    const auto add = [&](const char* algorithm) {
      tried.push_back({.exchange = config_});
      tried.back().exchange.algorithm = algorithm;
    };
    const Transport& transport = engine_.transport();
    const bool shares = transport.shares_channels();
    if (shares && transport.host_names().size() == 1) add("shared");
    if (shares && layered()) {
      add("hierarchical");
      tried.back().exchange.inner = "shared";
    }
    if (transport.has_library_allreduce()) add("mpi");
    return tried;
  }

  // Returns the seconds until all buckets, or only the largest one, are summed: the median run on the slowest rank.
  double measure(const ExchangeConfig& exchange, bool largest_alone) {
    engine_.limit(static_cast<int>(exchange.messages_in_flight), static_cast<int>(exchange.helpers));
    AllreduceRequest request = allreduce_request(exchange, engine_.transport().hosts(), dtype_);
    request.rank = engine_.rank();
    std::vector<Job> jobs;
    for (const ArenaRange& bucket : buckets(exchange)) {
      if (largest_alone && (bucket.elems() < largest_bucket() || !jobs.empty())) continue;
      request.elems = bucket.elems();
      Job job;
      job.plan = make_allreduce(exchange.algorithm, request);
      job.data = data_.data() + static_cast<std::size_t>(bucket.begin) * size_of(dtype_);
      job.dtype = dtype_;
      job.channel = first_channel_ + static_cast<int>(jobs.size());
      jobs.push_back(std::move(job));
    }
    (void)once_s(jobs);
    const double first_s = group_.max(once_s(jobs));
    const int runs = std::clamp(static_cast<int>(kTrial_s / std::max(first_s, 1e-9)), 1, kMostRuns);
    std::vector<double> times;
    for (int i = 0; i < runs; ++i) times.push_back(once_s(jobs));
    std::nth_element(times.begin(), times.begin() + runs / 2, times.end());
    return group_.max(times[static_cast<std::size_t>(runs / 2)]);
  }

  double once_s(const std::vector<Job>& jobs) {
    group_.barrier();
    const double start_s = now_s();
    std::vector<Ticket> tickets;
    for (const Job& job : jobs) tickets.push_back(engine_.submit(job));
    for (const Ticket& ticket : tickets) ticket.wait();
    return now_s() - start_s;
  }

  static const Candidate& best_of(const std::vector<Candidate>& tried) {
    const auto seconds = [](const Candidate& c) { return c.measured_s * (c.exchange.algorithm == "mpi" ? kNear : 1); };
    return *std::min_element(tried.begin(), tried.end(),
                             [&](const Candidate& a, const Candidate& b) { return seconds(a) < seconds(b); });
  }

  // Returns this choice with every bucket size that leads to another number of buckets.
  std::vector<Candidate> by_bucket(const ExchangeConfig& exchange) const {
    std::vector<Candidate> all;
    std::size_t last = 0;
    for (const double bucket_mb : kBuckets_mb) {
      ExchangeConfig sized = exchange;
      sized.bucket_mb = bucket_mb;
      if (buckets(sized).size() == last) continue;
      last = buckets(sized).size();
      all.push_back({.exchange = sized});
    }
    return all;
  }

  // Measures the config's own settings first, then other numbers of messages in flight, then numbers of helpers with
  // the best of those. A rank has room for as many helpers as it has cores beyond one.
  std::vector<Candidate> by_engine(const ExchangeConfig& exchange) {
    const AlgorithmTraits traits = algorithm_traits(exchange.algorithm);
    if (!traits.reads.contains("messages_in_flight")) return {};
    std::vector<Candidate> all;
    const auto add = [&](std::int64_t messages, std::int64_t helpers) {
      all.push_back({.exchange = exchange});
      all.back().exchange.messages_in_flight = messages, all.back().exchange.helpers = helpers;
      all.back().measured_s = measure(all.back().exchange, false);
    };
    add(exchange.messages_in_flight, exchange.helpers);
    for (const std::int64_t messages : kInFlight)
      if (messages != exchange.messages_in_flight) add(messages, exchange.helpers);
    const std::int64_t messages = first_unless_slower(all).exchange.messages_in_flight;
    for (std::int64_t helpers = 1; helpers <= most_helpers(); helpers *= 2)
      if (helpers != exchange.helpers) add(messages, helpers);
    return all;
  }

  // The cores of the rank that has the fewest, minus one for its engine; at most kMostHelpers.
  std::int64_t most_helpers() {
    const std::vector<int>& machines = engine_.transport().machines();
    const auto here = std::count(machines.begin(), machines.end(), machines[static_cast<std::size_t>(engine_.rank())]);
    const double spare = static_cast<double>(usable_cores()) / static_cast<double>(here) - 1;
    return std::min(kMostHelpers, static_cast<std::int64_t>(-group_.max(-std::floor(spare))));
  }

  static const Candidate& first_unless_slower(const std::vector<Candidate>& all) {
    const auto best = std::min_element(
        all.begin(), all.end(), [](const Candidate& a, const Candidate& b) { return a.measured_s < b.measured_s; });
    return all.front().measured_s > kFaster * best->measured_s ? *best : all.front();
  }

  static const Candidate& smallest_near(const std::vector<Candidate>& sized) {
    double best_s = std::numeric_limits<double>::infinity();
    for (const Candidate& candidate : sized) best_s = std::min(best_s, candidate.measured_s);
    return *std::find_if(sized.begin(), sized.end(),
                         [&](const Candidate& candidate) { return candidate.measured_s <= kNear * best_s; });
  }

  std::string from_rank_0(const std::string& text) {
    return group_.gather(engine_.rank() == 0 ? text : std::string()).front();
  }

  std::string report(const Network& network, const std::vector<Candidate>& tried, const std::vector<Candidate>& sized,
                     const std::vector<Candidate>& driven, const ExchangeConfig& chosen) const {
    const auto link = [](const Link& l) {
      return fmt::format("{} and {}/s", seconds_text(l.latency_s), bytes_text(l.bytes_per_s));
    };
    const auto hosts = engine_.transport().host_names().size();
    std::string text = "measured ";
    if (hosts < static_cast<std::size_t>(engine_.size()))
      text += fmt::format(" inside a host {};", link(network.inside));
    if (hosts > 1) text += fmt::format(" between hosts {};", link(network.between));
    text += fmt::format(" adding {}/s\n", bytes_text(network.add_bytes_per_s));
    Table plans(
        {fmt::format("one bucket of {}", bytes_text(bytes_of(largest_bucket()))), "segment", "priced", "measured"});
    for (const Candidate& c : tried)
      plans.row({algorithm_text(c.exchange, engine_.size()),
                 c.priced_s < 0 ? "-" : bytes_text(c.exchange.segment_kb * 1024),
                 c.priced_s < 0 ? "-" : seconds_text(c.priced_s), seconds_text(c.measured_s)});
    Table sizes({"bucket of at least", "buckets", "whole gradient"});
    for (const Candidate& c : sized)
      sizes.row({bytes_text(c.exchange.bucket_mb * 1024 * 1024),
                 count_text(static_cast<std::int64_t>(buckets(c.exchange).size())), seconds_text(c.measured_s)});
    std::string sizes_text = sizes.text();
    Table ways({"messages in flight", "helpers", "whole gradient"});
    for (const Candidate& c : driven)
      ways.row({count_text(c.exchange.messages_in_flight), count_text(c.exchange.helpers), seconds_text(c.measured_s)});
    if (!driven.empty()) sizes_text += "\n" + ways.text();
    return fmt::format("{}\n{}\n{}\nchosen    {}\n", text, plans.text(), sizes_text, choice_text(chosen));
  }

  const ExchangeConfig& config_;
  Engine& engine_;
  Group group_;
  int first_channel_;
  const ParameterSet& parameters_;
  DType dtype_;
  std::vector<std::byte> data_;  // zeros, so that repeated sums stay zeros
};

}  // namespace

Tuned tune_exchange(const ExchangeConfig& config, Engine& engine, int first_channel, const ParameterSet& parameters,
                    DType dtype) {
  if (engine.size() == 1 || parameters.elems() == 0) {
    Tuned alone{.exchange = config, .report = "one replica: nothing to exchange\n"};
    alone.exchange.algorithm = ExchangeConfig().algorithm;
    return alone;
  }
  return Tuner(config, engine, first_channel, parameters, dtype).run();
}

std::string choice_text(const ExchangeConfig& exchange) {
  return fmt::format("{} inner={} outer={} segment_kb={} bucket_mb={} messages_in_flight={} helpers={}",
                     exchange.algorithm, exchange.inner, exchange.outer, exchange.segment_kb, exchange.bucket_mb,
                     exchange.messages_in_flight, exchange.helpers);
}

ExchangeConfig with_choice(ExchangeConfig exchange, const std::string& choice) {
  std::istringstream words(choice);
  const auto value = [&](const std::string& key) {
    std::string word;
    words >> word;
    if (!word.starts_with(key)) throw DataError(fmt::format("\"{}\" is not a choice of an exchange", choice));
    return word.substr(key.size());
  };
  exchange.algorithm = value("");
  exchange.inner = value("inner=");
  exchange.outer = value("outer=");
  std::istringstream(value("segment_kb=")) >> exchange.segment_kb;
  std::istringstream(value("bucket_mb=")) >> exchange.bucket_mb;
  if ((words >> std::ws).eof()) return exchange;
  std::istringstream(value("messages_in_flight=")) >> exchange.messages_in_flight;
  std::istringstream(value("helpers=")) >> exchange.helpers;
  return exchange;
}

}  // namespace echelon::inline exchange
