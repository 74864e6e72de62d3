// SPDX-License-Identifier: Apache-2.0
// Memory that the ranks of one host share under MPI, one block per channel (Transport::shared_channel). It is made
// without a blocking call and without a name: the lowest rank of the host makes a file in memory (memfd_create), and
// the others open it through /proc/<its process>/fd. So nothing is left in /dev/shm or TMPDIR if a process is killed,
// their space and the umask do not matter, and untouched pages take no memory.
//
// The first rank sends the location of the file, the others answer whether they have mapped it, and the first rank
// sends the result, so that either all ranks go on or all throw. These messages use a communicator of the host; no
// counter includes them.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "comm/mpi/calls.hpp"
#include "comm/shared_channel.hpp"

namespace echelon::inline comm {

class MpiSharedChannels {
 public:
  // Takes over `host`, a communicator of this host's ranks. `ranks` are their ranks in the transport, which has `size`
  // ranks.
  MpiSharedChannels(MPI_Comm host, std::vector<int> ranks, int size);
  ~MpiSharedChannels();
  MpiSharedChannels(const MpiSharedChannels&) = delete;

  SharedChannel* channel(int tag, int& missing);

 private:
  struct Opening;
  struct Entry {
    std::unique_ptr<Opening> opening;  // in progress until the channel exists
    std::unique_ptr<SharedChannel> channel;
  };
  int rank_of(int place) const { return ranks_[static_cast<std::size_t>(place)]; }

  MPI_Comm host_;
  std::vector<int> ranks_, parts_;  // parts_: by rank in the transport
  int place_ = 0;
  std::map<int, Entry> entries_;  // by tag
};

}  // namespace echelon::inline comm
