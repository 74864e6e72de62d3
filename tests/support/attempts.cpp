// SPDX-License-Identifier: Apache-2.0
#include "tests/support/attempts.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <stdexcept>

#include "base/error.hpp"
#include "config/parse.hpp"
#include "job/shaped_network.hpp"
#include "run/attempt.hpp"
#include "tests/support/ranks.hpp"

namespace echelon::test {
namespace {

// Returns no network where the config is refused: the attempt reports the refusal.
NetworkConfig network_of(const std::string& config, const std::vector<std::string>& sets) try {
  return load_config(config, sets).network;
} catch (const Error&) {
  return {};
}

}  // namespace

int train_on_threads(const std::string& config, const std::vector<std::string>& sets, int ranks,
                     const std::vector<int>& hosts, const OpenDevice& open_device) {
  std::vector<int> codes(static_cast<std::size_t>(ranks), -1);
  const auto load = [&](std::vector<std::string>& notes) { return load_config(config, sets, &notes); };
  const auto end_world = [](int code) { throw std::runtime_error(fmt::format("ends the world with {}", code)); };
  run_ranks(
      ranks,
      [&](std::unique_ptr<Transport> transport) {
        int& code = codes[static_cast<std::size_t>(transport->rank())];
        Engine engine(with_network(std::move(transport), network_of(config, sets)));
        code = Attempt(engine, {.load_config = load, .end_world = end_world, .open_device = open_device}).run();
      },
      60, hosts);
  for (const int code : codes)
    if (code != codes.front())
      throw std::runtime_error(fmt::format("ranks end with different codes: {}", fmt::join(codes, " ")));
  return codes.front();
}

}  // namespace echelon::test
