#include "checkpoint/checkpoint.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>
#include <vector>

#include "base/atomic_file.hpp"
#include "base/check.hpp"
#include "base/checksum.hpp"
#include "base/error.hpp"
#include "base/log.hpp"
#include "base/tensor_region.hpp"
#include "h5/file.hpp"

namespace echelon::inline checkpoint {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

namespace {

bool is_real(DType dtype) { return dtype == DType::f32 || dtype == DType::f64; }

std::size_t bytes_of(const StateTensor& tensor) {
  return static_cast<std::size_t>(tensor.shape.elems()) * size_of(tensor.dtype);
}

// Passes over all tensors of a file, whole: those that are visited, then those that other ranks hold of the model.
class FilePass : public StateVisitor {
 public:
  explicit FilePass(const WholeTensors& wholes) : wholes_(wholes) {}
  bool loading() const override { return false; }
  void run(const VisitAll& visit) {
    visit(*this);
    for (const auto& [name, whole] : wholes_)
      if (!passed_.contains(name)) store(name, whole.dtype, whole.shape, whole.bytes.data());
  }
  void tensor(const StateTensor& t) override {
    const Shape shape = whole_shape(t);
    const void* data = t.data;
    if (shape != t.shape) {
      const auto whole = wholes_.find(t.name);
      ECHELON_CHECK(whole != wholes_.end(), "'{}' is {} of {}", t.name, t.shape.text(), shape.text());
      data = whole->second.bytes.data();
    }
    passed_.emplace(t.name);
    store(std::string(t.name), t.dtype, shape, data);
  }

 protected:
  virtual void store(const std::string& name, DType dtype, const Shape& shape, const void* data) = 0;

 private:
  const WholeTensors& wholes_;
  std::set<std::string, std::less<>> passed_;
};

class StructurePass final : public FilePass {
 public:
  StructurePass(h5::Writer& writer, const WholeTensors& wholes) : FilePass(wholes), writer_(writer) {}
  void scalar(std::string_view name, std::int64_t& value) override { writer_.attribute(name, value); }
  void scalar(std::string_view name, double& value) override { writer_.attribute(name, value); }

 private:
  void store(const std::string& name, DType dtype, const Shape& shape, const void*) override {
    writer_.reserve(name, dtype, shape);
  }

  h5::Writer& writer_;
};

// Writes values to their places, in blocks that are summed while they are in the cache.
class ValuesPass final : public FilePass {
 public:
  ValuesPass(const h5::Writer& writer, const std::string& path, const std::vector<h5::DatasetPlace>& places,
             const WholeTensors& wholes)
      : FilePass(wholes), path_(path), file_(::open(writer.temporary().c_str(), O_WRONLY | O_NOFOLLOW | O_CLOEXEC)) {
    if (file_ < 0) throw EnvironmentError(fmt::format("{}: cannot be written: {}", path, std::strerror(errno)));
    for (const h5::DatasetPlace& place : places) offsets_[place.name] = place.offset;
  }
  ~ValuesPass() override {
    if (file_ >= 0) ::close(file_);
  }
  ValuesPass(const ValuesPass&) = delete;
  void scalar(std::string_view, std::int64_t&) override {}
  void scalar(std::string_view, double&) override {}
  std::vector<SavedValues> close() {
    if (::close(std::exchange(file_, -1)) != 0)
      throw EnvironmentError(fmt::format("{}: cannot be written: {}", path_, std::strerror(errno)));
    return std::move(values_);
  }

 private:
  void store(const std::string& name, DType dtype, const Shape& shape, const void* data) override {
    const std::size_t bytes = static_cast<std::size_t>(shape.elems()) * size_of(dtype);
    if (bytes == 0) return;
    const auto place = offsets_.find(name);
    ECHELON_CHECK(place != offsets_.end(), "'{}' has no place in {}", name, path_);
    SavedValues saved{.name = name, .dtype = std::string(name_of(dtype)), .offset = place->second, .bytes = bytes};
    const auto* from = static_cast<const std::byte*>(data);
    for (std::size_t at = 0, now = kSumBlock; now == kSumBlock; at += now) {
      now = std::min(bytes - at, kSumBlock);
      saved.checksum = checksum64(from + at, now, saved.checksum);
      write_at(file_, path_, from + at, now, saved.offset + at);
    }
    values_.push_back(std::move(saved));
  }

  std::string path_;
  int file_;
  std::map<std::string, std::uint64_t, std::less<>> offsets_;
  std::vector<SavedValues> values_;
};

class Restorer final : public StateVisitor {
 public:
  Restorer(const h5::Reader& reader, bool other_run) : reader_(reader), other_run_(other_run) {}
  bool loading() const override { return true; }
  void tensor(const StateTensor& t) override {
    if (t.shape.elems() == 0) return;
    const Shape shape = whole_shape(t);
    const bool optional = other_run_ && !t.name.starts_with("weights/");
    if (t.other_k == OtherK::keep && (!reader_.has(t.name) || reader_.info(t.name).shape != shape)) return;
    if ((t.absent_is_zero || optional) && !reader_.has(t.name)) {
      if (!optional) log_info("{} has no '{}': it starts at zero", reader_.path(), t.name);
      std::memset(t.data, 0, bytes_of(t));
      return;
    }
    const h5::DatasetInfo info = reader_.info(t.name);
    const bool fits = info.dtype == t.dtype || (other_run_ && is_real(info.dtype) && is_real(t.dtype));
    if (fits && info.dtype != t.dtype && !optional) note_conversion(info.dtype, t.dtype);
    if (t.placement == Placement::per_replica && info.shape.rank() == shape.rank() && info.shape[0] != shape[0] &&
        info.shape.without_front() == shape.without_front() && fits)
      return of_other_replicas(t, info.shape[0]);
    if ((t.other_k == OtherK::reset || optional) && info.shape != shape) {
      std::memset(t.data, 0, bytes_of(t));
      return;
    }
    if (info.shape != shape || !fits)
      throw DataError(fmt::format("{}: '{}' is {} of {}, this run needs {} of {}", reader_.path(), t.name,
                                  info.shape.text(), name_of(info.dtype), shape.text(), name_of(t.dtype)));
    if (shape == t.shape)
      reader_.read_all(t.name, t.data, t.dtype);
    else if (t.shape.without_front() == shape.without_front())
      reader_.read_rows(t.name, t.offset[0], t.shape[0], t.data, t.dtype);
    else
      read_region(t);
  }
  void scalar(std::string_view name, std::int64_t& value) override {
    if (!begins_anew(name)) value = reader_.attribute_int(name);
  }
  void scalar(std::string_view name, double& value) override {
    if (!begins_anew(name)) value = reader_.attribute_double(name);
  }

