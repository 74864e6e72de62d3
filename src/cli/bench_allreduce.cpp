// SPDX-License-Identifier: Apache-2.0
// echelon bench allreduce: checks every algorithm, then times it, between the ranks of this launch.
//
// A plan runs on the engine as in training, driven by the thread that waits for it. A time is the maximum over
// ranks, after a barrier; algorithms take turns in every iteration, so that other load affects all of them. Rows
// are printed size by size as they come, smallest size first. Bus bandwidth is 2(k-1)/k G / t: the rate that a
// link would have to carry at least (nccl-tests' definition). It can be compared with the link's rate for every
// k.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/nearest.hpp"
#include "base/quantities.hpp"
#include "base/text.hpp"
#include "cli/allreduce_bench.hpp"
#include "comm/collective/algorithms.hpp"
#include "comm/collective/plan_flows.hpp"
#include "comm/group.hpp"
#include "comm/mpi/world.hpp"
#include "exchange/allreduce_request.hpp"
#include "job/launch.hpp"
#include "job/shaped_network.hpp"

namespace echelon::cli {
namespace {

constexpr int kControl = 0, kData = 1;                      // channels
constexpr std::int64_t kMostNaive = std::int64_t{1} << 30;  // bytes of memory per rank

struct Settings {
  std::vector<std::string> algorithms;
  bool all = false;                 // all algorithms were requested: one that does not fit is left out, with a line
  std::vector<std::int64_t> sizes;  // bytes
  DType dtype = DType::f32;
  ExchangeConfig exchange;
  double rate = 0;  // bytes per second; 0: not given
};

Settings settings_of(const BenchAllreduceOptions& options) {
  Settings settings;
  const std::vector<std::string> known = allreduce_names();
  for (const std::string& name : options.algorithms) {
    if (name == "all") {
      settings.algorithms.insert(settings.algorithms.end(), known.begin(), known.end());
      settings.all = true;
    } else if (std::find(known.begin(), known.end(), name) != known.end()) {
      settings.algorithms.push_back(name);
    } else {
      throw ConfigError(unknown_name("--algorithms", name, known));
    }
  }
  if (options.dtype != "f32" && options.dtype != "f64")
    throw ConfigError(fmt::format("--dtype \"{}\": must be f32 or f64", options.dtype));
  settings.dtype = options.dtype == "f64" ? DType::f64 : DType::f32;
  if (options.iterations < 1) throw ConfigError("--iterations must be at least 1");
  if (options.warmup < 0) throw ConfigError("--warmup must be at least 0");
  if (!(options.segment_kb >= 1)) throw ConfigError("--segment-kb must be at least 1");
  if (options.servers < 0) throw ConfigError("--servers must be at least 0");
  const auto elem = static_cast<std::int64_t>(size_of(settings.dtype));
  settings.sizes = parse_sizes(options.sizes, "--sizes");
  std::sort(settings.sizes.begin(), settings.sizes.end());
  for (const std::int64_t size : settings.sizes)
    if (size < elem || size % elem != 0)
      throw ConfigError(
          fmt::format("--sizes: {} bytes are not a multiple of one {}, {} bytes", size, options.dtype, elem));
  if (!options.rate.empty()) settings.rate = parse_rate(options.rate, "--rate");
  settings.exchange.segment_kb = options.segment_kb;
  settings.exchange.servers = options.servers;
  settings.exchange.inner = options.inner;
  settings.exchange.outer = options.outer;
  return settings;
}

using Row = AllreduceRow;

// Removes the algorithms that do not fit the ranks; returns one line with the reason for each.
std::vector<std::string> leave_out(Settings& settings, const Transport& transport) {
  std::vector<std::string> left_out;
  if (!settings.all) return left_out;
  const auto hosts = static_cast<std::int64_t>(transport.host_names().size());
  std::erase_if(settings.algorithms, [&](const std::string& name) {
    const AlgorithmTraits traits = algorithm_traits(name);
    if (traits.in_memory && hosts > 1)
      left_out.push_back(fmt::format("{}: it sums in the memory of one host, but the ranks are on {}", name, hosts));
    else if (traits.library && !transport.has_library_allreduce())
      left_out.push_back(fmt::format("{}: the library's messages cannot be slowed down (--shaped)", name));
    else
      return false;
    return true;
  });
  return left_out;
}

class AllreduceBench {
 public:
  AllreduceBench(MpiWorld* world, Engine& engine, const Settings& settings)
      : world_(world), engine_(engine), control_(engine, kControl), settings_(settings) {}

