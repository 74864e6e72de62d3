// SPDX-License-Identifier: Apache-2.0
// Names from outside, in everything that the program prints and writes.
#include <catch2/catch.hpp>
#include <filesystem>
#include <regex>

#include "base/atomic_file.hpp"
#include "base/error.hpp"
#include "base/escape.hpp"
#include "h5/file.hpp"
#include "tests/run/trial.hpp"

namespace echelon {
namespace {

namespace fs = std::filesystem;

// Holds characters that matter to terminals, HTML, Markdown tables, quoted text and lines, and a letter in UTF-8.
const std::string kNasty = "a\x1b]0;owned\x07\x1b[31m<script>alert(1)</script>|\"'`$(x)\n#b \xc3\xa9";
const std::string kNoUtf8 = kNasty + "\xff\xc3";  // HDF5 and file systems hold such names too

void write_named(const std::string& path, std::int64_t samples, const std::vector<std::string>& names) {
  const auto classes = static_cast<std::int64_t>(names.size());
  std::vector<std::uint8_t> pixels(static_cast<std::size_t>(samples) * 64), labels;
  for (std::int64_t i = 0; i < samples; ++i) labels.push_back(static_cast<std::uint8_t>(i % classes));
  for (std::size_t i = 0; i < pixels.size(); ++i)
    pixels[i] = static_cast<std::uint8_t>((i * (labels[i / 64] + 3)) % 17);
  h5::Writer writer(path);
  writer.attribute("format", std::string("echelon-samples"));
  writer.attribute("version", std::int64_t{1});
  writer.attribute("classes", classes);
  writer.attribute("scale", 1.0 / 16);
  writer.attribute("class_names", names);
  writer.write_all("samples", DType::u8, {samples, 1, 8, 8}, pixels.data(), {.chunk_rows = 64});
  writer.write_all("labels", DType::u8, {samples}, labels.data(), {.chunk_rows = 64});
  writer.publish();
}

bool is_binary(const std::string& path) {
  return path.ends_with(".h5") || path.find("tfevents") != std::string::npos || path.ends_with(".lock");
}

// Checks a text by the rules of its format.
void check_text(const std::string& name, const std::string& text) {
  CAPTURE(name);
  CHECK(text.find('\x1b') == std::string::npos);
  CHECK(text.find('\x07') == std::string::npos);
  CHECK(escaped_for_terminal(text) == text);  // only UTF-8, without control characters
  const bool is_markup = name.ends_with(".html") || name.ends_with(".svg") || name.ends_with(".xml");
  if (is_markup || name.ends_with(".md")) CHECK(text.find("<script>alert") == std::string::npos);
  if (name.ends_with(".json")) CHECK_NOTHROW(nlohmann::json::parse(text));
  if (name.ends_with(".md")) CHECK_FALSE(std::regex_search(text, std::regex("(^|\n)#b")));
}

}  // namespace

TEST_CASE("names from outside break no terminal, page or file", "[run]") {
  const std::string data = "da|ta <script>alert(1)</script> \xc3\xa9";
  const test::Trial trial(R"(name = "trial"
[model]
zoo = "digits_cnn"
[data]
train = "da|ta <script>alert(1)</script> é/train"
test = "da|ta <script>alert(1)</script> é/test"
[batch]
global = 32
[train]
steps = 4
epochs = 0
[device]
kind = "onednn"
threads = 1
[checkpoint]
every_steps = 2
[evaluate]
metrics = ["macro_f1", "class_recall", "confusion"]
[study]
ranks = [1]
[[study.variants]]
name = "plain"
set = ["train.steps=2"]
)");
  const std::vector<std::string> names = {kNasty, kNoUtf8, "plain"};
  for (const char* part : {"/train", "/test"}) {
    fs::create_directories(trial / (data + part));
    write_named(trial / (data + part + "/a.h5"), 96, names);
  }
  fs::create_directories(trial / "other");
  write_named(trial / "other/a.h5", 32, {"plain", kNoUtf8, kNasty});

  const auto say = [&](const std::vector<std::string>& words, int code) {
    const test::Outcome outcome = trial.echelon(words);
    CAPTURE(words);
    INFO(outcome.out << outcome.err);
    CHECK(outcome.code == code);
    check_text("output", outcome.out);
    check_text("errors", outcome.err);
  };
  say({"data", "inspect", data + "/train"}, kExitOk);
  say({"check", "trial.toml"}, kExitOk);
  say({"train", "trial.toml"}, kExitOk);
  say({"eval", trial.run(), "--classes", "classes.csv"}, kExitOk);
  say({"predict", trial.run(), data + "/test", "--out", "predictions.h5"}, kExitOk);
  say({"report", "results", "--out", "report"}, kExitOk);
  say({"report", "results", "--tensorboard", "events"}, kExitOk);
  say({"scale", "trial.toml", "--set", "checkpoint.every_steps=0"}, kExitOk);
  for (const std::string& set : test::Sets{"data.test=\"other\"", "train.steps=\"" + kNasty + "\"",
                                           "data.train=" + kNasty, kNasty + "=1", "study.variants=" + kNasty})
    say({"check", "trial.toml", "--set", set}, trial.echelon({"check", "trial.toml", "--set", set}).code);
  CHECK(trial.echelon({"check", "trial.toml", "--set", "data.test=\"other\""}).code != kExitOk);
  say({kNasty}, kExitConfig);
  say({"eval", kNasty}, kExitConfig);

  int files = 0;
  for (const auto& entry : fs::recursive_directory_iterator(fs::path(trial / ".")))
    if (const std::string path = entry.path().string(); entry.is_regular_file() && !is_binary(path)) {
      check_text(path, read_file_whole(path));
      ++files;
    }
  CHECK(files > 15);
}

}  // namespace echelon
