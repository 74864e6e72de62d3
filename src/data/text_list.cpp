// SPDX-License-Identifier: Apache-2.0
#include "data/text_list.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.hpp"

namespace echelon::inline data {

void write_text_list(h5::Writer& writer, std::string_view dataset, const std::vector<std::string>& entries) {
  std::string bytes;
  for (const std::string& entry : entries) bytes += entry + '\0';
  const auto size = static_cast<std::int64_t>(bytes.size());
  writer.write_all(dataset, DType::u8, {size}, bytes.data(),
                   {.chunk_rows = std::max<std::int64_t>(size, 1), .checksum = true});
}

std::vector<std::string> read_text_list(const h5::Reader& reader, std::string_view dataset) {
  const auto fail = [&](const std::string& what) {
    throw DataError(fmt::format("{}: dataset '{}' {}", reader.path(), dataset, what));
  };
  const std::string cure =
      "must be bytes: texts, each ended by a zero byte (np.frombuffer(b\"\".join(t.encode() + b\"\\0\" for t in "
      "texts), \"u1\"))";
  h5::DatasetInfo info;
  try {
    info = reader.info(dataset);
  } catch (const DataError& error) {
    if (std::string_view(error.what()).find("holds text") == std::string_view::npos) throw;
    throw DataError(fmt::format("{}; it {}", error.what(), cure));
  }
  if (info.dtype != DType::u8 || info.shape.rank() != 1) fail(cure);
  reader.require_written(dataset);
  std::string bytes(static_cast<std::size_t>(info.shape[0]), '\0');
  reader.read_all(dataset, bytes.data(), DType::u8);
  if (bytes.empty() || bytes.back() != '\0') fail("must end with a zero byte, because each of its texts does");
  std::vector<std::string> entries;
  for (std::size_t begin = 0; begin < bytes.size(); begin = bytes.find('\0', begin) + 1)
    entries.push_back(bytes.substr(begin, bytes.find('\0', begin) - begin));
  return entries;
}

}  // namespace echelon::inline data
