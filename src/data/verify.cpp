// SPDX-License-Identifier: Apache-2.0
#include "data/verify.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.hpp"
#include "data/class_mix.hpp"
#include "data/format.hpp"
#include "data/shard_header.hpp"
#include "h5/file.hpp"

namespace echelon::inline data {
namespace {

constexpr std::int64_t kBlockBytes = 1 << 20;
constexpr std::int64_t kAll = std::numeric_limits<std::int64_t>::max();  // labels

// Returns only the reason, because a verdict names file, dataset and rows itself.
std::string without_place(const std::string& text, const std::string& path, const std::string& dataset) {
  const std::string place = fmt::format("{}: dataset '{}' ", path, dataset);
  if (!text.starts_with(place)) return text;
  const std::size_t reason = text.find(": ", place.size());  // after the rows
  return text.substr(reason == std::string::npos ? place.size() : reason + 2);
}

void note(ShardVerdict& verdict, DamagedRows rows) {
  if (!verdict.damaged.empty()) {
    DamagedRows& last = verdict.damaged.back();
    if (last.dataset == rows.dataset && last.first + last.count == rows.first) {
      last.count += rows.count;
      return;
    }
  }
  verdict.damaged.push_back(std::move(rows));
}

// Finds the first value of the rows that training would refuse.
template <class T>
void note_not_finite(const h5::DatasetInfo& info, const std::vector<std::uint8_t>& block, std::int64_t first,
                     std::int64_t count, ShardVerdict& verdict) {
  const auto* values = reinterpret_cast<const T*>(block.data());
  const std::int64_t each = info.shape.row_elems();
  const auto* bad =
      std::find_if(values, values + count * each, [](T value) { return !std::isfinite(static_cast<float>(value)); });
  if (bad == values + count * each) return;
  note(verdict, {info.name, first + (bad - values) / each, 1,
                 fmt::format("holds {:g}; every feature must be a finite number of 32 bits", *bad)});
}

// Reads chunk by chunk, so that each damaged one is found.
void read_dataset(const h5::Reader& reader, const h5::DatasetInfo& info, ShardVerdict& verdict) {
  if (info.shape.elems() == 0) return;  // no elements, whatever the number of rows
  const std::int64_t rows = info.shape.rank() == 0 ? 1 : info.shape[0];
  const std::int64_t row_bytes =
      std::max<std::int64_t>(1, info.shape.row_elems() * static_cast<std::int64_t>(size_of(info.dtype)));
  const std::int64_t together =
      info.checksum && info.chunk.rank() > 0 ? info.chunk[0] : std::max<std::int64_t>(1, kBlockBytes / row_bytes);
  const bool features = info.name == sample_format::kSamples || info.name == sample_format::kValues;
  std::vector<std::uint8_t> block(static_cast<std::size_t>(std::min(together, rows) * row_bytes));
  for (std::int64_t first = 0; first < rows; first += together) {
    const std::int64_t count = std::min(together, rows - first);
    try {
      reader.read_rows(info.name, first, count, block.data(), info.dtype);
      if (features && info.dtype == DType::f32) note_not_finite<float>(info, block, first, count, verdict);
      if (features && info.dtype == DType::f64) note_not_finite<double>(info, block, first, count, verdict);
    } catch (const DataError& error) {
      note(verdict, {info.name, first, count, without_place(error.what(), verdict.path, info.name)});
    }
  }
}

void drop_from_memory(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return;
  static_cast<void>(::posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED));
  ::close(fd);
}

}  // namespace

ShardVerdict verify_shard(const std::string& path, bool from_disk) {
  ShardVerdict verdict{.path = path};
  if (from_disk) drop_from_memory(path);
  try {
    const h5::Reader reader(path);
    for (const h5::DatasetInfo& info : reader.datasets()) {
      reader.require_written(info.name);
      if (!info.checksum) verdict.unchecked.push_back(info.name);
      read_dataset(reader, info, verdict);
    }
    verdict.bytes = reader.bytes_read();
    if (verdict.damaged.empty() && not_a_shard(path).empty())
      if (const Dataset set = read_shard(path, Labels::optional); !set.has_many_classes())
        (void)LabelSample(set, kAll);  // which labels of pixels and steps count only an experiment says
  } catch (const Error& error) {
    verdict.wrong = error.what();
  }
  return verdict;
}

std::uint64_t require_intact(const std::vector<std::string>& paths) {
  std::uint64_t bytes = 0;
  for (const std::string& path : paths) {
    const ShardVerdict verdict = verify_shard(path, true);
    if (!verdict.ok())
      throw DataError(fmt::format("{}: differs from what was written: {}", path, damage_text(verdict)));
    bytes += verdict.bytes;
  }
  return bytes;
}

std::string damage_text(const ShardVerdict& verdict) {
  constexpr std::size_t kShown = 4;
  if (!verdict.wrong.empty()) return verdict.wrong;
  std::string text;
  for (std::size_t i = 0; i < std::min(kShown, verdict.damaged.size()); ++i) {
    const DamagedRows& rows = verdict.damaged[i];
    text += fmt::format("{}'{}' rows {} to {}: {}", i > 0 ? "; " : "", rows.dataset, rows.first,
                        rows.first + rows.count - 1, rows.why);
  }
  const std::size_t more = verdict.damaged.size() - std::min(kShown, verdict.damaged.size());
  return more > 0 ? text + fmt::format("; and {} more", more) : text;
}

}  // namespace echelon::inline data
