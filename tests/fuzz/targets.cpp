// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "tests/fuzz/targets.hpp"

namespace echelon::fuzz {

namespace fs = std::filesystem;

// The usual numbers of inputs together take about 20 s.
const std::vector<TargetEntry>& targets() {
  static const std::vector<TargetEntry> all = {
      {"config", "TOML experiments, --set and environment: parsed, checked, echoed and parsed again", 6000,
       make_config},
      {"study", "TOML experiments with [study]", 1500, make_study},
      {"sentences", "sentences of fault.inject; sizes and rates of the command line", 8000, make_sentences},
      {"shard", "shards that importers wrote, with checksums: refused, or read as the undamaged ones", 3000,
       make_shard},
      {"old_shard", "shards without checksums in the oldest format: no crash", 3000, make_old_shard},
      {"any_hdf5", "files that [data.hdf5] describes: no crash", 3000, make_any_hdf5},
      {"checkpoint", "checkpoints and manifests: passed over, or loaded as the undamaged ones", 3000, make_checkpoint},
      {"loaded", "damaged checkpoints that nobody verified: no crash", 2000, make_loaded},
      {"weights", "safetensors files of model.weights", 10000, make_weights},
      {"import", "files of every importer, compressed too", 3000, make_import},
      {"codec", "messages of every codec: decoded inside their bounds, or refused", 100000, make_codec},
      {"strom", "messages of strategy strom", 100000, make_strom},
      {"async_machine", "messages to the asynchronous server's protocol", 10000, make_async_machine},
      {"server_machine", "messages to the synchronous server's protocol", 10000, make_server_machine},
      {"backup_machine", "messages to the protocol of backup workers", 10000, make_backup_machine},
      {"strom_machine", "messages to the protocol of strategy strom", 20000, make_strom_machine},
      {"records", "run records, metrics, cells of studies, networks, traces of training data: JSON", 6000,
       make_records},
      {"ledger", "orders of arrivals, and their files", 20000, make_ledger},
  };
  return all;
}

std::vector<std::string> corpus_of(const Place& place, const std::string& name) {
  std::vector<fs::path> paths;
  std::error_code error;
  const fs::path folder = fs::path(place.corpus) / name;
  for (fs::recursive_directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error))
    if (entry->is_regular_file() && entry->path().extension() != ".md") paths.push_back(entry->path());
  if (paths.empty()) throw Defect("no corpus in " + folder.string() + "; run from the repository, or give --corpus");
  std::sort(paths.begin(), paths.end());
  std::vector<std::string> all;
  for (const fs::path& path : paths) all.push_back(read_plain(path.string()));
  return all;
}

void write_plain(const std::string& path, const std::string& content) {
  std::error_code ignored;
  fs::remove(path, ignored);  // HDF5 identifies an open file by its inode, which a new file must not reuse
  std::ofstream file(path, std::ios::binary);
  if (!file.write(content.data(), static_cast<std::streamsize>(content.size())) || !file.flush())
    throw std::runtime_error(path + ": cannot be written");
}

std::string read_plain(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream content;
  content << file.rdbuf();
  return content.str();
}

}  // namespace echelon::fuzz