  // Returns one row per algorithm that runs at this size, then the library's blocking call if it can be compared.
  std::vector<Row> run(std::int64_t bytes, int warmup, int iterations) {
    begin_size(bytes);
    std::vector<std::vector<double>> times(names_.size());
    for (std::size_t a = 0; a < names_.size(); ++a) {
      verify(a);
      traffic_.push_back(counted_traffic(a));
    }
    std::fill(data_.begin(), data_.end(), std::byte{0});
    for (int i = -warmup; i < iterations; ++i)
      for (std::size_t a = 0; a < names_.size(); ++a) {
        control_.barrier();
        const double start = now_s();
        reduce(a);
        if (i >= 0) times[a].push_back(now_s() - start);
      }
    std::vector<Row> rows;
    for (std::size_t a = 0; a < names_.size(); ++a) {
      const std::vector<double> slowest = over_ranks(times[a]);
      rows.push_back({bytes, names_[a], quantile(slowest, 0.5), quantile(slowest, 0.99)});
      if (names_[a].empty()) continue;
      rows.back().wire_bytes = traffic_[a].first;
      rows.back().messages = traffic_[a].second;
      AllreduceRequest whole = allreduce_request(settings_.exchange, engine_.transport().hosts(), settings_.dtype);
      whole.elems = whole.segment_elems = elems_;
      rows.back().steps = longest_chain_of(names_[a], whole, engine_.size());
    }
    return rows;
  }

  // The sums left out at the sizes so far, with the reason for each.
  const std::vector<std::string>& left_out() const { return left_out_; }

 private:
  void begin_size(std::int64_t bytes) {
    AllreduceRequest request = allreduce_request(settings_.exchange, engine_.transport().hosts(), settings_.dtype);
    request.rank = engine_.rank();
    request.elems = elems_ = bytes / static_cast<std::int64_t>(size_of(settings_.dtype));
    names_.clear(), plans_.clear(), traffic_.clear();
    for (const std::string& name : settings_.algorithms) {
      if (name == "naive" && bytes * engine_.size() > kMostNaive) {
        left_out_.push_back(fmt::format("naive at {}: it would take {} per rank",
                                        bytes_text(static_cast<double>(bytes)),
                                        bytes_text(static_cast<double>(bytes * engine_.size()))));
        continue;
      }
      names_.push_back(name);
      plans_.push_back(make_allreduce(name, request));
    }
    if (world_ != nullptr && engine_.transport().has_library_allreduce()) names_.emplace_back();
    data_.resize(static_cast<std::size_t>(bytes));
  }

  void reduce(std::size_t a) {
    if (names_[a].empty())
      world_->allreduce(data_.data(), static_cast<std::size_t>(elems_), settings_.dtype);
    else
      engine_.run({.plan = plans_[a],
                   .data = data_.data(),
                   .dtype = settings_.dtype,
                   .channel = kData,
                   .priority = 0,
                   .after = nullptr});
  }

  // Returns bytes and messages of one sum, over all ranks.
  std::pair<double, double> counted_traffic(std::size_t a) {
    control_.barrier();
    const WireCounters before = engine_.transport().counters();
    reduce(a);
    const WireCounters after = engine_.transport().counters();
    double sums[] = {static_cast<double>(after.bytes_sent - before.bytes_sent),
                     static_cast<double>(after.messages_sent - before.messages_sent)};
    control_.sum(sums);
    return {sums[0], sums[1]};
  }

