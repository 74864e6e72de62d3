// Memory that the ranks of one host share under MPI, one block for each channel (Transport::shared_channel), made
// without a blocking call and without a name: the lowest rank of the host makes a file in memory (memfd_create), the
// others open it through /proc/<its process>/fd. So nothing is left in /dev/shm or TMPDIR whenever a process is killed,
// and neither their space nor the umask matters; what is not touched takes no memory.
//
// The first rank sends where the file is, the others answer whether they have mapped it, and it sends the result, so
// that all ranks go on or all throw. Messages of a communicator of the host, which no counter includes.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "comm/mpi/calls.hpp"
#include "comm/shared_channel.hpp"

namespace echelon::inline comm {

class MpiSharedChannels {
 public:
  // `host`: a communicator of this host's ranks, taken over; `ranks`: by rank in it, the rank in the transport, which
  // has `size` of them.
  MpiSharedChannels(MPI_Comm host, std::vector<int> ranks, int size);
  ~MpiSharedChannels();
  MpiSharedChannels(const MpiSharedChannels&) = delete;

  SharedChannel* channel(int tag, int& missing);

 private:
  struct Opening;
  struct Entry {
    std::unique_ptr<Opening> opening;  // until the channel is there
    std::unique_ptr<SharedChannel> channel;
  };
  int rank_of(int place) const { return ranks_[static_cast<std::size_t>(place)]; }

  MPI_Comm host_;
  std::vector<int> ranks_, parts_;  // parts_: by rank in the transport
  int place_ = 0;
  std::map<int, Entry> entries_;  // by tag
};

}  // namespace echelon::inline comm
