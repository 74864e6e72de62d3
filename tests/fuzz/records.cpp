// SPDX-License-Identifier: Apache-2.0
// Reads records that runs and studies leave for later ones: JSON, where an input is a byte, the number of the reader,
// and the file; and orders of arrivals, plain and in their files.
#include <fmt/format.h>

#include <filesystem>
#include <functional>

#include "base/checksum.hpp"
#include "checkpoint/trained_data.hpp"
#include "comm/links/link_matrix.hpp"
#include "exchange/asynchronous/ledger_file.hpp"
#include "exchange/asynchronous/ledger_meetings.hpp"
#include "report/aside.hpp"
#include "report/metrics_file.hpp"
#include "report/record.hpp"
#include "study/cell_record.hpp"
#include "tests/fuzz/mutate.hpp"
#include "tests/fuzz/targets.hpp"
#include "tests/support/ledger_rows.hpp"

namespace echelon::fuzz {
namespace {

namespace fs = std::filesystem;

class RecordsTarget final : public Target {
 public:
  explicit RecordsTarget(const Place& place) : folder_(place.folder + "/run/01") {
    fs::create_directories(folder_);
    const fs::path corpus = fs::path(place.corpus) / "records";
    const std::string here = folder_;
    const auto add = [&](const char* name, const std::string& file, std::function<void()> read) {
      readers_.push_back({read_plain((corpus / name).string()), file, std::move(read)});
      if (readers_.back().usual.empty()) throw Defect("no corpus " + (corpus / name).string());
      texts_.push_back(readers_.back().usual);
    };
    add("status.json", here + "/status.json", [here] { read_run(here); });
    add("summary.json", here + "/summary.json", [here] { read_run(here); });
    add("metrics.jsonl", here + "/metrics.jsonl", [here] { read_metrics(here); });
    add("evaluation.jsonl", here + "/../evaluation.jsonl", [here] { read_aside(here + "/.."); });
    add("cell.json", here + "/cell.json", [here] { study::read_cell(here); });
    add("network.json", here + "/network.json", [here] { network_of(read_link_matrix(here + "/network.json")); });
    add("training_data.json", here + "/training_data.json",
        [here] { read_trained_data(read_plain(here + "/training_data.json"), "fuzz.h5"); });
  }

  std::string draw(Draws& draws) override {
    static const std::vector<std::string> kWords = {
        "null",     "true",     "{}",  "[]",          "\"\"",       "-1",          "1e308",
        "\"x\"",    ",",        ":",   "\"\\ud800\"", "[[[[[[[[[[", "{\"a\":",     "\xff",
        "\"type\"", "\"step\"", "NaN", "0.5",         "\"hosts\"",  "\"version\"", "\"state\""};
    const std::size_t which = draws.below(readers_.size());
    return static_cast<char>(which) + mutate_text(readers_[which].usual, texts_, kWords, draws);
  }

  bool take(const std::string& input) override {
    if (input.empty()) return false;
    const Reader& reader = readers_[static_cast<unsigned char>(input[0]) % readers_.size()];
    write_plain(reader.file, input.substr(1));
    const bool accepted = refused_with({kExitData, kExitConfig}, reader.read);
    fs::remove(reader.file);
    return accepted;
  }

 private:
  struct Reader {
    std::string usual, file;
    std::function<void()> read;
  };
  std::string folder_;
  std::vector<Reader> readers_;
  std::vector<std::string> texts_;
};

// An input is a byte and, for 0, entries; for 1, a file; for 2, the payloads of the file's blocks, each after a byte
// with its length, to which the target adds checksums.
class LedgerTarget final : public Target {
 public:
  explicit LedgerTarget(const Place& place) : path_(place.folder + "/arrivals") {
    LedgerBytes entries;
    for (const LedgerEntry& entry :
         {LedgerEntry{.worker = 0, .new_version = true, .staleness = 300},
          LedgerEntry{.worker = 1, .dropped = true, .staleness = 2}, LedgerEntry{.worker = 9, .kind = AsyncKind::meet},
          LedgerEntry{.worker = 1, .kind = AsyncKind::done}})
      append(entries, entry);
    usual_.emplace_back(entries.begin(), entries.end());
    fs::remove(path_);
    LedgerHeader header;
    header.rank = 1;
    header.ranks = 3;
    header.workers = 2;
    header.device = "cpu";
    LedgerWriter(path_, header).met(3);
    usual_.push_back(read_plain(path_));
    const std::string payload("\1\0\0\0\3\0\0\0\0\0\0\0\2\0\0\0\x10\0", 18);
    usual_.push_back(std::string(1, 18) + payload + std::string(1, 18) + payload);
  }

  std::string draw(Draws& draws) override {
    const std::size_t which = draws.below(usual_.size());
    return static_cast<char>(which) + mutate_bytes(usual_[which], usual_, draws);
  }

  bool take(const std::string& input) override {
    if (input.empty()) return false;
    const std::string content = input.substr(1);
    switch (static_cast<unsigned char>(input[0]) % 3) {
      case 0: {
        const LedgerBytes bytes(content.begin(), content.end());
        const bool rows = refused_with({kExitData}, [&] { test::ledger_rows(bytes); });
        return refused_with({kExitData}, [&] { meetings_of(bytes, 10); }) && rows;
      }
      case 1: write_plain(path_, content); break;
      default: write_plain(path_, sealed(content));
    }
    return refused_with({kExitData}, [&] { read_ledger_file(path_); });
  }

 private:
  std::string sealed(const std::string& payloads) const {
    std::string file;
    std::uint64_t sum = 0;
    const auto block = [&](const std::string& payload) {
      const auto bytes = static_cast<std::uint32_t>(payload.size());
      sum = checksum64(payload.data(), payload.size(), sum);
      file.append(reinterpret_cast<const char*>(&bytes), sizeof bytes);
      file.append(reinterpret_cast<const char*>(&sum), sizeof sum);
      file += payload;
    };
    file = "echelon arrivals 1\n";
    block(
        "rank 0\nranks 2\nworkers 1\nservers 1\npieces 1\nfirst_step 0\ntotal_steps 5\nsamples 9\nconfig a\ndata b\n"
        "weights c\ndevice d\n");
    for (std::size_t at = 0; at < payloads.size();) {
      const std::size_t length = static_cast<unsigned char>(payloads[at]);
      block(payloads.substr(at + 1, length));
      at += 1 + length;
    }
    return file;
  }

  std::string path_;
  std::vector<std::string> usual_;
};

}  // namespace

std::unique_ptr<Target> make_records(const Place& place) { return std::make_unique<RecordsTarget>(place); }
std::unique_ptr<Target> make_ledger(const Place& place) { return std::make_unique<LedgerTarget>(place); }

}  // namespace echelon::fuzz
