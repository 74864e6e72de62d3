// SPDX-License-Identifier: Apache-2.0
// Priority on a wire that takes time: 50 us a message, one after another, in the order in which sends start.
#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <deque>

#include "base/check.hpp"
#include "base/clock.hpp"
#include "comm/collective/algorithms.hpp"
#include "comm/engine.hpp"
#include "comm/group.hpp"
#include "comm/wrapped_transport.hpp"
#include "tests/support/ranks.hpp"

using namespace echelon;

namespace {

constexpr double kMessage_s = 50e-6;

class SlowWire final : public WrappedTransport {
 public:
  // `sent` receives the tags of all messages, in the order in which they leave.
  SlowWire(std::unique_ptr<Transport> inner, std::vector<int>& sent)
      : WrappedTransport(std::move(inner)), sent_(sent) {}
  std::string name() const override { return "slow"; }

  Request isend(int peer, int tag, const void* data, std::size_t bytes) override {
    queue_.push_back({peer, tag, data, bytes, next_send_, {}});
    return {kSends + next_send_++};
  }
  std::optional<Completion> test(Request& request) override {
    pump();
    if (request.id < kSends) return inner().test(request);
    const std::int64_t send = request.id - kSends;
    if (send >= first_unsent_) return std::nullopt;
    request.id = -1;
    return Completion{};
  }
  void cancel(Request& request) override {
    if (request.id < kSends) inner().cancel(request);
  }
  std::unique_ptr<Transport> split(int, int) override { return nullptr; }

 private:
  static constexpr std::int64_t kSends = std::int64_t{1} << 40;
  struct Message {
    int peer, tag;
    const void* data;
    std::size_t bytes;
    std::int64_t number;
    Request request;
  };

  void pump() {
    if (queue_.empty()) return;
    Message& front = queue_.front();
    if (!front.request.valid()) {
      if (now_s() < free_at_s_) return;
      free_at_s_ = now_s() + kMessage_s;
      sent_.push_back(front.tag);
      front.request = inner().isend(front.peer, front.tag, front.data, front.bytes);
    }
    if (!inner().test(front.request)) return;
    first_unsent_ = front.number + 1;
    queue_.pop_front();
  }

  std::vector<int>& sent_;
  std::deque<Message> queue_;
  std::int64_t next_send_ = 0, first_unsent_ = 0;
  double free_at_s_ = 0;
};

struct Switch final : Event {
  bool ready() const override { return on.load(); }
  void wait() const override { on.wait(false); }
  std::atomic<bool> on = false;
};

// Starts six plans of low priority and then an urgent one, all at once. Returns the position of the urgent plan's last
// message among all that rank 0 sent, as a share of them: a count, so that a busy machine changes it little.
double urgent_share(int urgent_priority) {
  constexpr int kPlans = 6, kUrgent = 1 + kPlans;  // channels 1 to 6, and 7
  std::vector<int> sent;
  test::run_ranks(2, [&](std::unique_ptr<Transport> transport) {
    std::vector<int> own;
    const int rank = transport->rank();
    {
      Engine engine(std::make_unique<SlowWire>(std::move(transport), own));
      const auto go = std::make_shared<Switch>();
      std::vector<std::vector<float>> data(kUrgent, std::vector<float>(4000, 1.0f));
      std::vector<Ticket> tickets;
      const AllreduceRequest request{
          .rank = rank, .ranks = 2, .elems = 4000, .segment_elems = 100, .hosts = {}};  // 40 messages per rank
      for (int i = 0; i < kUrgent; ++i)
        tickets.push_back(engine.submit({.plan = make_allreduce("ring", request),
                                         .data = data[static_cast<std::size_t>(i)].data(),
                                         .dtype = DType::f32,
                                         .channel = 1 + i,
                                         .priority = 1 + i == kUrgent ? urgent_priority : 5,
                                         .after = go}));
      Group(engine, 0).barrier();
      go->on = true;
      for (const Ticket& ticket : tickets) ticket.wait();
      for (const auto& sums : data)
        for (const float value : sums) ECHELON_CHECK_EQ(value, 2.0f);
      Group(engine, 0).barrier();
    }
    if (rank == 0) sent = own;
  });
  std::erase(sent, 0);  // those of barriers
  const auto last = std::find(sent.rbegin(), sent.rend(), kUrgent);
  return static_cast<double>(sent.rend() - last) / static_cast<double>(sent.size());
}

}  // namespace

// While the peer sleeps, the first halves of the six may pass (120 messages of 280); so the bound is well above 1/7.
TEST_CASE("an urgent plan passes those that wait for the same wire", "[comm][engine]") {
  CHECK(urgent_share(0) < 0.7);
  CHECK(urgent_share(9) > 0.8);
}
