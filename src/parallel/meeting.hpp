// What the shards or bands of a stage do together: sums and gathers that the compute thread waits for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "comm/engine.hpp"
#include "comm/shared_lane.hpp"
#include "device/device.hpp"
#include "device/tensor.hpp"
#include "parallel/way.hpp"

namespace echelon {

// Blocks of ranks, (outer, units of the rank, inner), that are to become (outer, units of all, inner): outer are
// samples, with places of sequences or channels of images, inner what lies behind a unit.
struct GatherForm {
  std::int64_t outer = 1, inner = 1;
  std::vector<std::int64_t> units;  // by rank
};

class Meeting {
 public:
  virtual ~Meeting() = default;
  // `to` becomes the sum of all ranks' `from`, of one shape, f32 or f64; the same bits on all.
  virtual void sum(const Tensor& from, const Tensor& to) = 0;
  virtual void gather(const GatherForm& form, const Tensor& from, const Tensor& to) = 0;
};

// The meeting of one cut, by all-reduces and all-gathers on its channel.
std::unique_ptr<Meeting> make_message_meeting(Device& device, Engine& ranks, int channel, Tally& tally);
// The meetings of all cuts through memory that the ranks share; values have `slot_bytes` at most. `channel`: for the
// watchdog to name.
std::unique_ptr<Meeting> make_shared_meeting(Device& device, Engine& ranks, int channel,
                                             std::shared_ptr<SharedBlock> block, std::size_t slot_bytes, Tally& tally);
std::size_t shared_meeting_bytes(std::size_t slot_bytes);

}  // namespace echelon
