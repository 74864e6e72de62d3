// The files behind the memory by which ranks of one host send each other messages: Open MPI keeps one a rank in
// /dev/shm until MPI_Finalize, so that a job that is killed would leave them there until the host is started anew.
#pragma once

#include <string>
#include <vector>

namespace echelon::inline comm {

class MpiSegments {
 public:
  // Removes the names of this host's segments; the memory itself goes with the last process. Collective over the world,
  // once MPI has started. No effect on a host whose ranks have not mapped one segment of each of them (another library,
  // another transport), nor where a name cannot be removed.
  void unlink_names();
  // Creates empty files of these names, which MPI_Finalize removes: it complains of missing ones. To be called by every
  // rank before a barrier; a process that is killed between this and the end of MPI_Finalize leaves them behind, empty.
  void restore_names() const;

 private:
  std::vector<std::string> unlinked_;  // by this rank
};

// The segments that this process maps, of which a name is left; sorted. "/dev/shm/vader_segment.node7.1000.4c440001.0"
std::vector<std::string> mapped_segments();

}  // namespace echelon::inline comm
