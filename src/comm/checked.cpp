// SPDX-License-Identifier: Apache-2.0
#include "comm/checked.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <new>
#include <set>
#include <vector>

#include "base/checksum.hpp"
#include "comm/wrapped_transport.hpp"

namespace echelon::inline comm {
namespace {

struct Trailer {
  std::uint32_t number = 0, crc = 0;
};

constexpr std::size_t kExtra = sizeof(Trailer);
// Receive buffers are this much longer than the message that is due. A longer message that arrives in place of a lost
// one is then reported by its number; Open MPI 4.1 may write past a buffer that is too short for its message.
constexpr std::size_t kSlack = 4096;

class CheckedTransport final : public WrappedTransport {
 public:
  using WrappedTransport::WrappedTransport;
  // Keeps memory into which an abandoned message may still be written.
  ~CheckedTransport() override {
    if (inner().abandoned() > 0) (void)new (std::nothrow) std::vector<Buffer>(std::move(given_up_));
  }

  std::string name() const override { return inner().name() + ", messages checked"; }

  Request isend(int peer, int tag, const void* data, std::size_t bytes) override {
    Buffer buffer = buffer_of(bytes + kExtra);
    Trailer trailer{.number = sent_[{peer, tag}]++};
    trailer.crc = crc32c(&trailer.number, sizeof trailer.number, copy_with_crc32c(buffer.data.get(), data, bytes));
    std::memcpy(buffer.data.get() + bytes, &trailer, kExtra);
    const Request below = inner().isend(peer, tag, buffer.data.get(), bytes + kExtra);
    return begin({.inner = below, .peer = peer, .tag = tag, .bytes = bytes, .buffer = std::move(buffer)});
  }

  Request irecv(int peer, int tag, void* data, std::size_t bytes) override {
    Buffer buffer = buffer_of(bytes + kExtra + kSlack);
    const Request below = inner().irecv(peer, tag, buffer.data.get(), bytes + kExtra + kSlack);
    const std::int64_t posted = receives_++;
    std::int64_t due = -1;
    if (peer == kAnySource && !open_.contains(tag) && one_source_.contains(tag)) not_compared_.insert({peer, tag});
    if (peer == kAnySource || open_.contains(tag)) {
      open_[tag].insert(posted);
    } else {
      one_source_.insert(tag);
      due = posted_[{peer, tag}]++;
    }
    return begin({.inner = below,
                  .peer = peer,
                  .tag = tag,
                  .bytes = bytes,
                  .into = data,
                  .due = due,
                  .posted = posted,
                  .buffer = std::move(buffer),
                  .receives = true});
  }

  std::optional<Completion> test(Request& request) override {
    Op& op = ops_[static_cast<std::size_t>(request.id)];
    std::optional<Completion> completion;
    try {
      completion = inner().test(op.inner);
    } catch (...) {
      release(request);
      throw;
    }
    if (!completion) return std::nullopt;
    if (op.receives) {
      const std::string wrong = take(op, *completion);
      if (!wrong.empty()) {
        release(request);
        throw MessageError(wrong);
      }
    }
    completion->bytes -= kExtra;
    release(request);
    return completion;
  }

  void cancel(Request& request) override {
    Op& op = ops_[static_cast<std::size_t>(request.id)];
    inner().cancel(op.inner);
    if (op.receives && op.peer != kAnySource) not_compared_.insert({op.peer, op.tag});
    if (op.receives && op.peer == kAnySource) not_compared_.insert({kAnySource, op.tag});
    if (op.buffer.data) given_up_.push_back(std::move(op.buffer));
    release(request);
  }

  bool has_library_allreduce() const override { return false; }
  Request iallreduce(void*, std::size_t, DType) override {
    throw EnvironmentError(
        "the message library's all-reduce carries no checksum, which exchange.check_messages asks "
        "for");
  }
  std::unique_ptr<Transport> split(int color, int key) override { return make_checked(inner().split(color, key)); }

  // Memory that ranks share carries no messages to check.
  std::shared_ptr<SharedBlock> share(std::size_t) override { return nullptr; }
  bool shares_channels() const override { return false; }
  bool checks_messages() const override { return true; }

  WireCounters counters() const override {
    WireCounters counted = inner().counters();
    counted.bytes_sent -= kExtra * counted.messages_sent;
    counted.bytes_received -= std::min(counted.bytes_received, kExtra * counted.messages_received);
    return counted;
  }

 private:
  using Channel = std::pair<int, int>;  // peer, tag
  struct Buffer {
    std::unique_ptr<std::byte[]> data;
    std::size_t bytes = 0;
  };
  struct Op {
    Request inner = {};
    int peer = -1, tag = 0;
    std::size_t bytes = 0;
    void* into = nullptr;
    std::int64_t due = -1;     // number of the message that it receives; -1: not known before
    std::int64_t posted = -1;  // position among all receives, in the order in which they were posted
    Buffer buffer = {};
    bool receives = false;
  };

  // Returns the smallest buffer that is large enough; at most kKept are kept.
  Buffer buffer_of(std::size_t bytes) {
    auto best = idle_.end();
    for (auto at = idle_.begin(); at != idle_.end(); ++at)
      if (at->bytes >= bytes && (best == idle_.end() || at->bytes < best->bytes)) best = at;
    if (best == idle_.end()) return {std::make_unique_for_overwrite<std::byte[]>(bytes), bytes};
    Buffer buffer = std::move(*best);
    *best = std::move(idle_.back());
    idle_.pop_back();
    return buffer;
  }

