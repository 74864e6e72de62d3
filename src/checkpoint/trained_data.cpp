// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/trained_data.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/checksum.hpp"
#include "base/error.hpp"
#include "h5/file.hpp"

namespace echelon::inline checkpoint {
namespace {

using nlohmann::ordered_json;

std::vector<std::int64_t> extents(const Shape& shape) { return {shape.extents().begin(), shape.extents().end()}; }

std::string sum_of(const Vocabulary& vocabulary) {
  if (vocabulary.size() == 0) return {};
  std::uint64_t sum = 0;
  for (const std::string& entry : vocabulary.entries()) sum = checksum64(entry.data(), entry.size(), sum);
  return hex64(sum);
}

ordered_json to_json(const TrainedData& data) {
  ordered_json json{{"kind", data.kind},
                    {"samples", data.samples},
                    {"sample_shape", data.sample_shape},
                    {"label_shape", data.label_shape},
                    {"classes", data.classes},
                    {"target_length", data.target_length},
                    {"mean", data.mean},
                    {"std", data.std},
                    {"class_names", data.class_names},
                    {"vocabulary", data.vocabulary},
                    {"target_vocabulary", data.target_vocabulary},
                    {"fingerprint", data.fingerprint}};
  if (!data.class_weights.empty()) json["class_weights"] = data.class_weights;
  if (data.step_labels) json["step_labels"] = true;
  return json;
}

std::string dump(const ordered_json& json) { return json.dump(-1, ' ', false, ordered_json::error_handler_t::replace); }

// Leaves out the shards' folder, so that moved data stay the same data, and everything that a test set may change.
std::string fingerprint_of(const Dataset& train, TrainedData data) {
  if (train.has_sequences() && train.kind != DataKind::text) data.sample_shape.front() = 0;
  data.target_length = 0;
  data.class_weights.clear();  // they belong to the model's keys
  std::string all = dump(to_json(data));
  for (const Shard& shard : train.shards)
    all += fmt::format("\n{} {} {}", std::filesystem::path(shard.path).filename().string(), shard.samples, shard.bytes);
  return hex64(checksum64(all));
}

// Lengths of sequences, the first extent, may differ.
bool same_samples(const Dataset& test, const TrainedData& trained) {
  std::vector<std::int64_t> here = extents(test.view.shape_of(test.sample_shape)), there = trained.sample_shape;
  if (here.size() != there.size()) return false;
  if (test.has_sequences()) here.front() = there.front();
  return here == there;
}

}  // namespace

TrainedData trained_data_of(const Dataset& train) {
  TrainedData data;
  data.kind = name_of(train.kind);
  data.samples = train.samples();
  data.sample_shape = extents(train.view.shape_of(train.sample_shape));
  data.label_shape = extents(train.label_shape);
  data.step_labels = train.step_labels;
  data.classes = train.classes;
  data.target_length = train.target_length;
  data.mean = train.mean;
  data.std = train.std;
  data.class_weights = train.label_weights.by_class;
  data.class_names = train.class_names;
  data.vocabulary = sum_of(train.vocabulary);
  data.target_vocabulary = sum_of(train.target_vocabulary);
  data.fingerprint = fingerprint_of(train, data);
  return data;
}

std::string to_text(const TrainedData& data) { return dump(to_json(data)); }

TrainedData read_trained_data(const std::string& text, const std::string& path) {
  try {
    const auto json = ordered_json::parse(text);
    TrainedData data;
    json.at("kind").get_to(data.kind);
    json.at("samples").get_to(data.samples);
    json.at("sample_shape").get_to(data.sample_shape);
    json.at("label_shape").get_to(data.label_shape);
    data.step_labels = json.value("step_labels", false);
    json.at("classes").get_to(data.classes);
    json.at("target_length").get_to(data.target_length);
    json.at("mean").get_to(data.mean);
    json.at("std").get_to(data.std);
    if (json.contains("class_weights")) json.at("class_weights").get_to(data.class_weights);
    json.at("class_names").get_to(data.class_names);
    json.at("vocabulary").get_to(data.vocabulary);
    json.at("target_vocabulary").get_to(data.target_vocabulary);
    json.at("fingerprint").get_to(data.fingerprint);
    return data;
  } catch (const nlohmann::json::exception&) {
    throw DataError(path + ": its attribute 'training_data' cannot be read");
  }
}

TrainedData trained_data_in(const std::string& checkpoint) {
  return read_trained_data(h5::Reader(checkpoint).attribute_text("training_data"), checkpoint);
}

SampleForm trained_form(const TrainedData& data, bool stream, std::int64_t vocabulary) {
  Dataset like;
  for (const DataKind kind : {DataKind::samples, DataKind::text, DataKind::sequences, DataKind::pairs})
    if (name_of(kind) == data.kind) like.kind = kind;
  like.sample_shape = Shape(data.sample_shape);
  like.label_shape = Shape(data.label_shape);
  like.step_labels = data.step_labels;
  like.classes = data.classes;
  like.target_length = data.target_length;
  like.stream = stream;
  SampleForm form = like.form();
  if (!data.vocabulary.empty()) form.vocabulary = vocabulary;
  return form;
}

void see_as_trained(Dataset& test, const TrainedData& trained, const std::string& checkpoint) {
  const std::string& path = test.shards[0].path;
  const auto differ = [&](const std::string& here, const std::string& there) {
    throw DataError(fmt::format("{}: holds {}; the model of {} was trained on {}", path, here, checkpoint, there));
  };
  const auto list = [](const std::vector<std::int64_t>& values) {
    return fmt::format("({})", fmt::join(values, ", "));
  };
  if (name_of(test.kind) != trained.kind) differ(std::string(name_of(test.kind)), trained.kind);
  if (!test.labelled) {
    test.label_shape = Shape(trained.label_shape);
    test.step_labels = trained.step_labels;
    if (test.classes == 0) test.classes = trained.classes;
  }
  if (!same_samples(test, trained) || test.classes != trained.classes)
    differ(fmt::format("samples of {} and {} classes", test.sample_shape.text(), test.classes),
           fmt::format("{} and {}", list(trained.sample_shape), trained.classes));
  if (test.step_labels != trained.step_labels)
    differ(test.step_labels ? "a label for each step" : "a label for each sample",
           trained.step_labels ? "one for each step" : "one for each sample");
  if (extents(test.label_shape) != trained.label_shape)
    differ("labels of " + test.label_shape.text(), list(trained.label_shape));
  if (test.labelled && !test.class_names.empty() && !trained.class_names.empty() &&
      test.class_names != trained.class_names)
    throw DataError(
        fmt::format("{}: numbers its classes [{}], but the training data of {} numbers them [{}]; import it --like the "
                    "training data",
                    path, fmt::join(test.class_names, ", "), checkpoint, fmt::join(trained.class_names, ", ")));
  if (sum_of(test.vocabulary) != trained.vocabulary || sum_of(test.target_vocabulary) != trained.target_vocabulary)
    throw DataError(
        fmt::format("{}: its vocabulary differs from that of the training data of {}; hold out a part of the data when "
                    "they are imported, or import it --like the training data",
                    path, checkpoint));
  test.mean = trained.mean;
  test.std = trained.std;
  test.label_weights.by_class = trained.class_weights;
  if (test.class_names.empty() || !test.labelled) test.class_names = trained.class_names;
  if (!test.has_sequences()) return;
  test.sample_shape = test.sample_shape.with_front(std::max(test.length(), trained.sample_shape.front()));
  test.target_length = std::max(test.target_length, trained.target_length);
}

}  // namespace echelon::inline checkpoint
