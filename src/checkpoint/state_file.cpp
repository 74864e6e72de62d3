// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/state_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/atomic_file.hpp"
#include "base/check.hpp"
#include "base/checksum.hpp"
#include "base/error.hpp"

namespace echelon::inline checkpoint {
namespace {

class StructurePass final : public StateVisitor {
 public:
  explicit StructurePass(h5::Writer& writer) : writer_(writer) {}
  bool loading() const override { return false; }
  void tensor(const StateTensor& t) override { writer_.reserve(t.name, t.dtype, held_shape(t)); }
  void scalar(std::string_view name, std::int64_t& value, Absent) override { writer_.attribute(name, value); }
  void scalar(std::string_view name, double& value, Absent) override { writer_.attribute(name, value); }

 private:
  h5::Writer& writer_;
};

// Writes the values to their offsets in the file.
class ValuesPass final : public StateVisitor {
 public:
  ValuesPass(const h5::Writer& writer, const std::string& path, const std::vector<h5::DatasetPlace>& places)
      : path_(path), file_(::open(writer.temporary().c_str(), O_WRONLY | O_NOFOLLOW | O_CLOEXEC)) {
    if (file_ < 0) throw EnvironmentError(fmt::format("{}: cannot be written: {}", path, std::strerror(errno)));
    for (const h5::DatasetPlace& place : places) offsets_[place.name] = place.offset;
  }
  ~ValuesPass() override {
    if (file_ >= 0) ::close(file_);
  }
  ValuesPass(const ValuesPass&) = delete;
  bool loading() const override { return false; }
  void scalar(std::string_view, std::int64_t&, Absent) override {}
  void scalar(std::string_view, double&, Absent) override {}
  void tensor(const StateTensor& t) override {
    const std::size_t bytes = static_cast<std::size_t>(t.shape.elems()) * size_of(t.dtype);
    if (bytes == 0) return;
    const auto place = offsets_.find(t.name);
    ECHELON_CHECK(place != offsets_.end(), "'{}' has no place in {}", t.name, path_);
    SavedValues saved{.name = std::string(t.name),
                      .dtype = std::string(name_of(t.dtype)),
                      .offset = place->second,
                      .bytes = bytes,
                      .region = region_of(t),
                      .folded = folded_axis(t)};
    const auto* from = static_cast<const std::byte*>(t.data);
    for (std::size_t at = 0, now = kSumBlock; now == kSumBlock; at += now) {
      now = std::min(bytes - at, kSumBlock);
      saved.checksum = checksum64(from + at, now, saved.checksum);
      write_at(file_, path_, from + at, now, saved.offset + at);
    }
    values_.push_back(std::move(saved));
  }
  std::vector<SavedValues> close() {
    if (::close(std::exchange(file_, -1)) != 0)
      throw EnvironmentError(fmt::format("{}: cannot be written: {}", path_, std::strerror(errno)));
    return std::move(values_);
  }

 private:
  std::string path_;
  int file_;
  std::map<std::string, std::uint64_t, std::less<>> offsets_;
  std::vector<SavedValues> values_;
};

}  // namespace

void begin_checkpoint(h5::Writer& writer, std::int64_t version, const SaveOptions& options) {
  writer.attribute("echelon_format", std::string(kCheckpointFormat));
  writer.attribute("format_version", version);
  if (!options.training_data.empty()) writer.attribute("training_data", options.training_data);
}

std::vector<SavedValues> write_state(h5::Writer& writer, const std::string& path, const VisitAll& visit) {
  StructurePass structure(writer);
  visit(structure);
  ValuesPass values(writer, path, writer.lay_out());
  visit(values);
  return values.close();
}

void require_as_written(const h5::Writer& writer, const std::string& path, const nlohmann::ordered_json& manifest) {
  sync_file(writer.temporary());
  if (const std::string wrong = difference(writer.temporary(), manifest, true); !wrong.empty())
    throw EnvironmentError(fmt::format(
        "{}: was not written correctly, earlier checkpoints are kept; when it was read back, {}", path, wrong));
}

void publish_checkpoint(h5::Writer& writer, const std::string& path, const nlohmann::ordered_json& manifest,
                        const SaveOptions& options) {
  if (options.verify) require_as_written(writer, path, manifest);
  if (options.before_publish) options.before_publish();
  publish_counted(path, manifest, [&] { writer.publish(); });
  set_latest(std::filesystem::path(path).parent_path().string(), manifest.at("step").get<std::int64_t>());
}

}  // namespace echelon::inline checkpoint
