// SPDX-License-Identifier: Apache-2.0
#include "comm/mpi/segments.hpp"

#include <unistd.h>

#include <fstream>
#include <set>

#include "base/atomic_file.hpp"
#include "comm/mpi/calls.hpp"

namespace echelon::inline comm {

std::vector<std::string> mapped_segments() {
  std::set<std::string> found;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    const std::size_t begin = line.find('/');
    if (begin == std::string::npos || line.ends_with(" (deleted)")) continue;
    const std::string name = line.substr(line.rfind('/') + 1);
    // The names that Open MPI 4 and 5 use.
    if (name.starts_with("vader_segment.") || name.starts_with("sm_segment.")) found.insert(line.substr(begin));
  }
  return {found.begin(), found.end()};
}

void MpiSegments::unlink_names() {
  MPI_Comm host = MPI_COMM_NULL;
  mpi::check(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &host), "MPI_Comm_split_type");
  int rank = 0, ranks = 0;
  MPI_Comm_rank(host, &rank);
  MPI_Comm_size(host, &ranks);
  const std::vector<std::string> segments = mapped_segments();
  int all_mapped = segments.size() == static_cast<std::size_t>(ranks) ? 1 : 0;
  mpi::check(MPI_Allreduce(MPI_IN_PLACE, &all_mapped, 1, MPI_INT, MPI_MIN, host), "MPI_Allreduce");
  MPI_Comm_free(&host);
  if (all_mapped == 0 || rank != 0) return;
  for (const std::string& segment : segments)
    if (::unlink(segment.c_str()) == 0) unlinked_.push_back(segment);
}

void MpiSegments::restore_names() const {
  for (const std::string& segment : unlinked_)
    if (const int file = create_file(segment, 0600); file >= 0) ::close(file);
}

}  // namespace echelon::inline comm
