// SPDX-License-Identifier: Apache-2.0
#include "cli/inspect_foreign.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/text.hpp"
#include "data/foreign_guess.hpp"
#include "data/import/image.hpp"
#include "data/location.hpp"
#include "h5/file.hpp"

namespace echelon::cli {
namespace {

std::string type_of(const h5::DatasetInfo& info) {
  if (!info.stored_as.empty()) return info.stored_as;
  switch (info.dtype) {
    case DType::u8: return "an 8-bit unsigned integer";
    case DType::i32: return "a 32-bit signed integer";
    case DType::f64: return "a 64-bit float";
    default: return "a 32-bit float";
  }
}

std::string storage_of(const h5::DatasetInfo& info) {
  std::string text = info.chunk.rank() == 0 ? "contiguous" : "chunks of " + info.chunk.text();
  if (info.deflate) text += ", compressed";
  if (info.checksum) text += ", checksums";
  return text;
}

// "0 to 255", over the first row.
std::string range_of(const h5::Reader& file, const h5::DatasetInfo& info) {
  constexpr std::int64_t kMost = 1 << 24;
  const std::int64_t n = info.shape.rank() == 0 ? 1 : info.shape.row_elems();
  if (info.shape.elems() == 0 || n > kMost) return "-";
  std::vector<double> values(static_cast<std::size_t>(n));
  file.read_rows(info.name, 0, 1, values.data(), DType::f64);
  const auto [least, most] = std::minmax_element(values.begin(), values.end());
  return n == 1 ? fmt::format("{:.6g}", *least) : fmt::format("{:.6g} to {:.6g}", *least, *most);
}

// The first of rows of bytes: "an image of 480 x 640 (height x width)", "1,234 bytes".
std::string first_of(const h5::Reader& file, const std::string& name, const h5::ByteRows& rows) {
  if (rows.count == 0) return "-";
  std::vector<std::uint8_t> bytes;
  std::vector<std::size_t> ends;
  file.read_bytes(name, 0, 1, bytes, ends);
  try {
    const ImageHeader image = image_header({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    return fmt::format("an image of {} x {} (height x width)", image.height, image.width);
  } catch (const DataError&) {
    return fmt::format("{} bytes", count_text(std::ssize(bytes)));
  }
}

// A line for a dataset that holds rows of bytes and no numbers; false: it holds something else.
bool add_byte_rows(const h5::Reader& file, const std::string& name, Table& table) {
  const std::optional<h5::ByteRows> rows = file.byte_rows(name);
  if (!rows || rows->numbers) return false;
  table.row({escaped_for_terminal(name), Shape{rows->count}.text(),
             rows->width == 0 ? "rows of bytes of variable length" : fmt::format("rows of {} bytes", rows->width), "-",
             first_of(file, name, *rows)});
  return true;
}

}  // namespace

int inspect_foreign(const std::string& location, const std::string& why) {
  const std::vector<std::string> files = files_at(location);
  const h5::Reader file(files.front());
  fmt::print("{}: HDF5, not a shard of echelon ({})\n", location, why.substr(why.find(": ") + 2));
  if (files.size() > 1) fmt::print("{}; the first one is {}\n", counted(std::ssize(files), "file"), files.front());
  fmt::print("\n");
  Table table({"dataset", "shape", "type", "storage", "row 0"});
  std::vector<h5::DatasetInfo> readable;
  for (const std::string& name : file.names()) try {
      if (add_byte_rows(file, name, table)) continue;
      const h5::DatasetInfo info = file.info(name);
      table.row({escaped_for_terminal(name), info.shape.text(), type_of(info), storage_of(info), range_of(file, info)});
      readable.push_back(info);
    } catch (const DataError& error) {
      const std::string text = error.what(), mark = fmt::format("dataset '{}' ", name);
      const std::size_t at = text.find(mark);
      table.row({escaped_for_terminal(name), "-", at == text.npos ? text : text.substr(at + mark.size()), "-", "-"});
    }
  fmt::print("{}\n", table.text());
  const ForeignGuess guess = guess_foreign(file, readable, files.size() > 1);
  if (!guess.table.empty())
    fmt::print("To read it as it lies, add this to the config and check each line (data/HDF5.md):\n\n{}\n",
               guess.table);
  for (const std::string& note : guess.notes) fmt::print("note: {}\n", note);
  return kExitOk;
}

}  // namespace echelon::cli
