// SPDX-License-Identifier: Apache-2.0
// Priority on a wire that takes time: 50 us a message, one after another, in the order in which sends start.
#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <deque>

#include "base/check.hpp"
#include "base/clock.hpp"
#include "comm/collective/algorithms.hpp"
#include "comm/engine.hpp"
#include "comm/group.hpp"
#include "tests/support/ranks.hpp"

using namespace echelon;

namespace {

constexpr double kMessage_s = 50e-6;

class SlowWire final : public Transport {
 public:
  // `sent` receives the tags of all messages, in the order in which they leave.
  SlowWire(std::unique_ptr<Transport> inner, std::vector<int>& sent) : inner_(std::move(inner)), sent_(sent) {}
  int rank() const override { return inner_->rank(); }
  int size() const override { return inner_->size(); }
  std::string name() const override { return "slow"; }
  const std::vector<int>& hosts() const override { return inner_->hosts(); }
  const std::vector<std::string>& host_names() const override { return inner_->host_names(); }

  Request isend(int peer, int tag, const void* data, std::size_t bytes) override {
    queue_.push_back({peer, tag, data, bytes, next_send_, {}});
    return {kSends + next_send_++};
  }
  Request irecv(int peer, int tag, void* data, std::size_t bytes) override {
    return inner_->irecv(peer, tag, data, bytes);
  }
  std::optional<Completion> test(Request& request) override {
    pump();
    if (request.id < kSends) return inner_->test(request);
    const std::int64_t send = request.id - kSends;
    if (send >= first_unsent_) return std::nullopt;
    request.id = -1;
    return Completion{};
  }
  void cancel(Request& request) override {
    if (request.id < kSends) inner_->cancel(request);
  }
  bool has_library_allreduce() const override { return false; }
  Request iallreduce(void*, std::size_t, DType) override { return {}; }
  std::unique_ptr<Transport> split(int, int) override { return nullptr; }
  WireCounters counters() const override { return inner_->counters(); }
  [[noreturn]] void abort(int exit_code) override {
    inner_->abort(exit_code);
    std::abort();
  }

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
      front.request = inner_->isend(front.peer, front.tag, front.data, front.bytes);
    }
    if (!inner_->test(front.request)) return;
    first_unsent_ = front.number + 1;
    queue_.pop_front();
  }

  std::unique_ptr<Transport> inner_;
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
