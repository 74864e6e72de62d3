// SPDX-License-Identifier: Apache-2.0
#include "h5/decode_memory.hpp"

#include <algorithm>
#include <array>

#include "h5/chunks.hpp"
#include "h5/file.hpp"
#include "h5/handle.hpp"
#include "h5/numbers.hpp"
#include "h5/open_file.hpp"

namespace echelon::h5 {

double decode_bytes(const std::string& path, std::string_view dataset) {
  const DatasetInfo info = Reader(path).info(dataset);  // throws for everything that can be wrong with it
  quiet_thread();
  const Handle file = open_file(path);
  const Handle opened(H5Dopen2(file.id(), std::string(dataset).c_str(), H5P_DEFAULT), H5Dclose);
  const Handle creation(H5Dget_create_plist(opened.id()), H5Pclose), type(H5Dget_type(opened.id()), H5Tclose);
  if (H5Pget_layout(creation.id()) != H5D_CHUNKED || info.written_chunks == 0) return 0;
  RowChunks chunks;
  describe_filters(creation.id(), chunks);
  if (!chunks.filtered) return 0;
  const double whole = static_cast<double>(info.chunk.elems()) * static_cast<double>(H5Tget_size(type.id()));
  double stored = 0;
  constexpr hsize_t kMost = 4096;  // limit of the chunks that are inspected
  const Handle space(H5Dget_space(opened.id()), H5Sclose);
  for (hsize_t i = 0; i < std::min<hsize_t>(info.written_chunks, kMost); ++i) {
    std::array<hsize_t, Shape::kMaxRank> offset{};
    unsigned skipped = 0;
    haddr_t address = 0;
    hsize_t bytes = 0;
    if (H5Dget_chunk_info(opened.id(), space.id(), i, offset.data(), &skipped, &address, &bytes) < 0) break;
    stored = std::max(stored, static_cast<double>(bytes));
  }
  const bool whole_rows = info.chunk.without_front() == info.shape.without_front();
  if (!chunks.known || !whole_rows || !number_type_of(type.id())) return stored + 2 * whole;
  const bool converted = H5Tequal(type.id(), native_type(info.dtype)) <= 0;  // a decoded chunk is kept meanwhile
  const bool inflated = chunks.shuffle >= 0 && (chunks.deflate >= 0 || chunks.lzf >= 0);
  const bool parts = info.shape[0] % info.chunk[0] != 0;
  return stored + (inflated ? whole : 0) + (parts ? whole : 0) + (converted ? whole : 0);
}

}  // namespace echelon::h5