  // Fills in whole numbers, whose sum is exact in every order.
  template <class T>
  std::size_t wrong_sums(std::size_t a) {
    const auto factor = [](int rank) { return rank % 7 + 1; };
    std::int64_t total = 0;
    for (int r = 0; r < engine_.size(); ++r) total += factor(r);
    T* values = reinterpret_cast<T*>(data_.data());
    for (std::int64_t i = 0; i < elems_; ++i) values[i] = static_cast<T>(i % 61 * factor(engine_.rank()));
    reduce(a);
    std::size_t wrong = 0;
    for (std::int64_t i = 0; i < elems_; ++i) wrong += values[i] != static_cast<T>(i % 61 * total);
    return wrong;
  }

  void verify(std::size_t a) {
    double wrong = static_cast<double>(settings_.dtype == DType::f64 ? wrong_sums<double>(a) : wrong_sums<float>(a));
    control_.sum({&wrong, 1});
    if (wrong > 0)
      throw NumericError(fmt::format("{} over {} ranks gives {} wrong sums of {} elements over all ranks",
                                     names_[a].empty() ? "MPI_Allreduce" : names_[a], engine_.size(), wrong, elems_));
  }

  std::vector<double> over_ranks(const std::vector<double>& mine) {
    const std::size_t n = mine.size();
    std::vector<double> all(n * static_cast<std::size_t>(engine_.size()));
    std::copy(mine.begin(), mine.end(), all.begin() + static_cast<std::ptrdiff_t>(n) * engine_.rank());
    Job job;
    job.plan = make_allgather(engine_.rank(), engine_.size(), static_cast<std::int64_t>(n));
    job.data = all.data();
    job.dtype = DType::f64;
    job.channel = kControl;
    engine_.run(std::move(job));
    std::vector<double> slowest(mine);
    for (std::size_t i = 0; i < all.size(); ++i) slowest[i % n] = std::max(slowest[i % n], all[i]);
    return slowest;
  }

  static double quantile(std::vector<double> times, double part) {
    std::sort(times.begin(), times.end());
    const auto at = static_cast<std::size_t>(std::ceil(part * static_cast<double>(times.size())));
    return times[std::max<std::size_t>(at, 1) - 1];
  }

