// SPDX-License-Identifier: Apache-2.0
#include "comm/links/link_faults.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "base/text.hpp"

namespace echelon::inline comm {
namespace {

constexpr double kSlowRate = 0.5, kSlowLatency = 3, kSlowLatencyAbove_s = 20e-6, kUneven = 1.5;

constexpr std::size_t kLeastLinks = 6;  // fewest links worth a comparison: those of three endpoints

// Links of one kind, and their endpoints ("players"): hosts, or the ranks of a host.
struct Kind {
  std::vector<int> ranks;  // by player
  std::vector<std::string> names;
};

// A quantile of the known values above 0. It is rounded to a neighbouring value: up if above the middle, else down. 0
// if there is no value.
double quantile_of(std::vector<double> values, double part) {
  std::erase_if(values, [](double v) { return !(v > 0); });
  if (values.empty()) return 0;
  const double place = part * static_cast<double>(values.size() - 1);
  const auto at = values.begin() + static_cast<std::ptrdiff_t>(part > 0.5 ? std::ceil(place) : std::floor(place));
  std::nth_element(values.begin(), at, values.end());
  return *at;
}

std::string rate_of(double bytes_per_s) { return bytes_text(bytes_per_s) + "/s"; }

class Finder {
 public:
  Finder(const LinkMatrix& links, const Kind& kind, double rate, double latency_s, LinkFaults& faults)
      : links_(links), kind_(kind), rate_(rate), latency_s_(latency_s), faults_(faults) {
    named_.assign(kind.ranks.size() * kind.ranks.size(), false);
  }

  void run() {
    const auto blocked = [&](std::size_t a, std::size_t b) { return rate(a, b) == 0; };
    const auto slow = [&](std::size_t a, std::size_t b) { return rate(a, b) > 0 && rate(a, b) < kSlowRate * rate_; };
    const auto late = [&](std::size_t a, std::size_t b) {
      const double s = latency(a, b);
      return s > kSlowLatency * latency_s_ && s > latency_s_ + kSlowLatencyAbove_s;
    };
    const auto no_answer = [](double) { return std::string("no answer in time"); };
    const auto slower = [&](double value) { return fmt::format("{}; others {}", rate_of(value), rate_of(rate_)); };
    const auto later = [&](double value) {
      return fmt::format("latency {}; others {}", seconds_text(value), seconds_text(latency_s_));
    };
    find(faults_.blocked, "is blocked", blocked, &Finder::rate, no_answer);
    if (rate_ > 0) find(faults_.slow, "is slow", slow, &Finder::rate, slower);
    const std::vector<bool> called_slow = named_;
    named_.assign(named_.size(), false);
    if (rate_ > 0) find(faults_.slow, "is late", late, &Finder::latency, later);
    find_uneven(called_slow);
  }

 private:
  using Test = std::function<bool(std::size_t, std::size_t)>;
  using Text = std::function<std::string(double)>;

  std::size_t players() const { return kind_.ranks.size(); }
  double rate(std::size_t a, std::size_t b) const {
    return links_.bytes_per_s[links_.at(kind_.ranks[a], kind_.ranks[b])];
  }
  double latency(std::size_t a, std::size_t b) const {
    return links_.latency_s[links_.at(kind_.ranks[a], kind_.ranks[b])];
  }
  std::vector<bool>::reference named(std::size_t a, std::size_t b) { return named_[a * players() + b]; }

  // Reports hosts whose links are at fault, then the links that no host explains.
  void find(std::vector<std::string>& out, const char* what, const Test& test,
            double (Finder::*value)(std::size_t, std::size_t) const, const Text& text) {
    for (const bool sends : {true, false})
      for (std::size_t a = 0; a < players(); ++a) {
        std::vector<double> values;
        for (std::size_t b = 0; b < players(); ++b)
          if (a != b && test(sends ? a : b, sends ? b : a) && !named(sends ? a : b, sends ? b : a))
            values.push_back((this->*value)(sends ? a : b, sends ? b : a));
        if (values.size() < 2 || 2 * values.size() <= players() - 1) continue;
        for (std::size_t b = 0; b < players(); ++b) {
          if (a == b || !test(sends ? a : b, sends ? b : a)) continue;
          named(sends ? a : b, sends ? b : a) = true;
          if (test(sends ? b : a, sends ? a : b) && (this->*value)(a, b) == (this->*value)(b, a))
            named(sends ? b : a, sends ? a : b) = true;  // blocked, or a latency: equal in both directions
        }
        out.push_back(fmt::format("{} {} {} {} of {} others: {}", kind_.names[a], what, sends ? "to" : "from",
                                  values.size(), players() - 1, text(quantile_of(values, 0.5))));
      }
    for (std::size_t a = 0; a < players(); ++a)
      for (std::size_t b = 0; b < players(); ++b) {
        if (a == b || !test(a, b) || named(a, b)) continue;
        const bool both = test(b, a) && !named(b, a);
        if (both) named(b, a) = true;
        out.push_back(fmt::format("{} {} {} {}: {}", kind_.names[a], both ? "<->" : "->", kind_.names[b], what,
                                  text((this->*value)(a, b))));
        named(a, b) = true;
      }
  }

  void find_uneven(const std::vector<bool>& called_slow) {
    for (std::size_t a = 0; a < players(); ++a)
      for (std::size_t b = 0; b < players(); ++b)
        if (a != b && rate(b, a) > 0 && rate(a, b) > kUneven * rate(b, a) && !called_slow[b * players() + a])
          faults_.slow.push_back(fmt::format("{} -> {} is faster than in the other direction: {}, back {}",
                                             kind_.names[a], kind_.names[b], rate_of(rate(a, b)), rate_of(rate(b, a))));
  }

  const LinkMatrix& links_;
  const Kind& kind_;
  double rate_, latency_s_;  // quartiles of the kind; 0: too few links
  LinkFaults& faults_;
  std::vector<bool> named_;
};

// Compares the links of each of `kinds` with the links of all of them.
void find_in(const LinkMatrix& links, const std::vector<Kind>& kinds, LinkFaults& faults) {
  std::vector<double> rates, latencies;
  for (const Kind& kind : kinds)
    for (const int a : kind.ranks)
      for (const int b : kind.ranks)
        if (a != b)
          rates.push_back(links.bytes_per_s[links.at(a, b)]), latencies.push_back(links.latency_s[links.at(a, b)]);
  const bool enough = rates.size() >= kLeastLinks;
  for (const Kind& kind : kinds)
    Finder(links, kind, enough ? quantile_of(rates, 0.75) : 0, enough ? quantile_of(latencies, 0.25) : 0, faults).run();
}

}  // namespace

LinkFaults find_link_faults(const LinkMatrix& links, const std::vector<int>& silent) {
  LinkFaults faults;
  const auto host_of = [&](int rank) {
    return links.host_names[static_cast<std::size_t>(links.hosts[static_cast<std::size_t>(rank)])];
  };
  for (const int rank : silent)
    faults.blocked.push_back(fmt::format("rank {} on {} did not report to rank 0", rank, host_of(rank)));
  find_in(links, {{links.leaders(), links.host_names}}, faults);
  std::vector<Kind> inside(links.host_names.size());
  for (std::size_t rank = 0; rank < links.ranks(); ++rank) {
    Kind& kind = inside[static_cast<std::size_t>(links.hosts[rank])];
    kind.ranks.push_back(static_cast<int>(rank));
    kind.names.push_back(fmt::format("rank {} ({})", rank, host_of(static_cast<int>(rank))));
  }
  find_in(links, inside, faults);
  return faults;
}

}  // namespace echelon::inline comm
