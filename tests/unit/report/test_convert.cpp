// SPDX-License-Identifier: Apache-2.0
// Records are read back as other programs read them: event files by a separate decoder, MLPerf lines as JSON.
#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/checksum.hpp"
#include "report/convert/mllog.hpp"
#include "report/convert/tensorboard.hpp"

namespace echelon::test {
namespace {

RunRecord started_run() {
  RunRecord run;
  run.model = "lenet";
  run.state = "finished";
  run.global_batch = 64;
  run.provenance.seed = 7;
  run.provenance.started = "2026-01-31T12:00:00Z";  // 1769860800
  run.start_to_first_step_s = 3;
  return run;
}

MetricsRows three_steps() {
  MetricsRows rows;
  for (int i = 1; i <= 3; ++i) {
    StepFigures step;
    step.step = i;
    step.loss = 2.5 / i;
    step.time.total_s = 1;
    step.time.forward_s = 0.25;
    rows.steps.push_back(step);
  }
  rows.epochs.push_back({.epoch = 1, .step = 2, .train_loss = 1.875});
  rows.epochs.push_back({.epoch = 2, .step = 3, .train_loss = 1, .test_accuracy = 0.5});
  return rows;
}

// Decodes protobuf's wire format: fields by number, for a message that repeats only fields of bytes.
struct Message {
  std::map<int, double> numbers;                  // varint, fixed64 as double, fixed32 as float
  std::map<int, std::vector<std::string>> texts;  // bytes
};

std::uint64_t take_varint(std::string_view& in) {
  std::uint64_t value = 0;
  for (int shift = 0;; shift += 7) {
    REQUIRE(!in.empty());
    const auto byte = static_cast<unsigned char>(in.front());
    in.remove_prefix(1);
    value |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
    if (byte < 0x80) return value;
  }
}

template <class T>
T take_fixed(std::string_view& in) {
  T value;
  REQUIRE(in.size() >= sizeof value);
  std::memcpy(&value, in.data(), sizeof value);
  in.remove_prefix(sizeof value);
  return value;
}

Message decode(std::string_view in) {
  Message out;
  while (!in.empty()) {
    const std::uint64_t key = take_varint(in);
    const int field = static_cast<int>(key >> 3);
    switch (key & 7) {
      case 0: out.numbers[field] = static_cast<double>(take_varint(in)); break;
      case 1: out.numbers[field] = take_fixed<double>(in); break;
      case 5: out.numbers[field] = take_fixed<float>(in); break;
      case 2: {
        const std::uint64_t size = take_varint(in);
        REQUIRE(in.size() >= size);
        out.texts[field].emplace_back(in.substr(0, size));
        in.remove_prefix(size);
        break;
      }
      default: FAIL("wire type " << (key & 7));
    }
  }
  return out;
}

// Computes the checksum bit by bit, from the definition.
std::uint32_t slow_crc32c(std::string_view bytes) {
  std::uint32_t crc = 0xffffffffU;
  for (const char byte : bytes)
    for (int bit = 0; bit < 8; ++bit) {
      const std::uint32_t carry = (crc ^ (static_cast<unsigned char>(byte) >> bit)) & 1U;
      crc = (crc >> 1) ^ (carry * 0x82f63b78U);
    }
  return ~crc;
}

std::vector<Message> records_of(std::string_view file) {
  const auto masked = [](std::string_view bytes) {
    const std::uint32_t crc = slow_crc32c(bytes);
    return ((crc >> 15) | (crc << 17)) + 0xa282ead8U;
  };
  std::vector<Message> all;
  while (!file.empty()) {
    const std::string_view head = file.substr(0, 8);
    const auto size = take_fixed<std::uint64_t>(file);
    REQUIRE(take_fixed<std::uint32_t>(file) == masked(head));
    const std::string_view data = file.substr(0, size);
    file.remove_prefix(size);
    REQUIRE(take_fixed<std::uint32_t>(file) == masked(data));
    all.push_back(decode(data));
  }
  return all;
}

// Returns the scalars of an event by tag.
std::map<std::string, double> scalars_of(const Message& event) {
  std::map<std::string, double> all;
  const Message summary = decode(event.texts.at(5).at(0));
  for (const std::string& text : summary.texts.at(1)) {
    const Message value = decode(text);
    all[value.texts.at(1).at(0)] = value.numbers.at(2);
  }
  return all;
}

}  // namespace

TEST_CASE("CRC-32C has the values of RFC 3720", "[report][convert]") {
  CHECK(crc32c("123456789") == 0xe3069283U);
  CHECK(crc32c(std::string(32, '\0')) == 0x8a9136aaU);
  CHECK(crc32c(std::string(32, '\xff')) == 0x62a8ab43U);
  CHECK(crc32c("") == 0);
}

TEST_CASE("an event file read back holds the version, then every known number of every row", "[report][convert]") {
  const std::vector<Message> records = records_of(tensorboard_events(started_run(), three_steps()));
  REQUIRE(records.size() == 1 + 3 + 2);
  CHECK(records[0].texts.at(3).at(0) == "brain.Event:2");
  CHECK(records[0].numbers.at(1) == 1769860800.0);
  for (int i = 1; i <= 3; ++i) {
    const Message& event = records[static_cast<std::size_t>(i < 3 ? i : 4)];
    CHECK(event.numbers.at(2) == i);
    CHECK(event.numbers.at(1) == 1769860800.0 + 2 + i);
    const auto scalars = scalars_of(event);
    CHECK(scalars.at("step/loss") == Approx(2.5 / i));
    CHECK(scalars.at("time/forward") == 0.25);
    CHECK(scalars.at("time/other") == 0.75);
    CHECK(scalars.count("step/gradient_norm") == 0);  // unknown values are left out
  }
  // Records are in the order of steps.
  CHECK(scalars_of(records[3]).at("epoch/train_loss") == 1.875);
  CHECK(scalars_of(records[3]).count("epoch/test_accuracy") == 0);
  CHECK(scalars_of(records[5]).at("epoch/test_accuracy") == 0.5);
  CHECK(records[5].numbers.at(2) == 3);
}

TEST_CASE("MLPerf lines: keys in order, times of provenance and steps, intervals that close", "[report][convert]") {
  std::istringstream lines(mllog_lines(started_run(), three_steps()));
  std::vector<nlohmann::json> rows;
  for (std::string line; std::getline(lines, line);) {
    REQUIRE(line.starts_with(":::MLLOG {"));
    rows.push_back(nlohmann::json::parse(line.substr(9)));
  }
  std::map<std::string, int> open;
  std::int64_t last = 0;
  for (const nlohmann::json& row : rows) {
    const std::string key = row["key"], type = row["event_type"];
    CHECK(row["time_ms"] >= last);
    last = row["time_ms"];
    if (type == "INTERVAL_START") ++open[key.substr(0, key.rfind('_'))];
    if (type == "INTERVAL_END") --open[key.substr(0, key.rfind('_'))];
    if (key == "global_batch_size") CHECK(row["value"] == 64);
    if (key == "eval_accuracy") CHECK(row["value"] == 0.5);
    if (key == "eval_accuracy") CHECK(row["metadata"]["epoch_num"] == 2);
  }
  for (const auto& [key, count] : open) CHECK(count == 0);
  CHECK(open.size() == 4);  // init, run, epoch and eval are open
  CHECK(rows.front()["time_ms"] == 1769860800000);
  CHECK(rows.back()["key"] == "run_stop");
  CHECK(rows.back()["metadata"]["status"] == "success");
  CHECK(rows.back()["time_ms"] == 1769860805000);
}

}  // namespace echelon::test
