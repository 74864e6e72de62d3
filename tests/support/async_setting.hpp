// SPDX-License-Identifier: Apache-2.0
// Draws workers, servers and codecs of an asynchronous parameter server from a seed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/hash_rng.hpp"
#include "comm/collective/halves.hpp"
#include "config/schema.hpp"
#include "device/parameter.hpp"

namespace echelon::test {

inline std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

// Two layers with running statistics between them.
inline ParameterSet normed_layers(std::int64_t first, std::int64_t statistics, std::int64_t last) {
  ParameterSet set;
  set.add("a.weight", Shape{first}, {});
  set.add_statistic("norm.mean", Shape{statistics}, {}, 0.1);
  set.add("b.weight", Shape{last}, {}, false);
  return set;
}

struct AsyncSetting {
  ExchangeConfig exchange;
  ParameterSet parameters = {};
  int workers = 1, ranks = 1;
  std::vector<ArenaRange> buckets;
  std::vector<Parts> parts;
  bool gradients = false, compensates = false;
  std::int64_t soft = 1;
};

// Draws any number of workers, with servers inside the workers or beside them; buckets end where parameters do.
inline AsyncSetting draw_async_setting(const std::string& codec, std::uint64_t seed) {
  const HashRng random(seed, "async codec");
  std::uint64_t draws = 0;
  const auto below = [&](std::uint64_t bound) { return static_cast<std::int64_t>(random.below(draws++, bound)); };
  AsyncSetting setting;
  setting.parameters = normed_layers(1 + below(900), 1 + below(9), 1 + below(900));
  setting.exchange.codec = codec;
  setting.exchange.density = 0.1;
  setting.exchange.codec_warmup_steps = below(3) == 0 ? 4 : 0;
  setting.workers = 1 + static_cast<int>(below(4));
  const int beside = static_cast<int>(below(3));
  setting.ranks = setting.workers + beside;
  const std::int64_t cut = setting.parameters[1].end();
  setting.buckets = {{cut, setting.parameters.elems()}, {0, cut}};
  for (const ArenaRange& bucket : setting.buckets) {
    Parts& parts = setting.parts.emplace_back(at(setting.ranks));
    const int first = beside > 0 ? setting.workers : 0, last = setting.ranks - 1;
    const std::int64_t middle = 1 + below(static_cast<std::uint64_t>(bucket.elems()));
    parts[at(first)] = {0, first == last ? bucket.elems() : middle};
    if (first != last && middle < bucket.elems()) parts[at(last)] = {middle, bucket.elems()};
  }
  setting.gradients = below(2) == 0;
  setting.compensates = below(2) == 0;
  setting.soft = 1 + below(2);
  setting.exchange.error_feedback = below(3) > 0;
  return setting;
}

}  // namespace echelon::test