  Request begin(Op op) {
    if (free_.empty()) {
      free_.push_back(static_cast<std::int64_t>(ops_.size()));
      ops_.emplace_back();
    }
    const std::int64_t id = free_.back();
    free_.pop_back();
    ops_[static_cast<std::size_t>(id)] = std::move(op);
    return {id};
  }

  void release(Request& request) {
    Op& op = ops_[static_cast<std::size_t>(request.id)];
    if (op.receives && op.due < 0) open_[op.tag].erase(op.posted);
    if (op.buffer.data) {
      if (idle_.size() >= kKept) idle_.erase(idle_.begin());
      idle_.push_back(std::move(op.buffer));
    }
    op = {};
    free_.push_back(request.id);
    request.id = -1;
  }

  std::string from(const Op& op, int peer) const {
    const auto host = static_cast<std::size_t>(inner().hosts()[static_cast<std::size_t>(peer)]);
    return fmt::format("rank {} on {} to rank {} (tag {}", peer, inner().host_names()[host], rank(), op.tag);
  }

  // Copies the content to its receiver. Returns what is wrong with the message, or "".
  std::string take(const Op& op, const Completion& completion) {
    if (completion.bytes < kExtra)
      return fmt::format(
          "a message from {}, {} bytes) carries no checksum: exchange.check_messages is not set on every "
          "rank",
          from(op, completion.peer), completion.bytes);
    const std::size_t bytes = completion.bytes - kExtra;
    Trailer trailer;
    std::memcpy(&trailer, op.buffer.data.get() + bytes, kExtra);
    const std::byte* const content = op.buffer.data.get();
    const std::uint32_t crc =
        crc32c(&trailer.number, sizeof trailer.number,
               bytes > op.bytes ? crc32c(content, bytes) : copy_with_crc32c(op.into, content, bytes));
    if (crc != trailer.crc)
      return fmt::format(
          "a message from {}, {} bytes) arrived damaged: its CRC32C is {:08x}, that of its content {:08x}",
          from(op, completion.peer), bytes, trailer.crc, crc);
    const std::string wrong = wrong_with_number(op, completion.peer, bytes, trailer.number);
    if (!wrong.empty() || bytes <= op.bytes) return wrong;
    return fmt::format("a message from {}, {} bytes) is longer than the {} bytes that were due",
                       from(op, completion.peer), bytes, op.bytes);
  }

  // Receives are matched in the order in which they were posted, whoever sends. Once no receive is open that was posted
  // before the one that took message n of a rank, earlier messages of that rank that have not arrived are lost.
  std::string wrong_with_number(const Op& op, int peer, std::size_t bytes, std::uint32_t number) {
    const Channel channel{peer, op.tag};
    if (not_compared_.contains(channel) || not_compared_.contains({kAnySource, op.tag})) return {};
    const auto wrong = [&](int of, std::uint32_t due) {
      return fmt::format("a message from {}, {} bytes) is number {}, but number {} was due: {}", from(op, of), bytes,
                         number, due, number > due ? "one before it was lost" : "it arrived twice");
    };
    if (op.due >= 0) return number == op.due ? std::string() : wrong(peer, static_cast<std::uint32_t>(op.due));
    std::set<std::int64_t>& open = open_[op.tag];
    open.erase(op.posted);
    std::uint32_t& due = due_[channel];
    if (number < due) return wrong(peer, due);
    ahead_[channel][number] = op.posted;
    for (auto at = ahead_.begin(); at != ahead_.end();) {
      auto& [of, numbers] = *at;
      std::uint32_t& next = due_[of];
      for (; !numbers.empty() && numbers.begin()->first == next; ++next) numbers.erase(numbers.begin());
      if (of.second == op.tag)
        for (const auto& [ahead, posted] : numbers)
          if (open.empty() || *open.begin() > posted)
            return fmt::format("message {} from {}) was lost: message {} has arrived", next, from(op, of.first), ahead);
      at = numbers.empty() ? ahead_.erase(at) : std::next(at);
    }
    return {};
  }

  static constexpr std::size_t kKept = 64;

  std::vector<Op> ops_;  // indexed by request
  std::vector<std::int64_t> free_;
  std::vector<Buffer> idle_, given_up_;
  std::int64_t receives_ = 0;
  std::map<Channel, std::uint32_t> sent_, posted_;  // messages sent so far; receives from a named rank posted so far
  std::set<int> one_source_;                        // tags of such receives
  // For tags on which receives from any rank were posted: the receives in flight, by tag; the number of the next
  // message of each rank; and messages that arrived ahead of it, with the receives that took them.
  std::map<int, std::set<std::int64_t>> open_;
  std::map<Channel, std::uint32_t> due_;
  std::map<Channel, std::map<std::uint32_t, std::int64_t>> ahead_;
  std::set<Channel> not_compared_;
};

}  // namespace

std::unique_ptr<Transport> make_checked(std::unique_ptr<Transport> inner) {
  return std::make_unique<CheckedTransport>(std::move(inner));
}

}  // namespace echelon::inline comm
