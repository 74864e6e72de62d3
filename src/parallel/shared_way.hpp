// The ways through memory that both ranks see.
#pragma once

#include <memory>

#include "comm/shared_lane.hpp"
#include "parallel/way.hpp"

namespace echelon {

inline constexpr std::size_t kHelloBytes = 128;  // in front of the lane, for devices to find each other's memory

class SharedWay : public Way {
 public:
  SharedWay(Device& device, const WayEnds& ends, std::shared_ptr<SharedBlock> block, std::byte* memory,
            std::size_t box_bytes, Tally& tally);

  void begin(int, std::int64_t) override {}
  void send(const Tensor& tensor) override;
  void receive(const Tensor& tensor) override;
  // What was sent lies where the receiver finds it, and stays there.
  void finish() override {}

 protected:
  // Returns once the copy is there, or the memory may be written again.
  virtual void put(const Tensor& tensor) { device_.to_host(lane_.to_fill(), tensor.data, tensor.bytes()); }
  virtual void get(const Tensor& tensor) { device_.to_device(tensor.data, lane_.to_take(), tensor.bytes()); }

  void wait_to_fill();
  void wait_to_take();
  // Until every box that was filled has been taken.
  void wait_for_all();

  Device& device_;
  const WayEnds ends_;
  const std::size_t box_bytes_;
  SharedLane lane_;

 private:
  template <class Ready>
  void wait(const Ready& ready);

  const std::shared_ptr<SharedBlock> block_;
  Tally& tally_;
};

std::unique_ptr<Way> make_peer_way(Device& device, const WayEnds& ends, std::shared_ptr<SharedBlock> block,
                                   std::byte* memory, std::size_t box_bytes, Tally& tally);

}  // namespace echelon