  MpiWorld* world_;  // null: the library is left out
  Engine& engine_;
  Group control_;
  const Settings& settings_;
  std::vector<std::string> names_, left_out_;
  std::vector<std::shared_ptr<const Plan>> plans_;
  std::vector<std::pair<double, double>> traffic_;  // [algorithm]: bytes, messages
  std::vector<std::byte> data_;
  std::int64_t elems_ = 0;
};

std::string micros(double seconds) { return fmt::format("{:.1f}", seconds * 1e6); }
std::string giga(double rate) { return fmt::format("{:.3f}", rate / 1e9); }

std::string json_line(const Row& row, const Settings& settings, int ranks) {
  const double bus = bus_bytes(row.bytes, ranks);
  return fmt::format(
      R"({{"algorithm": "{}", "ranks": {}, "dtype": "{}", "bytes": {}, "p50_s": {:.9g}, "p99_s": {:.9g}, )"
      R"("wire_bytes": {}, "messages": {}, "steps": {}, )"
      R"("algorithm_bytes_per_s": {:.6g}, "bus_bytes_per_s": {:.6g}, "bound_s": {}}})",
      row.algorithm.empty() ? "library (blocking)" : row.algorithm, ranks, name_of(settings.dtype), row.bytes,
      row.p50_s, row.p99_s, row.wire_bytes, row.messages, row.steps, static_cast<double>(row.bytes) / row.p50_s,
      bus / row.p50_s, settings.rate > 0 ? fmt::format("{:.9g}", bus / settings.rate) : "null");
}

std::vector<std::string> cells(const Row& row, const Row* library, const Settings& settings, int ranks) {
  const double bus = bus_bytes(row.bytes, ranks), bound_s = bus / settings.rate;
  std::vector<std::string> texts = {bytes_text(static_cast<double>(row.bytes)),
                                    row.algorithm,
                                    micros(row.p50_s),
                                    micros(row.p99_s),
                                    giga(static_cast<double>(row.bytes) / row.p50_s),
                                    giga(bus / row.p50_s),
                                    library ? micros(library->p50_s) : "-"};
  if (settings.rate > 0)
    texts.insert(texts.end(), {micros(bound_s), fmt::format("{:.0f} %", 100 * bound_s / row.p50_s)});
  return texts;
}

// Prints the rows of one size under headings whose width is the same for every size.
void print(const std::vector<Row>& rows, const Settings& settings, int ranks, bool with_headings) {
  std::vector<std::string> header = {fmt::format("{:>10}", "size"),
                                     fmt::format("{:16}", "algorithm"),
                                     fmt::format("{:>12}", "p50 us"),
                                     fmt::format("{:>12}", "p99 us"),
                                     "alg GB/s",
                                     "bus GB/s",
                                     "library (blocking) us"};
  if (settings.rate > 0) header.insert(header.end(), {fmt::format("{:>12}", "bound us"), "of bound"});
  Table table(header);
  const Row* library = rows.back().algorithm.empty() ? &rows.back() : nullptr;
  for (const Row& row : rows)
    if (!row.algorithm.empty()) table.row(cells(row, library, settings, ranks));
  std::string text = table.text();
  if (!with_headings)
    for (int line = 0; line < 2; ++line) text.erase(0, text.find('\n') + 1);
  std::fputs(text.c_str(), stdout);
}

void run_in(MpiWorld& world, const BenchAllreduceOptions& options) {
  const Settings settings = settings_of(options);
  if (!options.network.rate.empty()) (void)shape_of(options.network, "--shaped");
  Engine engine(with_network(world.transport(), options.network));
  const Transport& transport = engine.transport();
  const int ranks = engine.size();
  const bool reports = engine.rank() == 0;
  (void)allreduce_request(settings.exchange, transport.hosts(), settings.dtype);
  if (reports && !options.json)
    fmt::print("{} on {}, {}; {}, segments of {} KiB; {} iterations after {} of warm-up; every sum checked\n\n",
               counted(ranks, "rank"), counted(static_cast<std::int64_t>(transport.host_names().size()), "host"),
               transport.name(), name_of(settings.dtype), options.segment_kb, options.iterations, options.warmup);
  std::fflush(stdout);
  const auto tell = [&](const std::vector<Row>& rows) {
    if (!reports) return;
    if (!options.json) print(rows, settings, ranks, rows.front().bytes == settings.sizes.front());
    for (const Row& row : rows)
      if (options.json) fmt::print("{}\n", json_line(row, settings, ranks));
    std::fflush(stdout);
  };
  std::vector<std::string> left_out;
  (void)measure_allreduce(options, engine, &world, tell, &left_out);
  for (const std::string& what : left_out)
    if (reports) fmt::print(options.json ? stderr : stdout, "left out: {}\n", what);
  std::fflush(stdout);
}

}  // namespace

std::vector<AllreduceRow> measure_allreduce(const BenchAllreduceOptions& options, Engine& engine, MpiWorld* world,
                                            const std::function<void(const std::vector<AllreduceRow>&)>& tell,
                                            std::vector<std::string>* left_out) {
  Settings settings = settings_of(options);
  std::vector<std::string> unfit = leave_out(settings, engine.transport());
  AllreduceBench bench(world, engine, settings);
  std::vector<Row> rows;
  for (const std::int64_t size : settings.sizes) {
    const std::vector<Row> of_size = bench.run(size, options.warmup, options.iterations);
    rows.insert(rows.end(), of_size.begin(), of_size.end());
    if (tell) tell(of_size);
  }
  unfit.insert(unfit.end(), bench.left_out().begin(), bench.left_out().end());
  if (left_out != nullptr) *left_out = std::move(unfit);
  return rows;
}

int run_bench_allreduce(const BenchAllreduceOptions& options) {
  prepare_process();
  MpiWorld world;
  try {
    run_in(world, options);
  } catch (const ConfigError& error) {  // all ranks throw the same
    if (world.rank() == 0) std::fprintf(stderr, "echelon: error: %s\n", error.what());
    return error.code();
  } catch (const Error& error) {
    std::fprintf(stderr, "echelon: error: %s\n", error.what());
    MpiWorld::abort(error.code());
  }
  return kExitOk;
}

}  // namespace echelon::cli
