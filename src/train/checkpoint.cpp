#include "train/checkpoint.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <vector>

#include "base/atomic_file.hpp"
#include "base/box.hpp"
#include "base/check.hpp"
#include "base/checksum.hpp"
#include "base/error.hpp"
#include "base/log.hpp"
#include "h5/file.hpp"

namespace echelon {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

namespace {

constexpr const char* kFormat = "echelon-checkpoint";
constexpr std::int64_t kVersionOfFormat = 1;

std::string stem_of(std::int64_t step) { return fmt::format("step-{:08}", step); }

// As it stands in the file.
Shape whole_shape(const StateTensor& tensor) {
  return tensor.placement == Placement::replicated ? tensor.shape : tensor.global_shape.folded(tensor.folded);
}

std::size_t bytes_of(const StateTensor& tensor) {
  return static_cast<std::size_t>(tensor.shape.elems()) * size_of(tensor.dtype);
}

class Saver final : public StateVisitor {
 public:
  Saver(h5::Writer& writer, const WholeTensors& wholes) : writer_(writer), wholes_(wholes) {}
  bool loading() const override { return false; }
  void tensor(const StateTensor& t) override {
    const Shape shape = whole_shape(t);
    const void* data = t.data;
    if (shape != t.shape) {
      const auto whole = wholes_.find(t.name);
      ECHELON_CHECK(whole != wholes_.end(), "'{}' is {} of {}", t.name, t.shape.text(), shape.text());
      data = whole->second.bytes.data();
    }
    write(std::string(t.name), t.dtype, shape, data);
  }
  // What other ranks hold of the model.
  void write_rest() {
    for (const auto& [name, whole] : wholes_)
      if (!written_.contains(name)) write(name, whole.dtype, whole.shape, whole.bytes.data());
  }
  void scalar(std::string_view name, std::int64_t& value) override { writer_.attribute(name, value); }
  void scalar(std::string_view name, double& value) override { writer_.attribute(name, value); }
  ordered_json manifest() const { return manifest_; }

 private:
  void write(const std::string& name, DType dtype, const Shape& shape, const void* data) {
    const std::size_t bytes = static_cast<std::size_t>(shape.elems()) * size_of(dtype);
    writer_.write_all(name, dtype, shape, data);
    written_.insert(name);
    manifest_.push_back({{"name", name},
                         {"dtype", std::string(name_of(dtype))},
                         {"bytes", bytes},
                         {"checksum64", hex64(checksum64(data, bytes))}});
  }

  h5::Writer& writer_;
  const WholeTensors& wholes_;
  std::set<std::string> written_;
  ordered_json manifest_ = ordered_json::array();
};

class Restorer final : public StateVisitor {
 public:
  explicit Restorer(const h5::Reader& reader) : reader_(reader) {}
  bool loading() const override { return true; }
  void tensor(const StateTensor& t) override {
    if (t.shape.elems() == 0) return;
    const Shape shape = whole_shape(t);
    if (t.absent_is_zero && !reader_.has(t.name)) {
      log_info("{} has no '{}': it begins anew", reader_.path(), t.name);
      std::memset(t.data, 0, bytes_of(t));
      return;
    }
    const h5::DatasetInfo info = reader_.info(t.name);
    if (t.placement == Placement::per_replica && info.shape.rank() == shape.rank() && info.shape[0] != shape[0] &&
        info.shape.without_front() == shape.without_front() && info.dtype == t.dtype)
      return of_other_replicas(t, info.shape[0]);
    if (t.other_k == OtherK::reset && info.shape != shape) {
      std::memset(t.data, 0, bytes_of(t));
      return;
    }
    if (info.shape != shape || info.dtype != t.dtype)
      throw DataError(fmt::format("{}: '{}' is {} of {}, this run needs {} of {}", reader_.path(), t.name,
                                  info.shape.text(), name_of(info.dtype), shape.text(), name_of(t.dtype)));
    if (shape == t.shape)
      reader_.read_all(t.name, t.data, t.dtype);
    else if (t.shape.without_front() == shape.without_front())
      reader_.read_rows(t.name, t.offset[0], t.shape[0], t.data, t.dtype);
    else
      read_box(t);
  }
  void scalar(std::string_view name, std::int64_t& value) override { value = reader_.attribute_int(name); }
  void scalar(std::string_view name, double& value) override { value = reader_.attribute_double(name); }

 private:
  void read_box(const StateTensor& t) {
    std::vector<std::byte> all(static_cast<std::size_t>(t.global_shape.elems()) * size_of(t.dtype));
    reader_.read_all(t.name, all.data(), t.dtype);
    copy_from_whole({t.shape, t.global_shape, t.offset}, size_of(t.dtype), all.data(), t.data);
  }

  // What `was` replicas had, for another number of them.
  void of_other_replicas(const StateTensor& t, std::int64_t was) {
    if (t.other_k == OtherK::refuse)
      throw DataError(fmt::format("{}: '{}' is that of {} replicas, this run has {}", reader_.path(), t.name, was,
                                  t.global_shape[0]));
    std::memset(t.data, 0, bytes_of(t));
    if (t.other_k == OtherK::reset) return;
    const auto now = static_cast<double>(t.global_shape[0]);
    with_float(t.dtype, [&](auto zero) {
      using T = decltype(zero);
      const Box box{t.shape.without_front(), t.global_shape.without_front(), t.offset.without_front()};
      std::vector<T> whole(static_cast<std::size_t>(box.whole.elems())),
          row(static_cast<std::size_t>(box.shape.elems()));
      std::vector<double> sum(row.size());
      for (std::int64_t r = 0; r < was; ++r) {
        reader_.read_rows(t.name, r, 1, whole.data(), t.dtype);
        copy_from_whole(box, sizeof(T), whole.data(), row.data());
        for (std::size_t i = 0; i < row.size(); ++i) sum[i] += static_cast<double>(row[i]);
      }
      for (std::size_t i = 0; i < row.size(); ++i) static_cast<T*>(t.data)[i] = static_cast<T>(sum[i] / now);
    });
  }

