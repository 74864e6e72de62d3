// SPDX-License-Identifier: Apache-2.0
#include "exchange/allreduce_request.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/error.hpp"
#include "base/text.hpp"

namespace echelon::inline exchange {
namespace {

std::int64_t servers_of(const ExchangeConfig& config, std::int64_t ranks) {
  return config.fewer_workers ? std::min(config.servers, ranks) : config.servers;
}

}  // namespace

AllreduceRequest allreduce_request(const ExchangeConfig& config, const std::vector<int>& hosts, DType dtype) {
  const auto ranks = static_cast<std::int64_t>(hosts.size());
  if (servers_of(config, ranks) > ranks)
    throw ConfigError(fmt::format("exchange.servers = {}, but there {}; at most {}, or 0 for all", config.servers,
                                  ranks == 1 ? "is 1 rank" : fmt::format("are {} ranks", ranks), ranks));
  AllreduceRequest request;
  request.ranks = static_cast<int>(ranks);
  request.segment_elems = std::max<std::int64_t>(
      1, static_cast<std::int64_t>(config.segment_kb * 1024) / static_cast<std::int64_t>(size_of(dtype)));
  request.hosts = hosts;
  request.servers = static_cast<int>(servers_of(config, ranks));
  request.inner = config.inner;
  request.outer = config.outer;
  request.dedicated_servers = config.server.ranks > 0;
  if (request.dedicated_servers) request.servers = static_cast<int>(config.server.ranks);
  return request;
}

CodecOptions codec_options(const ExchangeConfig& config, DType dtype, std::vector<CodedRun> rows, int ranks) {
  return {.dtype = dtype,
          .ranks = ranks,
          .density = config.density,
          .tau = config.tau,
          .index_coding = config.index_coding,
          .rows = std::move(rows)};
}

bool sums_in_memory(const ExchangeConfig& config) {
  const AlgorithmTraits own = algorithm_traits(config.algorithm);
  return own.in_memory || (own.nests && algorithm_traits(config.inner).in_memory);
}

std::string algorithm_text(const ExchangeConfig& config, int ranks) {
  const AlgorithmTraits traits = algorithm_traits(config.algorithm);
  if (traits.reads.contains("servers") && config.servers > 0)
    return fmt::format("{} (on {} of {} ranks)", config.algorithm, servers_of(config, ranks), ranks);
  if (traits.nests)
    return fmt::format("{} ({} inside hosts, {} between)", config.algorithm, config.inner, config.outer);
  return config.algorithm;
}

}  // namespace echelon::inline exchange
