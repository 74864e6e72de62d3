// SPDX-License-Identifier: Apache-2.0
#include "data/reading_rate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <thread>
#include <vector>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "data/sample_plan.hpp"

namespace echelon::inline data {
namespace {

struct Reader {
  std::int64_t samples = 0;
  std::uint64_t bytes = 0;
  std::exception_ptr failure;
};

void read(const Dataset& set, const SamplePlan& plan, const ReadingOptions& options, int replica, double begun_s,
          Reader& reader) try {
  LoaderOptions loading = options.loading;
  loading.replica = replica;
  loading.end_epoch = options.epochs;
  Loader loader(set, plan, loading);
  for (std::int64_t epoch = 0; epoch < options.epochs; ++epoch)
    for (std::int64_t step = 0; step < plan.steps_in(epoch) && now_s() - begun_s < options.most_s; ++step) {
      const Batch& batch = loader.next();
      if (options.first && replica == 0 && reader.samples == 0) options.first(batch);
      reader.samples += batch.n;
    }
  reader.bytes = loader.bytes_read();
} catch (...) {
  reader.failure = std::current_exception();
}

}  // namespace

ReadingRate reading_rate(const Dataset& set, const DataConfig& config, const ReadingOptions& options) {
  constexpr std::int64_t kUsual = 64, kBytes = 64 << 20;
  if (options.readers > set.samples())
    throw ConfigError(fmt::format("{} readers are more than the {} samples", options.readers, set.samples()));
  std::int64_t batch = options.batch;
  if (batch == 0) batch = std::clamp<std::int64_t>(kBytes / static_cast<std::int64_t>(set.record_bytes()), 1, kUsual);
  batch = std::min(batch, set.samples() / options.readers);
  const auto readers = static_cast<std::size_t>(options.readers);
  const SamplePlan plan(plan_request(set, config, std::vector<std::int64_t>(readers, batch), 1));
  std::vector<Reader> all(readers);
  const double begun_s = now_s();
  std::vector<std::thread> threads;
  for (std::size_t r = 1; r < readers; ++r)
    threads.emplace_back([&, r] { read(set, plan, options, static_cast<int>(r), begun_s, all[r]); });
  read(set, plan, options, 0, begun_s, all[0]);
  for (std::thread& thread : threads) thread.join();
  ReadingRate rate{.seconds = now_s() - begun_s};
  for (const Reader& reader : all) {
    if (reader.failure) std::rethrow_exception(reader.failure);
    rate.samples += reader.samples;
    rate.bytes += reader.bytes;
  }
  return rate;
}

}  // namespace echelon::inline data
