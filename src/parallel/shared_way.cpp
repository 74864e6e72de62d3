#include <utility>

#include "base/check.hpp"
#include "base/clock.hpp"
#include "comm/shared_lane.hpp"
#include "parallel/way.hpp"

namespace echelon {
namespace {

class SharedWay final : public Way {
 public:
  SharedWay(Device& device, const WayEnds& ends, std::shared_ptr<SharedBlock> block, std::byte* memory,
            std::size_t box_bytes, Tally& tally)
      : device_(device),
        ends_(ends),
        block_(std::move(block)),
        lane_(memory, kBoxes, box_bytes),
        box_bytes_(box_bytes),
        tally_(tally) {}

  void begin(int, std::int64_t) override {}

  void send(const Tensor& tensor) override {
    ECHELON_CHECK_LE(tensor.bytes(), box_bytes_);
    wait([this] { return lane_.may_fill(); });
    ++tally_.sent.messages_sent;
    tally_.sent.bytes_sent += tensor.bytes();
    device_.to_host(lane_.to_fill(), tensor.data, tensor.bytes());
    lane_.filled();
  }

  void receive(const Tensor& tensor) override {
    wait([this] { return lane_.may_take(); });
    device_.to_device(tensor.data, lane_.to_take(), tensor.bytes());
    lane_.taken();
  }

  // What was sent lies where the receiver finds it, and stays there.
  void finish() override {}

 private:
  template <class Ready>
  void wait(const Ready& ready) {
    if (ready()) return;
    const ScopedTimer timer(tally_.waited_s);
    wait_for_peer(ends_.group, *block_, {.channel = ends_.channel, .peer = ends_.peer, .sending = ends_.sends}, ready);
  }

  Device& device_;
  const WayEnds ends_;
  const std::shared_ptr<SharedBlock> block_;
  SharedLane lane_;
  const std::size_t box_bytes_;
  Tally& tally_;
};

}  // namespace

std::unique_ptr<Way> make_shared_way(Device& device, const WayEnds& ends, std::shared_ptr<SharedBlock> block,
                                     std::byte* memory, std::size_t box_bytes, Tally& tally) {
  return std::make_unique<SharedWay>(device, ends, std::move(block), memory, box_bytes, tally);
}

std::size_t shared_way_bytes(std::size_t box_bytes) { return SharedLane::bytes(kBoxes, box_bytes); }

}  // namespace echelon
