// From device to device: boxes lie in the sender's device memory, which the receiver's device reads. The sender leaves
// the name of that memory (Device::export_memory) in the shared one; with its first receive the receiver tries it and
// leaves an answer. Until the sender has a good one, what travels is staged through the host.
#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <utility>

#include "parallel/shared_way.hpp"

namespace echelon {
namespace {

enum class Reach : std::uint32_t { unknown, yes, no };

// In the shared memory, in front of the lane. What is not atomic is published with the next box.
struct Hello {
  std::atomic<Reach> reached = Reach::unknown;  // the receiver's word
  std::uint32_t bytes = 0;                      // of `name`, the sender's; 0: there is none
  std::array<char, 104> name = {};
  std::array<bool, kBoxes> on_device = {};  // by place: where what was sent last lies
};
static_assert(sizeof(Hello) <= kHelloBytes);

class PeerWay final : public SharedWay {
 public:
  PeerWay(Device& device, const WayEnds& ends, std::shared_ptr<SharedBlock> block, std::byte* memory,
          std::size_t box_bytes, Tally& tally)
      : SharedWay(device, ends, std::move(block), memory, box_bytes, tally), hello_(*reinterpret_cast<Hello*>(memory)) {
    if (!ends_.sends) return;
    boxes_ = device_.allocate(kBoxes * box_bytes_, "boxes for other devices");
    const std::string name = device_.export_memory(boxes_);
    if (name.size() > hello_.name.size()) return;
    hello_.bytes = static_cast<std::uint32_t>(name.size());
    std::copy(name.begin(), name.end(), hello_.name.begin());
  }

  // What was sent lies in this device's memory.
  void finish() override {
    if (ends_.sends) wait_for_all();
  }

 private:
  void put(const Tensor& tensor) override {
    const Reach reached = hello_.reached.load(std::memory_order_acquire);
    if (reached == Reach::no) boxes_ = {};
    hello_.on_device[lane_.place()] = reached == Reach::yes;
    if (reached != Reach::yes) return SharedWay::put(tensor);
    copy(box(), tensor.data, tensor.bytes());
  }
  void get(const Tensor& tensor) override {
    if (hello_.reached.load(std::memory_order_relaxed) == Reach::unknown) answer();
    if (!hello_.on_device[lane_.place()]) return SharedWay::get(tensor);
    copy(tensor.data, box(), tensor.bytes());
  }
  void answer() {
    if (hello_.bytes > 0) boxes_ = device_.import_memory(std::string(hello_.name.data(), hello_.bytes));
    hello_.reached.store(boxes_.data() ? Reach::yes : Reach::no, std::memory_order_release);
  }

  void* box() const { return boxes_.bytes_at(lane_.place() * box_bytes_); }
  void copy(void* to, const void* from, std::size_t bytes) {
    device_.copy(to, from, bytes);
    device_.record()->wait();
  }

  Hello& hello_;
  Memory boxes_;  // the sender's own; to the receiver as it reaches them
};

}  // namespace

std::unique_ptr<Way> make_peer_way(Device& device, const WayEnds& ends, std::shared_ptr<SharedBlock> block,
                                   std::byte* memory, std::size_t box_bytes, Tally& tally) {
  return std::make_unique<PeerWay>(device, ends, std::move(block), memory, box_bytes, tally);
}

}  // namespace echelon
