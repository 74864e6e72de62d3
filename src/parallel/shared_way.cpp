#include "parallel/shared_way.hpp"

#include <utility>

#include "base/check.hpp"
#include "base/clock.hpp"

namespace echelon {

SharedWay::SharedWay(Device& device, const WayEnds& ends, std::shared_ptr<SharedBlock> block, std::byte* memory,
                     std::size_t box_bytes, Tally& tally)
    : device_(device),
      ends_(ends),
      box_bytes_(box_bytes),
      lane_(memory + kHelloBytes, kBoxes, box_bytes),
      block_(std::move(block)),
      tally_(tally) {}

template <class Ready>
void SharedWay::wait(const Ready& ready) {
  if (ready()) return;
  const ScopedTimer timer(tally_.waited_s);
  wait_for_peer(ends_.group, *block_, {.channel = ends_.channel, .peer = ends_.peer, .sending = ends_.sends}, ready);
}

void SharedWay::wait_to_fill() {
  wait([this] { return lane_.may_fill(); });
}
void SharedWay::wait_to_take() {
  wait([this] { return lane_.may_take(); });
}

void SharedWay::wait_for_all() {
  wait([this] { return lane_.all_taken(); });
}

void SharedWay::send(const Tensor& tensor) {
  ECHELON_CHECK_LE(tensor.bytes(), box_bytes_);
  wait_to_fill();
  ++tally_.sent.messages_sent;
  tally_.sent.bytes_sent += tensor.bytes();
  put(tensor);
  lane_.filled();
}

void SharedWay::receive(const Tensor& tensor) {
  wait_to_take();
  get(tensor);
  lane_.taken();
}

std::unique_ptr<Way> make_shared_way(Device& device, const WayEnds& ends, std::shared_ptr<SharedBlock> block,
                                     std::byte* memory, std::size_t box_bytes, Tally& tally) {
  if (!device.on_host()) return make_peer_way(device, ends, std::move(block), memory, box_bytes, tally);
  return std::make_unique<SharedWay>(device, ends, std::move(block), memory, box_bytes, tally);
}

std::size_t shared_way_bytes(std::size_t box_bytes) { return kHelloBytes + SharedLane::bytes(kBoxes, box_bytes); }

}  // namespace echelon
