// SPDX-License-Identifier: Apache-2.0
#include "comm/mpi/share.hpp"

#include <cstdint>
#include <cstring>
#include <vector>

namespace echelon::inline comm {
namespace {

constexpr std::uintptr_t kAlignment = 64;

std::byte* aligned(void* data) {
  return reinterpret_cast<std::byte*>((reinterpret_cast<std::uintptr_t>(data) + kAlignment - 1) / kAlignment *
                                      kAlignment);
}

// Windows are kept until the process ends: freeing one is collective, and ranks that leave after an error leave alone.
class SharedWindow final : public SharedBlock {
 public:
  SharedWindow(MPI_Win window, int ranks) {
    for (int rank = 0; rank < ranks; ++rank) {
      MPI_Aint bytes = 0;
      int unit = 0;
      void* data = nullptr;
      mpi::check(MPI_Win_shared_query(window, rank, &bytes, &unit, &data), "MPI_Win_shared_query");
      parts_.push_back(aligned(data));
    }
  }
  std::byte* of(int rank) const override { return parts_[static_cast<std::size_t>(rank)]; }

 private:
  std::vector<std::byte*> parts_;
};

}  // namespace

std::shared_ptr<SharedBlock> make_shared_window(MPI_Comm communicator, std::size_t bytes) {
  MPI_Info info = MPI_INFO_NULL;
  mpi::check(MPI_Info_create(&info), "MPI_Info_create");
  MPI_Info_set(info, "alloc_shared_noncontig", "true");  // parts begin on pages of their own
  MPI_Win window = MPI_WIN_NULL;
  void* data = nullptr;
  const int code =
      MPI_Win_allocate_shared(static_cast<MPI_Aint>(bytes + kAlignment), 1, info, communicator, &data, &window);
  MPI_Info_free(&info);
  int good = code == MPI_SUCCESS ? 1 : 0;
  mpi::check(MPI_Allreduce(MPI_IN_PLACE, &good, 1, MPI_INT, MPI_MIN, communicator), "MPI_Allreduce");
  if (good == 0) return nullptr;
  std::memset(aligned(data), 0, bytes);
  int ranks = 0;
  MPI_Comm_size(communicator, &ranks);
  auto block = std::make_shared<SharedWindow>(window, ranks);
  mpi::check(MPI_Win_lock_all(MPI_MODE_NOCHECK, window), "MPI_Win_lock_all");
  mpi::check(MPI_Barrier(communicator), "MPI_Barrier");
  return block;
}

}  // namespace echelon::inline comm