 private:
  bool begins_anew(std::string_view name) const {
    const bool of_loss_scale = name.starts_with("loss_scale") || name == "skipped_steps";
    const bool of_other = of_loss_scale || name.starts_with("strategy_");
    const bool later = name == "moments_begin" || name == "epochs_over" || name == "replica_positions" ||
                       name == "open_ranges" || name.starts_with("best_");  // not in the first files
    return (later || (other_run_ && of_other)) && !reader_.has_attribute(name);
  }

  void note_conversion(DType from, DType to) {
    if (!converts_) log_info("{} holds {}: converted to {}", reader_.path(), name_of(from), name_of(to));
    converts_ = true;
  }

  void read_region(const StateTensor& t) {
    std::vector<std::byte> all(static_cast<std::size_t>(t.global_shape.elems()) * size_of(t.dtype));
    reader_.read_all(t.name, all.data(), t.dtype);
    copy_from_whole({t.shape, t.global_shape, t.offset}, size_of(t.dtype), all.data(), t.data);
  }

  // The state of `was` replicas, for another number of them (OtherK).
  void of_other_replicas(const StateTensor& t, std::int64_t was) {
    if (t.other_k == OtherK::refuse)
      throw DataError(
          fmt::format("{}: '{}' is of {} replicas, this run has {}", reader_.path(), t.name, was, t.global_shape[0]));
    std::memset(t.data, 0, bytes_of(t));
    if (t.other_k == OtherK::reset) return;
    const auto now = static_cast<double>(t.global_shape[0]);
    with_float(t.dtype, [&](auto zero) {
      using T = decltype(zero);
      const TensorRegion region{t.shape.without_front(), t.global_shape.without_front(), t.offset.without_front()};
      std::vector<T> whole(static_cast<std::size_t>(region.whole.elems())),
          row(static_cast<std::size_t>(region.shape.elems()));
      std::vector<double> sum(row.size());
      for (std::int64_t r = 0; r < was; ++r) {
        reader_.read_rows(t.name, r, 1, whole.data(), t.dtype);
        copy_from_whole(region, sizeof(T), whole.data(), row.data());
        for (std::size_t i = 0; i < row.size(); ++i) sum[i] += static_cast<double>(row[i]);
      }
      for (std::size_t i = 0; i < row.size(); ++i) static_cast<T*>(t.data)[i] = static_cast<T>(sum[i] / now);
    });
  }

  const h5::Reader& reader_;
  bool other_run_;
  bool converts_ = false;  // logged already
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

}  // namespace

CheckpointInfo save_checkpoint(const std::string& folder, std::int64_t step, const VisitAll& visit,
                               const WholeTensors& wholes, const SaveOptions& options) {
  const std::string path = checkpoint_path(folder, step);
  std::error_code ignored;
  fs::remove(manifest_path(path), ignored);  // of an earlier attempt: while the file changes it must not count
  h5::Writer writer(path);
  writer.attribute("echelon_format", std::string(kCheckpointFormat));
  writer.attribute("format_version", kCheckpointVersion);
  if (!options.training_data.empty()) writer.attribute("training_data", options.training_data);
  StructurePass(writer, wholes).run(visit);
  ValuesPass values(writer, path, writer.lay_out(), wholes);
  values.run(visit);
  const ordered_json manifest = manifest_of(writer.temporary(), step, values.close());
  if (options.verify) {
    sync_file(writer.temporary());
    if (const std::string wrong = difference(writer.temporary(), manifest, true); !wrong.empty())
      throw EnvironmentError(
          fmt::format("{}: was not written as it should be, earlier checkpoints stay: read back, {}", path, wrong));
  }
  if (options.before_publish) options.before_publish();
  writer.publish();
  try {
    write_manifest(path, manifest);
  } catch (...) {
    fs::remove(path, ignored);
    throw;
  }
  set_latest(folder, step);
  return {path, step, manifest.at("file").at("bytes").get<std::uint64_t>()};
}

void load_checkpoint(const std::string& path, const VisitAll& visit, bool other_run) {
  const h5::Reader reader(path);
  if (!reader.has_attribute("echelon_format") || reader.attribute_text("echelon_format") != kCheckpointFormat)
    throw DataError(fmt::format("{}: is not a checkpoint of echelon", path));
  Restorer restorer(reader, other_run);
  visit(restorer);
}

std::uint64_t state_checksum(const VisitAll& visit) {
  Summer summer;
  visit(summer);
  return summer.sum();
}

}  // namespace echelon::inline checkpoint
