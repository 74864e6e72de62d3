// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/checkpoint.hpp"

#include <fmt/format.h>

#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/check.hpp"
#include "base/checksum.hpp"
#include "base/error.hpp"
#include "base/log.hpp"
#include "base/tensor_region.hpp"
#include "checkpoint/state_file.hpp"
#include "h5/file.hpp"

namespace echelon::inline checkpoint {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

namespace {

bool is_real(DType dtype) { return dtype == DType::f32 || dtype == DType::f64; }

std::size_t bytes_of(const StateTensor& tensor) {
  return static_cast<std::size_t>(tensor.shape.elems()) * size_of(tensor.dtype);
}

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
      throw DataError(fmt::format("{}: '{}' has shape {} and type {}, this run needs shape {} and type {}",
                                  reader_.path(), t.name, info.shape.text(), name_of(info.dtype), shape.text(),
                                  name_of(t.dtype)));
    if (shape == t.shape)
      reader_.read_all(t.name, t.data, t.dtype);
    else if (t.shape.without_front() == shape.without_front())
      reader_.read_rows(t.name, t.offset[0], t.shape[0], t.data, t.dtype);
    else
      read_region(t);
  }
  void scalar(std::string_view name, std::int64_t& value, Absent absent) override {
    if (!keeps(name, absent)) value = reader_.attribute_int(name);
  }
  void scalar(std::string_view name, double& value, Absent absent) override {
    if (!keeps(name, absent)) value = reader_.attribute_double(name);
  }

 private:
  bool keeps(std::string_view name, Absent absent) const {
    return (absent == Absent::kept || (absent == Absent::kept_in_other_run && other_run_)) &&
           !reader_.has_attribute(name);
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

  // Loads the state of `was` replicas into another number of them (OtherK).
  void of_other_replicas(const StateTensor& t, std::int64_t was) {
    if (t.other_k == OtherK::refuse)
      throw DataError(fmt::format("{}: '{}' belongs to {} replicas, this run has {}", reader_.path(), t.name, was,
                                  t.global_shape[0]));
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
  bool converts_ = false;  // already logged
};

}  // namespace

CheckpointInfo save_checkpoint(const std::string& folder, std::int64_t step, const VisitAll& visit,
                               const SaveOptions& options) {
  const std::string path = checkpoint_path(folder, step);
  h5::Writer writer(path);
  begin_checkpoint(writer, kCheckpointVersion, options);
  const std::vector<SavedValues> values = write_state(writer, path, visit);
  for (const SavedValues& saved : values)
    ECHELON_CHECK(saved.region.shape == saved.region.whole, "'{}' is {} of {}", saved.name, saved.region.shape.text(),
                  saved.region.whole.text());
  const ordered_json manifest = manifest_of(writer.temporary(), step, values);
  publish_checkpoint(writer, path, manifest, options);
  return {path, step, manifest.at("file").at("bytes").get<std::uint64_t>()};
}

void load_checkpoint(const std::string& path, const VisitAll& visit, bool other_run) {
  const h5::Reader reader(path);
  if (!reader.has_attribute("echelon_format") || reader.attribute_text("echelon_format") != kCheckpointFormat)
    throw DataError(fmt::format("{}: is not a checkpoint of echelon", path));
  Restorer restorer(reader, other_run);
  visit(restorer);
}

}  // namespace echelon::inline checkpoint
