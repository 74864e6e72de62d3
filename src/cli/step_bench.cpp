// SPDX-License-Identifier: Apache-2.0
#include "cli/step_bench.hpp"

#include <fmt/format.h>
#include <time.h>

#include <algorithm>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/hash_rng.hpp"
#include "data/dataset.hpp"
#include "model/build.hpp"
#include "model/device_options.hpp"
#include "model/zoo/zoo.hpp"

namespace echelon::cli {
namespace {

// Seconds to measure if the number of steps is not given.
constexpr double kEnough_s = 20;
constexpr int kFewest = 3, kMostSteps = 50, kMostProfiles = 20;

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

// CPU time of the process so far, over all threads.
double cpu_s() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// Fills a tensor of the device with `value(index)`, converted to its type.
template <class Value>
void fill(Device& device, const Tensor& tensor, const Value& value) {
  std::vector<std::byte> host(tensor.bytes());
  const auto write = [&]<class T>(T) {
    auto* values = reinterpret_cast<T*>(host.data());
    for (std::int64_t i = 0; i < tensor.elems(); ++i) values[i] = static_cast<T>(value(static_cast<std::uint64_t>(i)));
  };
  if (tensor.dtype == DType::i32)
    write(std::int32_t{});
  else
    with_float(tensor.dtype, write);
  device.to_device(tensor.data, host.data(), host.size());
}

std::unique_ptr<Device> open_with(const Config& config, int threads, const ConvTable& layouts) {
  DeviceOptions options = device_options(config.device, threads);
  options.conv_table = layouts;
  return open_device(config.device.kind, options);
}

MeasuredLayouts layouts_of(const Config& config, const Graph& graph, std::int64_t batch, int threads) {
  if (!config.device.measure_layouts || means_gpu(config.device.kind)) return {};
  return measure_layouts(graph, config.device.dtype, batch,
                         [&](const ConvTable& table) { return open_with(config, threads, table); });
}

}  // namespace

BenchSamples bench_samples(const Config& config) {
  try {
    const Dataset data = open_dataset(config.data.train, config.data);
    return {data.form(), config.data.train};
  } catch (const DataError&) {
    if (config.model.zoo.empty()) throw;
    return {zoo_form(config.model.zoo), "model.zoo"};
  }
}

BenchSamples bench_samples(const Config& config, const Shape& shape) {
  if (config.model.zoo.empty())
    throw ConfigError("--shape is for a model of the zoo; without model.zoo the data give the shape");
  return {zoo_form(config.model.zoo, shape), "--shape"};
}

StepBench::StepBench(const Config& config, std::int64_t batch, int threads, const Shape& shape)
    : samples_(shape.rank() > 0 ? bench_samples(config, shape) : bench_samples(config)),
      graph_(build_model(config.model, samples_.form)),
      layouts_(layouts_of(config, graph_, batch, threads)),
      device_(open_with(config, threads, layouts_.table)),
      arenas_(*device_, graph_.parameters(), wide_of(config.device.dtype)),
      program_(graph_, arenas_, {.batch = batch, .dtype = config.device.dtype, .replay = config.device.cuda_graphs}),
      optimiser_(config.optimiser, arenas_, loss_scaling_of(config.device)),
      dtype_(config.device.dtype),
      learning_rate_(config.optimiser.learning_rate) {
  arenas_.initialise(config.seed);
  arenas_.track_rows(true);  // as a single replica does
  scalars_.loss_scale = 1.0 / static_cast<double>(program_.input("weights").elems());
  scalars_.group_weight = 1.0;
  fill_inputs();
}

void StepBench::fill_inputs() {
  const SampleForm& form = samples_.form;
  const auto below = [](const HashRng& rng, std::uint64_t i, std::int64_t end) {
    return static_cast<double>(rng.below(i, static_cast<std::uint64_t>(end)));
  };
  const HashRng rng(1, "bench step");
  const auto real = [&](std::uint64_t i) { return 2 * rng.at(0).uniform(i) - 1; };
  fill(*device_, program_.input("samples"),
       [&](std::uint64_t i) { return form.tokens() ? below(rng.at(0), i, form.vocabulary) : real(i); });
  fill(*device_, program_.input("labels"),
       [&](std::uint64_t i) { return form.classes > 0 ? below(rng.at(1), i, form.classes) : real(i); });
  if (program_.has_input("target"))
    fill(*device_, program_.input("target"), [&](std::uint64_t i) { return below(rng.at(2), i, form.classes); });
  if (program_.has_input("lengths"))
    fill(*device_, program_.input("lengths"), [&](std::uint64_t) { return form.shape[0]; });
  if (program_.has_input("ids")) fill(*device_, program_.input("ids"), [](std::uint64_t i) { return i; });
  fill(*device_, program_.input("weights"), [](std::uint64_t) { return 1.0; });
}

void StepBench::update() {
  const ArenaRange all{0, arenas_.elems()};
  if (optimiser_.accept() != Optimiser::Verdict::apply) return;
  if (optimiser_.clips()) optimiser_.clip(optimiser_.measure(all));
  optimiser_.apply(all);
}

void StepBench::step() {
  optimiser_.begin_step(steps_done_++, learning_rate_);
  PassScalars scalars = scalars_;
  scalars.loss_scale *= optimiser_.loss_scale();
  program_.reset_losses();
  program_.forward(scalars);
  program_.backward(scalars);
  update();
  device_->synchronize();
}

BenchTimes StepBench::measure(int steps) {
  const auto timed_step = [this] {
    const double start = now_s();
    step();
    return now_s() - start;
  };
  step();  // touches the memory
  const double warm_s = std::max(timed_step(), timed_step());
  if (steps == 0) steps = static_cast<int>(std::clamp<double>(kEnough_s / warm_s, kFewest, kMostSteps));
  for (int i = 3; i < steps / 5; ++i) step();
  std::vector<double> times;
  const double cpu_before = cpu_s();
  for (int i = 0; i < steps; ++i) times.push_back(timed_step());
  const double cpu_of_step = (cpu_s() - cpu_before) / steps;
  const double loss = program_.losses().loss;
  if (device_->computes() && !(loss < 1e30)) throw NumericError(fmt::format("the loss of a timed step is {}", loss));
  return {median(times), *std::min_element(times.begin(), times.end()), cpu_of_step, steps};
}

std::vector<OpReport> StepBench::profile() {
  std::vector<OpReport> reports = program_.ops();
  std::vector<std::vector<double>> times(reports.size());
  std::vector<double> updates;
  const double begin = now_s();
  for (int round = 0; round < kMostProfiles && (round < kFewest || now_s() - begin < kEnough_s); ++round) {
    const std::vector<OpReport> run = program_.profile();
    for (std::size_t i = 0; i < run.size(); ++i) times[i].push_back(run[i].seconds);
    optimiser_.begin_step(steps_done_++, learning_rate_);
    const double start = now_s();
    update();
    device_->synchronize();
    updates.push_back(now_s() - start);
  }
  for (std::size_t i = 0; i < reports.size(); ++i) reports[i].seconds = median(times[i]);
  update_s_ = median(updates);
  return reports;
}

}  // namespace echelon::cli
