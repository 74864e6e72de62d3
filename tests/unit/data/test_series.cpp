// SPDX-License-Identifier: Apache-2.0
// Series with a label for each step: shards and other files, padding, weights, and the rows of a stream.
#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <map>
#include <numeric>
#include <set>

#include "base/error.hpp"
#include "base/hash_rng.hpp"
#include "data/class_mix.hpp"
#include "data/loader.hpp"
#include "data/series_rows.hpp"
#include "tests/support/random.hpp"
#include "tests/support/refusal.hpp"
#include "tests/unit/h5/folder.hpp"

namespace echelon {
namespace {

using Catch::Matchers::Contains;

constexpr std::int64_t kFeatures = 3, kTargets = 2, kStored = 17;

std::int64_t steps_of(std::int64_t series) { return 1 + (series * 7 + 3) % kStored; }
float value_at(std::int64_t series, std::int64_t t, std::int64_t f) {
  return static_cast<float>(series) + static_cast<float>(t) / 32 + static_cast<float>(f) / 256;
}
std::int32_t class_at(std::int64_t series, std::int64_t t) { return static_cast<std::int32_t>((series * 5 + t) % 3); }
float number_at(std::int64_t series, std::int64_t t, std::int64_t k) { return value_at(series, t, k) - 2; }

// Writes series [first, first + count) as a shard, with a class or two numbers for each step.
void write_series(const std::string& path, std::int64_t first, std::int64_t count, bool numbers) {
  std::vector<std::int32_t> lengths, classes;
  std::vector<float> values, targets;
  for (std::int64_t s = first; s < first + count; ++s) {
    lengths.push_back(static_cast<std::int32_t>(steps_of(s)));
    for (std::int64_t t = 0; t < steps_of(s); ++t) {
      for (std::int64_t f = 0; f < kFeatures; ++f) values.push_back(value_at(s, t, f));
      for (std::int64_t k = 0; k < kTargets; ++k) targets.push_back(number_at(s, t, k));
      classes.push_back(class_at(s, t));
    }
  }
  const std::int64_t all = std::ssize(classes);
  h5::Writer writer(path);
  writer.attribute("kind", std::string("sequences"));
  writer.attribute("labels_of", std::string("steps"));
  if (!numbers) writer.attribute("classes", std::int64_t{3});
  writer.write_all("lengths", DType::i32, {count}, lengths.data());
  writer.write_all("values", DType::f32, {all, kFeatures}, values.data());
  if (numbers)
    writer.write_all("labels", DType::f32, {all, kTargets}, targets.data());
  else
    writer.write_all("labels", DType::i32, {all}, classes.data());
  writer.publish();
}

// The same as (N, T, F) of another program, filled up with what must never be seen.
void write_padded(const std::string& path, std::int64_t count, bool numbers) {
  std::vector<std::int32_t> lengths, classes(static_cast<std::size_t>(count * kStored), -1);
  std::vector<float> values(static_cast<std::size_t>(count * kStored * kFeatures), NAN),
      targets(static_cast<std::size_t>(count * kStored * kTargets), NAN);
  for (std::int64_t s = 0; s < count; ++s) {
    lengths.push_back(static_cast<std::int32_t>(steps_of(s)));
    for (std::int64_t t = 0; t < steps_of(s); ++t) {
      const std::int64_t at = s * kStored + t;
      for (std::int64_t f = 0; f < kFeatures; ++f)
        values[static_cast<std::size_t>(at * kFeatures + f)] = value_at(s, t, f);
      for (std::int64_t k = 0; k < kTargets; ++k)
        targets[static_cast<std::size_t>(at * kTargets + k)] = number_at(s, t, k);
      classes[static_cast<std::size_t>(at)] = class_at(s, t);
    }
  }
  h5::Writer writer(path);
  writer.write_all("n", DType::i32, {count}, lengths.data());
  writer.write_all("x", DType::f32, {count, kStored, kFeatures}, values.data());
  if (numbers)
    writer.write_all("y", DType::f32, {count, kStored, kTargets}, targets.data());
  else
    writer.write_all("y", DType::i32, {count, kStored}, classes.data());
  writer.publish();
}

Hdf5Config padded_keys(bool numbers) {
  Hdf5Config keys;
  keys.samples = {"x"}, keys.axes = "NTF", keys.lengths = "n", keys.labels = "y", keys.label_form = LabelForm::steps;
  keys.classes = numbers ? 0 : 3;
  return keys;
}

// The series and the first step of a sample, as plain arithmetic has them.
struct At {
  std::int64_t series, first, steps;
};
std::vector<At> samples_of(std::int64_t count, std::int64_t window) {
  std::vector<At> all;
  for (std::int64_t s = 0; s < count; ++s)
    for (std::int64_t t = 0; t < steps_of(s); t += window == 0 ? kStored : window)
      all.push_back({s, t, window == 0 ? steps_of(s) : std::min(window, steps_of(s) - t)});
  return all;
}

// Checks every value, label and weight of a batch against the formulas above.
void check_batch(const Batch& batch, const std::vector<SampleSlot>& slots, const std::vector<At>& samples, bool numbers,
                 std::int32_t ignored) {
  const std::int64_t each = numbers ? kTargets : 1;
  double counted = 0;
  for (std::size_t i = 0; i < slots.size(); ++i) {
    const At& at = samples[static_cast<std::size_t>(slots[i].id)];
    const auto row = static_cast<std::int64_t>(i);
    const std::int64_t held = std::min(at.steps, batch.length);
    REQUIRE(batch.lengths[i] == held);
    if (batch.begins != nullptr) REQUIRE((batch.begins[i] != 0) == (at.first == 0));
    for (std::int64_t t = 0; t < batch.length; ++t) {
      const bool real = t < held;
      for (std::int64_t f = 0; f < kFeatures; ++f)
        REQUIRE(static_cast<const float*>(batch.samples)[(row * batch.length + t) * kFeatures + f] ==
                (real ? value_at(at.series, at.first + t, f) : 0));
      for (std::int64_t k = 0; k < each; ++k) {
        const std::int64_t label = (row * batch.length + t) * each + k;
        const bool none = !numbers && real && class_at(at.series, at.first + t) == ignored;
        const float weight = real && slots[i].counts && !none ? 1.0F : 0.0F;
        counted += static_cast<double>(weight);
        REQUIRE(static_cast<const float*>(batch.weights)[label] == weight);
        if (numbers)
          REQUIRE(static_cast<const float*>(batch.labels)[label] == (real ? number_at(at.series, at.first + t, k) : 0));
        else
          REQUIRE(static_cast<const std::int32_t*>(batch.labels)[label] ==
                  (real && !none ? class_at(at.series, at.first + t) : 0));
      }
    }
  }
  REQUIRE(batch.weight == counted);
}

}  // namespace

TEST_CASE("a label for each step, of shards and of padded arrays: padding and ignored labels weigh 0", "[data]") {
  const test::Folder folder;
  const bool numbers = GENERATE(false, true), padded = GENERATE(false, true), stream = GENERATE(false, true);
  const std::int64_t length = GENERATE(0, 5);
  CAPTURE(numbers, padded, stream, length);
  DataConfig config;
  config.sequence_length = length, config.order = stream ? Order::stream : Order::samples;
  config.ragged = Ragged::zero_weight, config.buffer_mb = 1e-4;
  if (!stream && length == 0) config.buckets = {4, 9};
  if (padded) {
    write_padded(folder / "a.h5", 43, numbers);
    config.hdf5 = padded_keys(numbers);
  } else {
    write_series(folder / "a.h5", 0, 20, numbers);
    write_series(folder / "b.h5", 20, 23, numbers);
  }
  Dataset data = open_dataset(folder.path(), config);
  ModelConfig model;
  if (!numbers) model.labels.ignore_label = {1};
  demand_labels(data, model);
  const std::vector<At> samples = samples_of(43, stream ? (length == 0 ? 64 : length) : 0);
  REQUIRE(data.samples() == std::ssize(samples));
  const std::int64_t most = stream && length == 0 ? kStored : length == 0 ? kStored : length;
  REQUIRE(data.form().shape == Shape{most, kFeatures});
  REQUIRE(data.form().label == (numbers ? Shape{most, kTargets} : Shape{most}));
  const SamplePlan plan(plan_request(data, config, {3, 4}, 2));
  for (const int replica : {0, 1}) {
    Loader loader(data, plan, {.replica = replica, .buffer_bytes = 1, .end_epoch = 2});
    for (std::int64_t epoch = 0; epoch < 2; ++epoch)
      for (std::int64_t step = 0; step < plan.steps_per_epoch(); ++step) {
        const Batch& batch = loader.next();
        REQUIRE((batch.begins != nullptr) == stream);
        check_batch(batch, plan.ids(epoch, step, replica), samples, numbers, numbers ? -7 : 1);
        if (numbers) REQUIRE(batch.weight == plan.weight(epoch, step, replica));
      }
  }
}

TEST_CASE("labels of steps are counted, and refused with record and step", "[data]") {
  const test::Folder folder;
  write_series(folder / "a.h5", 0, 9, false);
  Dataset data = open_dataset(folder.path());
  std::vector<std::int64_t> expected(3, 0);
  for (std::int64_t s = 0; s < 9; ++s)
    for (std::int64_t t = 0; t < steps_of(s); ++t) ++expected[static_cast<std::size_t>(class_at(s, t))];
  CHECK(LabelSample(data).class_counts() == expected);
  data.classes = 2;
  CHECK_THAT(test::refusal<DataError>([&] { (void)LabelSample(data); }),
             Contains("record 0, step 2 of 'labels' has label 2") && Contains("model.ignore_label = 2"));
  write_padded(folder / "b.hdf5", 9, true);
  Dataset other = open_dataset(folder / "b.hdf5", 0, Labels::needed, padded_keys(true));
  other.most_label = 3;
  CHECK_THAT(test::refusal<DataError>([&] { (void)LabelSample(other); }), Contains("record 5, step 0 has the label"));
  Hdf5Config keys = padded_keys(true);
  keys.lengths = "m";
  CHECK_THAT(test::refusal<DataError>([&] { (void)open_dataset(folder / "b.hdf5", 0, Labels::needed, keys); }),
             Contains("unknown dataset 'm'"));
}

TEST_CASE("a stream deals each series to one row, window by window, the same for any number of replicas", "[data]") {
  const Ragged ragged = GENERATE(Ragged::wrap, Ragged::zero_weight, Ragged::drop);
  const HashRng draws(test::test_seed(), "series rows");
  std::vector<std::int64_t> series = {0};
  for (std::uint64_t i = 0; i < 40; ++i)
    series.push_back(series.back() + 1 + static_cast<std::int64_t>(draws.below(i, 9)));
  const std::int64_t windows = series.back(), rows = 7;
  SamplePlanRequest request;
  request.file_samples = {windows}, request.file_chunk_rows = {windows};
  request.ragged = ragged, request.stream = true, request.seed = 5;
  request.series = std::make_shared<const std::vector<std::int64_t>>(series);
  const auto plan_for = [&](std::vector<std::int64_t> batch) {
    request.batch = std::move(batch);
    return SamplePlan(request);
  };
  const SamplePlan one = plan_for({rows}), four = plan_for({2, 1, 3, 1});
  std::int64_t longest = 0;
  for (std::size_t i = 1; i < series.size(); ++i) longest = std::max(longest, series[i] - series[i - 1]);
  if (ragged != Ragged::drop) {
    CHECK(one.steps_per_epoch() >= (windows + rows - 1) / rows);
    CHECK(one.steps_per_epoch() <= windows / rows + longest);
  }
  std::set<std::vector<std::int64_t>> firsts;
  for (std::int64_t epoch = 0; epoch < 3; ++epoch) {
    std::vector<std::int64_t> before(rows, -1), times(static_cast<std::size_t>(windows), 0), first;
    REQUIRE(one.steps_in(epoch) == one.steps_per_epoch());
    for (std::int64_t step = 0; step < one.steps_per_epoch(); ++step) {
      const std::vector<SampleSlot> slots = one.ids(epoch, step, 0), split = four.all_ids(epoch, step);
      for (std::size_t row = 0; row < slots.size(); ++row) {
        const std::int64_t id = slots[row].id;
        REQUIRE((split[row].id == id && split[row].counts == slots[row].counts));
        const bool begins = std::binary_search(series.begin(), series.end(), id);
        REQUIRE((begins || (step > 0 && id == before[row] + 1)));
        before[row] = id;
        if (slots[row].counts) ++times[static_cast<std::size_t>(id)];
        if (step == 0) first.push_back(id);
      }
      REQUIRE(one.counting(epoch, step) == four.counting(epoch, step));
    }
    for (const std::int64_t often : times) {
      if (ragged == Ragged::zero_weight) REQUIRE(often == 1);
      if (ragged == Ragged::wrap) REQUIRE(often >= 1);
      if (ragged == Ragged::drop) REQUIRE(often <= 1);
    }
    firsts.insert(first);
  }
  CHECK(firsts.size() == 3);  // every epoch has an order of its own
  std::int64_t owned = 0;
  for (int replica = 0; replica < 4; ++replica) owned += four.owned(replica);
  CHECK(owned == windows);
  request.fraction = 0.5;  // the first 20 series
  const SamplePlan half = plan_for({rows});
  CHECK(half.samples() == series[20]);
  for (std::int64_t step = 0; step < half.steps_per_epoch(); ++step)
    for (const SampleSlot& slot : half.ids(1, step, 0)) CHECK(slot.id < series[20]);
  request.fraction = 1;
  if (ragged == Ragged::wrap)
    CHECK_THAT(test::refusal<ConfigError>([&] { (void)plan_for({41}); }), Contains("batch.global is at most 40"));
}

TEST_CASE("a stream needs a label for each step", "[data]") {
  const test::Folder folder;
  write_series(folder / "a.h5", 0, 9, false);
  DataConfig config;
  config.order = Order::stream, config.sequence_length = 4;
  CHECK(open_dataset(folder.path(), config).series != nullptr);
  write_padded(folder / "b.hdf5", 9, false);
  config.hdf5 = padded_keys(false);
  config.hdf5.labels = "n", config.hdf5.label_form = LabelForm::values, config.hdf5.classes = 0;
  CHECK_THAT(test::refusal<ConfigError>([&] { (void)open_dataset(folder / "b.hdf5", config); }),
             Contains("needs a label for each step"));
}

}  // namespace echelon
