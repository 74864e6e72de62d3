// SPDX-License-Identifier: Apache-2.0
// The files of the shared memory by which ranks of one host exchange messages. Open MPI keeps one per rank in /dev/shm
// until MPI_Finalize, so that a killed job would leave them there until the host is rebooted.
#pragma once

#include <string>
#include <vector>

namespace echelon::inline comm {

class MpiSegments {
 public:
  // Removes the names of this host's segments; the memory itself is freed with the last process. Collective over the
  // world, after MPI has started. Has no effect on a host whose ranks have not each mapped one segment per rank
  // (another library, another transport), or if a name cannot be removed.
  void unlink_names();
  // Creates empty files of these names for MPI_Finalize to remove, because it complains if they are missing. Every rank
  // must call it before a barrier; a process that is killed between this and the end of MPI_Finalize leaves the empty
  // files.
  void restore_names() const;

 private:
  std::vector<std::string> unlinked_;  // names that this rank has unlinked
};

// The segments that this process maps and that still have a name, such as
// "/dev/shm/vader_segment.node7.1000.4c440001.0"; sorted.
std::vector<std::string> mapped_segments();

}  // namespace echelon::inline comm
