// SPDX-License-Identifier: Apache-2.0
// Texts and sequences in dataset, plan and loader: windows, padding, buckets, weights; images moved and mirrored.
#include <catch2/catch.hpp>
#include <cmath>
#include <set>

#include "base/error.hpp"
#include "data/loader.hpp"
#include "tests/support/random.hpp"
#include "tests/support/refusal.hpp"
#include "tests/unit/data/shards.hpp"
#include "tests/unit/h5/folder.hpp"

namespace echelon {
namespace {

using Catch::Matchers::Contains;
using Ids = std::vector<std::int32_t>;

std::int32_t token_at(std::int64_t file, std::int64_t place) {
  return static_cast<std::int32_t>((place * place + 3 * place + 11 * file) % 29);
}

Vocabulary letters(int n) {
  std::vector<std::string> entries;
  for (int i = 0; i < n; ++i) entries.push_back("t" + std::to_string(i));
  return Vocabulary(entries);
}

void write_token_shards(const std::string& path, std::int64_t file, std::int64_t tokens, int deflate = 0) {
  Ids values;
  for (std::int64_t i = 0; i < tokens; ++i) values.push_back(token_at(file, i));
  h5::Writer writer(path);
  writer.attribute("kind", std::string("text"));
  letters(29).write(writer, "vocabulary");
  writer.create("tokens", DType::u8, {tokens}, {.chunk_rows = 50, .deflate = deflate});
  writer.write_rows("tokens", 0, tokens, values.data(), DType::i32);
  writer.publish();
}

std::int32_t length_at(std::int64_t id) { return static_cast<std::int32_t>(1 + id * 5 % 13); }

// Writes sequences: token t of sequence `id` is (id + t) mod 7, and its label is id mod 3.
void write_sequences(const std::string& path, std::int64_t first, std::int64_t samples) {
  Ids lengths, tokens, labels;
  for (std::int64_t id = first; id < first + samples; ++id) {
    lengths.push_back(length_at(id));
    labels.push_back(static_cast<std::int32_t>(id % 3));
    for (std::int32_t t = 0; t < lengths.back(); ++t) tokens.push_back(static_cast<std::int32_t>((id + t) % 7));
  }
  const auto all = static_cast<std::int64_t>(tokens.size());
  h5::Writer writer(path);
  writer.attribute("kind", std::string("sequences"));
  writer.attribute("classes", std::int64_t{3});
  letters(7).write(writer, "vocabulary");
  writer.write_all("lengths", DType::i32, {samples}, lengths.data());
  writer.write_all("tokens", DType::i32, {all}, tokens.data());
  writer.write_all("labels", DType::i32, {samples}, labels.data());
  writer.publish();
}

template <class Change>
DataConfig with(Change&& change) {
  DataConfig config;
  change(config);
  return config;
}

}  // namespace

TEST_CASE("windows of a text and the tokens after them, file by file", "[data][text]") {
  const test::Folder folder;
  const int deflate = GENERATE(0, 3);
  write_token_shards(folder / "a.h5", 0, 203, deflate);
  write_token_shards(folder / "b.h5", 1, 100, deflate);
  const bool stream = GENERATE(true, false);
  const Dataset data = open_dataset(folder.path(), 7);
  REQUIRE(data.samples() == 28 + 14);  // tokens at a file's end that fill no window are left out
  REQUIRE(data.form() == SampleForm{.shape = {7}, .vocabulary = 29, .label = {7}, .classes = 29});
  const SamplePlan plan(plan_request(
      data, with([&](DataConfig& c) { c.order = stream ? Order::stream : Order::samples, c.buffer_mb = 1e-4; }), {3, 2},
      4));
  for (const int replica : {0, 1}) {
    Loader loader(data, plan, {.replica = replica, .buffer_bytes = 1, .end_epoch = 2});
    for (std::int64_t epoch = 0; epoch < 2; ++epoch)
      for (std::int64_t step = 0; step < plan.steps_per_epoch(); ++step) {
        const Batch& batch = loader.next();
        REQUIRE(batch.length == 7);
        REQUIRE(batch.weight == plan.weight(epoch, step, replica));
        const auto ids = plan.ids(epoch, step, replica);
        for (std::size_t i = 0; i < ids.size(); ++i) {
          const std::int64_t file = ids[i].id < 28 ? 0 : 1, window = ids[i].id - 28 * file;
          for (std::int64_t t = 0; t < 7; ++t) {
            const auto at = static_cast<std::int64_t>(i) * 7 + t;
            REQUIRE(static_cast<const std::int32_t*>(batch.samples)[at] == token_at(file, window * 7 + t));
            REQUIRE(static_cast<const std::int32_t*>(batch.labels)[at] == token_at(file, window * 7 + t + 1));
            REQUIRE(static_cast<const float*>(batch.weights)[at] == 1);
          }
        }
      }
  }
}

TEST_CASE("sequences are padded to the longest, cut to data.sequence_length, or padded to their bucket", "[data]") {
  const test::Folder folder;
  write_sequences(folder / "a.h5", 0, 40);
  write_sequences(folder / "b.h5", 40, 51);
  const std::int64_t wanted = GENERATE(0, 6);
  const Dataset data = open_dataset(folder.path(), wanted);
  REQUIRE(data.length() == (wanted > 0 ? wanted : 13));
  REQUIRE(data.cut() == (wanted > 0 ? 49 : 0));
  const std::vector<std::int64_t> buckets =
      GENERATE(std::vector<std::int64_t>{}, std::vector<std::int64_t>{3}, std::vector<std::int64_t>{4, 7, 99});
  const SamplePlan plan(
      plan_request(data, with([&](DataConfig& c) { c.ragged = Ragged::zero_weight, c.buckets = buckets; }), {4, 3}, 4));
  if (buckets.size() == 1 && wanted == 0) REQUIRE(plan.buckets() == std::vector<std::int64_t>{5, 9, 13});
  if (buckets.size() == 3 && wanted == 0) REQUIRE(plan.buckets() == std::vector<std::int64_t>{4, 7, 13});
  if (buckets.size() == 3 && wanted == 6) REQUIRE(plan.buckets() == std::vector<std::int64_t>{4, 6});
  Loader loader(data, plan, {.replica = 1, .buffer_bytes = 1, .end_epoch = 1});
  for (std::int64_t step = 0; step < plan.steps_per_epoch(); ++step) {
    const Batch& batch = loader.next();
    const auto ids = plan.ids(0, step, 1);
    REQUIRE(batch.length == (buckets.empty() ? data.length() : plan.length(0, step)));
    for (std::size_t i = 0; i < ids.size(); ++i) {
      REQUIRE(static_cast<const std::int32_t*>(batch.labels)[i] == ids[i].id % 3);
      REQUIRE(batch.lengths[i] == std::min<std::int64_t>(length_at(ids[i].id), batch.length));
      REQUIRE(static_cast<const float*>(batch.weights)[i] == (ids[i].counts ? 1 : 0));
      for (std::int64_t t = 0; t < batch.length; ++t)
        REQUIRE(static_cast<const std::int32_t*>(batch.samples)[static_cast<std::int64_t>(i) * batch.length + t] ==
                (t < batch.lengths[i] ? (ids[i].id + t) % 7 : 0));
    }
  }
}

TEST_CASE("training and test sequences take the length of the longer set", "[data]") {
  const test::Folder folder;
  write_sequences(folder / "long.h5", 0, 40);
  write_sequences(folder / "short.h5", 0, 2);  // with 1 and 6 tokens
  Dataset train = open_dataset(folder / "short.h5"), test = open_dataset(folder / "long.h5");
  see_alike(test, train);
  REQUIRE((train.length() == 13 && test.length() == 13));
}

TEST_CASE("malformed texts and sequences are named with what is wrong", "[data]") {
  const test::Folder folder;
  write_token_shards(folder / "text.h5", 0, 10);
  REQUIRE_THROWS_WITH(open_dataset(folder / "text.h5"), Contains("data.sequence_length may be at most 9"));
  write_token_shards(folder / "short-text.h5", 0, 1);
  CHECK_THROWS_WITH(open_dataset(folder / "short-text.h5"), Contains("no data.sequence_length is short enough"));
  write_sequences(folder / "good.h5", 0, 9);
  const auto broken = [&](const auto& change) {
    h5::Writer writer(folder / "bad.h5");
    writer.attribute("kind", std::string("sequences"));
    writer.attribute("classes", std::int64_t{3});
    letters(7).write(writer, "vocabulary");
    Ids lengths{2, 1}, tokens{1, 2, 3}, labels{0, 1};
    change(lengths, tokens, labels);
    writer.write_all("lengths", DType::i32, {static_cast<std::int64_t>(lengths.size())}, lengths.data());
    writer.write_all("tokens", DType::i32, {static_cast<std::int64_t>(tokens.size())}, tokens.data());
    writer.write_all("labels", DType::i32, {static_cast<std::int64_t>(labels.size())}, labels.data());
    writer.publish();
    return test::refusal<DataError>([&] {
      const Dataset data = open_dataset(folder / "bad.h5");
      Loader(data, SamplePlan(plan_request(data, {}, {1}, 1)), {}).next();
    });
  };
  CHECK_THAT(broken([](Ids& lengths, Ids&, Ids&) { lengths[1] = 2; }), Contains("add up to 4 steps, but 3 are stored"));
  CHECK_THAT(broken([](Ids& lengths, Ids&, Ids&) { lengths = {3, 0}; }), Contains("sequence 1 has length 0"));
  CHECK_THAT(broken([](Ids&, Ids& tokens, Ids&) { tokens[2] = 7; }), Contains("tokens[2] is 7, must be 0 to 6"));
  CHECK_THAT(broken([](Ids&, Ids&, Ids& labels) { labels.pop_back(); }), Contains("2 samples but 1 labels"));
  CHECK_THAT(broken([](Ids&, Ids&, Ids& labels) { labels[0] = 3; }), Contains("record 0 has label 3"));
  Dataset text = open_dataset(folder / "text.h5", 3), sequences = open_dataset(folder / "good.h5");
  CHECK_THROWS_WITH(see_alike(text, sequences), Contains("holds text, but the training data in"));
  CHECK_THROWS_WITH(open_dataset(folder / "good.h5", with([](DataConfig& c) { c.order = Order::stream; })),
                    Contains("needs a label for each step"));
  CHECK_THROWS_WITH(plan_request(text, with([](DataConfig& c) { c.buckets = {4}; }), {1}, 1),
                    Contains("data.buckets is for sequences"));
}

TEST_CASE("augmented images: the same for every number of replicas, others every epoch", "[data][augment]") {
  const test::Folder folder;
  test::ShardSpec spec;
  spec.sample = {2, 5, 4};
  test::write_shards(folder.path(), {48}, spec);
  const Dataset data = open_dataset(folder.path());
  const Augmentation moving{.crop_padding = 2, .flip = true, .seed = 3};
  const std::int64_t elems = data.sample_shape.elems();
  using Images = std::vector<float>;
  // Returns the images by (epoch, id).
  const auto images = [&](int replicas, const Augmentation& augmentation) {
    const SamplePlan plan(plan_request(data, with([](DataConfig& c) { c.sharding = Sharding::record; }),
                                       std::vector<std::int64_t>(static_cast<std::size_t>(replicas), 16 / replicas),
                                       1));
    std::vector<Images> all(96);
    for (int r = 0; r < replicas; ++r) {
      Loader loader(data, plan, {.replica = r, .augmentation = augmentation, .end_epoch = 2});
      for (std::int64_t step = 0; step < 2 * plan.steps_per_epoch(); ++step) {
        const Batch& batch = loader.next();
        const auto* samples = static_cast<const float*>(batch.samples);
        for (std::int64_t i = 0; i < batch.n; ++i)
          all[static_cast<std::size_t>(batch.epoch * 48 + batch.ids[i])] =
              Images(samples + i * elems, samples + (i + 1) * elems);
      }
    }
    return all;
  };
  const std::vector<Images> still = images(1, {}), one = images(1, moving);
  REQUIRE(images(2, moving) == one);
  REQUIRE(images(4, moving) == one);
  // Each is its image moved by at most 2 in either direction, and perhaps mirrored.
  std::set<std::tuple<int, int, bool>> moves;
  for (std::size_t i = 0; i < one.size(); ++i) {
    int found = 0;
    for (int down = -2; down <= 2; ++down)
      for (int right = -2; right <= 2; ++right)
        for (const bool flip : {false, true}) {
          Images wanted;
          for (int c = 0; c < 2; ++c)
            for (int h = 0; h < 5; ++h)
              for (int w = 0; w < 4; ++w) {
                const int row = h + down, column = (flip ? 3 - w : w) + right;
                const bool inside = row >= 0 && row < 5 && column >= 0 && column < 4;
                wanted.push_back(inside ? still[i][static_cast<std::size_t>((c * 5 + row) * 4 + column)] : 0);
              }
          if (wanted == one[i]) ++found, moves.insert({down, right, flip});
        }
    REQUIRE(found == 1);
  }
  REQUIRE(moves.size() > 30);  // 50 moves are possible
  int alike = 0;
  for (std::size_t id = 0; id < 48; ++id) alike += one[id] == one[48 + id] ? 1 : 0;
  REQUIRE(alike < 8);
}

}  // namespace echelon