  const h5::Reader& reader_;
};

class Summer final : public StateVisitor {
 public:
  bool loading() const override { return false; }
  void tensor(const StateTensor& t) override { add(t.name, t.data, bytes_of(t)); }
  void scalar(std::string_view name, std::int64_t& value) override { add(name, &value, sizeof value); }
  void scalar(std::string_view name, double& value) override { add(name, &value, sizeof value); }
  std::uint64_t sum() const { return sum_; }

 private:
  void add(std::string_view name, const void* data, std::size_t bytes) {
    sum_ = checksum64(data, bytes, checksum64(name.data(), name.size(), sum_));
  }
  std::uint64_t sum_ = 0;
};

// Empty where every dataset of the manifest is in the file with the bytes that were written; else what is wrong.
std::string damage(const std::string& folder, const std::string& stem) {
  try {
    const auto manifest = ordered_json::parse(read_file_whole(fmt::format("{}/{}.json", folder, stem)));
    const h5::Reader reader(fmt::format("{}/{}.h5", folder, stem));
    if (manifest.at("format") != kFormat || manifest.at("version") != kVersionOfFormat)
      return "its manifest is of another format";
    std::vector<std::byte> bytes;
    for (const auto& entry : manifest.at("datasets")) {
      const std::string name = entry.at("name");
      const h5::DatasetInfo info = reader.info(name);
      const std::size_t size = static_cast<std::size_t>(info.shape.elems()) * size_of(info.dtype);
      if (size != entry.at("bytes").get<std::size_t>())
        return fmt::format("'{}' does not have the size of the manifest", name);
      bytes.resize(size);
      reader.read_all(name, bytes.data(), info.dtype);
      if (hex64(checksum64(bytes.data(), size)) != entry.at("checksum64").get<std::string>())
        return fmt::format("'{}' does not have the checksum of the manifest", name);
    }
    return {};
  } catch (const nlohmann::json::exception&) {
    return "its manifest cannot be read";
  } catch (const Error& error) {
    return error.what();
  }
}

// Steps of the checkpoints that have a manifest, newest first.
std::vector<std::int64_t> steps_in(const std::string& folder) {
  std::vector<std::int64_t> steps;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    std::int64_t step = 0;
    const std::string name = entry->path().filename().string();
    if (std::sscanf(name.c_str(), "step-%" SCNd64, &step) == 1 && name == stem_of(step) + ".json")
      steps.push_back(step);
  }
  std::sort(steps.rbegin(), steps.rend());
  return steps;
}

}  // namespace

CheckpointInfo save_checkpoint(const std::string& folder, std::int64_t step, const VisitAll& visit,
                               const WholeTensors& wholes) {
  const std::string stem = stem_of(step);
  const std::string path = fmt::format("{}/{}.h5", folder, stem);
  const std::string manifest_path = fmt::format("{}/{}.json", folder, stem);
  std::error_code ignored;
  fs::remove(manifest_path, ignored);  // of an earlier attempt: while the file changes it must not count
  h5::Writer writer(path);
  writer.attribute("echelon_format", std::string(kFormat));
  writer.attribute("format_version", kVersionOfFormat);
  Saver saver(writer, wholes);
  visit(saver);
  saver.write_rest();
  writer.publish();
  const ordered_json manifest = {
      {"format", kFormat}, {"version", kVersionOfFormat}, {"step", step}, {"datasets", saver.manifest()}};
  try {
    write_file_whole(manifest_path, manifest.dump(1) + "\n");
  } catch (...) {
    fs::remove(path, ignored);
    throw;
  }
  write_file_whole(folder + "/latest", stem + "\n");
  return {path, step};
}

std::optional<CheckpointInfo> find_checkpoint(const std::string& folder) {
  for (const std::int64_t step : steps_in(folder)) {
    const std::string stem = stem_of(step);
    const std::string wrong = damage(folder, stem);
    if (wrong.empty()) return CheckpointInfo{fmt::format("{}/{}.h5", folder, stem), step};
    log_warning("checkpoint {}/{} is damaged and passed over: {}", folder, stem, wrong);
  }
  return {};
}

void load_checkpoint(const std::string& path, const VisitAll& visit) {
  const h5::Reader reader(path);
  if (!reader.has_attribute("echelon_format") || reader.attribute_text("echelon_format") != kFormat)
    throw DataError(fmt::format("{}: is no checkpoint of echelon", path));
  Restorer restorer(reader);
  visit(restorer);
}

void prune_checkpoints(const std::string& folder, std::int64_t keep) {
  const auto steps = steps_in(folder);
  std::vector<std::string> kept = {"latest"};
  for (std::size_t i = 0; i < steps.size() && i < static_cast<std::size_t>(keep); ++i)
    for (const char* extension : {".h5", ".json"}) kept.push_back(stem_of(steps[i]) + extension);
  std::vector<fs::path> gone;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    const bool ours = name.starts_with("step-") || name.starts_with("latest");
    if (ours && std::find(kept.begin(), kept.end(), name) == kept.end()) gone.push_back(entry->path());
  }
  // Manifests first: a file without one does not count, whatever happens in between.
  std::stable_partition(gone.begin(), gone.end(), [](const fs::path& p) { return p.extension() == ".json"; });
  for (const fs::path& path : gone) fs::remove(path, error);
}

std::uint64_t state_checksum(const VisitAll& visit) {
  Summer summer;
  visit(summer);
  return summer.sum();
}

}  // namespace echelon
