// SPDX-License-Identifier: Apache-2.0
#include "comm/shaped.hpp"

#include <sched.h>

#include <algorithm>
#include <deque>
#include <list>
#include <map>
#include <new>
#include <vector>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "comm/counters.hpp"
#include "comm/host_groups.hpp"
#include "comm/network_card.hpp"
#include "comm/wrapped_transport.hpp"

namespace echelon::inline comm {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
// The part of a message that TCP buffers, and the length up to which a message is sent without an answer.
constexpr double kSendBuffer = 64 << 10;
constexpr std::size_t kEager = 320 << 10;
constexpr double kLook_s = 1e-3;  // longest time between two checks of the copies in flight
// A receiver that has not answered by then has not posted its receive; the kernel takes the message meanwhile.
constexpr double kAnswer_s = 1e-3;

// Sent beside a message.
struct Departure {
  Passage leaves = {};  // on the sender's clock
  double called_s = 0;  // when it was sent, on the sender's clock
};

// The card of this rank's host, and the owner of its memory.
struct OwnCard {
  std::shared_ptr<const void> memory;
  HostCard* card = nullptr;
  NetworkShape shape = {};  // with the rate of this host's card
};

class ShapedTransport final : public WrappedTransport {
 public:
  ShapedTransport(std::unique_ptr<Transport> inner, const NetworkShape& shape, OwnCard own, const Clock& clock)
      : WrappedTransport(std::move(inner)),
        departures_(this->inner().split(0, rank())),
        answers_(this->inner().split(0, rank())),
        shape_(shape),
        own_(std::move(own)),
        clock_(clock) {}
  // Lets copies leave that have not been received yet; after a while their receivers are assumed to be gone.
  ~ShapedTransport() override {
    constexpr double kPatience_s = 2;
    for (const double end_s = now_s() + kPatience_s; !beside_.empty() && now_s() < end_s; sched_yield()) try {
        look_beside();
      } catch (const Error&) {
        break;
      }
    if (!beside_.empty()) (void)new (std::nothrow) std::list<Beside>(std::move(beside_));
  }

  std::string name() const override { return inner().name() + ", shaped to " + shape_.text(); }
  const NetworkShape* shape() const override { return &shape_; }
  const Clock& clock() const override { return clock_; }

  double wakes_at_s() const override {
    double first = inner().wakes_at_s();
    const double now_s = clock_.now_s();
    if (!beside_.empty()) first = std::min(first, looked_s_ + kLook_s);
    if (!coming_.empty()) first = std::min(first, coming_.begin()->first);
    for (const Op& op : ops_)
      if (op.state == State::arriving || (op.state == State::sending && (waits_for_time(op) || op.ends_s > now_s)))
        first = std::min(first, op.ends_s);
    return first;
  }

  Request isend(int peer, int tag, const void* data, std::size_t bytes) override {
    const Request request = begin({.state = State::passing, .sends = true, .peer = peer, .tag = tag, .bytes = bytes});
    Op& op = at(request);
    if (!is_here(peer)) {
      const double now_s = clock_.now_s();
      const Passage leaves = own_.card->out.book(now_s, now_s, card_s(own_.shape, bytes), burst_s());
      op.state = State::sending;
      op.ends_s = leaves.ends_s - kSendBuffer / own_.shape.bytes_per_s;
      Beside& beside = new_beside();
      beside.departure = {leaves, now_s};
      beside.told = departures_->isend(peer, tag, &beside.departure, sizeof(Departure));
      if (static_cast<double>(bytes) > kSendBuffer) {
        beside.answer = answers_->irecv(peer, tag, &beside.ends_s, sizeof beside.ends_s);
        beside.held = true;
        op.beside = &beside;
        op.unanswered_s = leaves.ends_s + shape_.delay_s + kAnswer_s;
      }
      if (bytes <= kEager) {  // leaves whether or not its receive is posted
        const auto* from = static_cast<const std::byte*>(data);
        beside.copy.assign(from, from + bytes);
        beside.message = inner().isend(peer, tag, beside.copy.data(), bytes);
        return request;
      }
    }
    op.inner = inner().isend(peer, tag, data, bytes);
    return request;
  }

  Request irecv(int peer, int tag, void* data, std::size_t bytes) override {
    const Request request = begin({.state = State::passing, .peer = peer, .tag = tag, .bytes = bytes});
    at(request).ends_s = clock_.now_s();  // posted
    at(request).inner = inner().irecv(peer, tag, data, bytes);
    return request;
  }

  std::optional<Completion> test(Request& request) override {
    free_beside();
    Op& op = at(request);
    try {
      if (op.sends ? has_left(op) : has_come(op, request.id)) {
        const Completion completion{op.peer, op.bytes};
        card_.add(clock_.now_s(), op.bytes);
        release(request);
        return completion;
      }
    } catch (...) {
      release(request);
      throw;
    }
    return std::nullopt;
  }

  void cancel(Request& request) override {
    Op& op = at(request);
    if (op.inner.valid()) inner().cancel(op.inner);
    if (op.told.valid()) departures_->cancel(op.told);
    std::erase_if(coming_, [&](const auto& entry) { return entry.second == request.id; });
    release(request);
  }
  std::size_t abandoned() const override {
    return inner().abandoned() + departures_->abandoned() + answers_->abandoned();
  }

  bool has_library_allreduce() const override { return false; }
  Request iallreduce(void*, std::size_t, DType) override {
    throw EnvironmentError("the message library's all-reduce cannot be slowed down, which network.rate asks for");
  }
  std::unique_ptr<Transport> split(int color, int key) override {
    return std::make_unique<ShapedTransport>(inner().split(color, key), shape_, own_, clock_);
  }

  CardRates card_rates() const override { return card_.read(); }
  void restart_card_rates() override { card_.restart(); }

 private:
  enum class State : std::uint8_t {
    free,
    passing,   // the inner transport completes it, as far as is known
    sending,   // to another host, until `ends_s`
    told,      // from another host: it has arrived, and the time of its departure is on its way
    coming,    // its first byte reaches the card at its time in `coming_`; `departure` has the time of its last byte
    arriving,  // it passes the card until `ends_s`
  };
  // State of a message that is not part of its sender's request, or of its receiver's if that answers.
  struct Beside {
    Departure departure = {};
    double ends_s = 0;                 // when the message has passed its receiver's card
    std::vector<std::byte> copy = {};  // copy of a message that leaves before it is received
    Request told = {}, message = {}, answer = {};
    bool answers = false;  // whether `told` goes to the sender
    bool held = false;     // whether the request of its sender refers to it
  };
  struct Op {
    State state = State::free;
    bool sends = false;
    int peer = -1, tag = 0;
    std::size_t bytes = 0;
    double ends_s = 0;  // while `passing`: when a receive was posted
    Request inner = {}, told = {};
    Departure departure = {};
    Beside* beside = nullptr;  // set for a send that waits for its receiver's answer, until `unanswered_s` at most
    double unanswered_s = 0;
  };
  double burst_s() const { return shape_.burst_bytes / own_.shape.bytes_per_s; }
  Op& at(const Request& request) { return ops_[static_cast<std::size_t>(request.id)]; }
  bool is_here(int peer) const { return same(hosts(), peer); }
  bool same(const std::vector<int>& of, int peer) const {
    return of[static_cast<std::size_t>(peer)] == of[static_cast<std::size_t>(rank())];
  }

  bool waits_for_time(const Op& op) const { return !op.inner.valid() && (!op.beside || !op.beside->answer.valid()); }

  // A connection buffers 64 KiB; the rest has to pass both cards, also that of the receiver, where other messages may
  // be queued before it.
  bool has_left(Op& op) {
    if (op.inner.valid() && !inner().test(op.inner)) return false;
    if (op.state == State::passing) return true;
    const double now_s = clock_.now_s();
    if (now_s < op.ends_s) return false;
    if (op.beside) {
      if (op.beside->answer.valid() && !answers_->test(op.beside->answer)) return now_s >= op.unanswered_s;
      const double passed_s = here_s(op.beside->ends_s, op.peer) - shape_.delay_s;
      op.ends_s = std::max(op.ends_s, passed_s - kSendBuffer / own_.shape.bytes_per_s);
      op.beside->held = false;
      op.beside = nullptr;
    }
    return now_s >= op.ends_s;
  }
  // told_s converts a time of this clock for a peer, here_s converts it back; between machines it is relative to now.
  double told_s(double s, int peer) const { return same(machines(), peer) ? s : s - clock_.now_s(); }
  double here_s(double s, int peer) const { return same(machines(), peer) ? s : s + clock_.now_s(); }

  bool has_come(Op& op, std::int64_t id) {
    if (op.state == State::passing) {
      const std::optional<Completion> completion = inner().test(op.inner);
      if (!completion) return false;
      op.peer = completion->peer, op.bytes = completion->bytes;
      if (is_here(op.peer)) return true;
      op.state = State::told;
      op.told = departures_->irecv(op.peer, op.tag, &op.departure, sizeof(Departure));
    }
    if (op.state == State::told) {
      if (!departures_->test(op.told)) return false;
      const double posted_s = op.ends_s;
      Passage& leaves = op.departure.leaves;
      double later_s = shape_.delay_s;
      if (!same(machines(), op.peer)) later_s += clock_.now_s() - op.departure.called_s;
      if (op.bytes > kEager) later_s += std::max(0.0, posted_s - leaves.begins_s);
      leaves.begins_s += later_s, leaves.ends_s += later_s;
      op.state = State::coming;
      coming_.emplace(leaves.begins_s, id);
    }
    const double now_s = clock_.now_s();
    book(now_s);
    return op.state == State::arriving && now_s >= op.ends_s;
  }

  // The card takes messages in the order in which they arrive, whichever one is tested.
  void book(double now_s) {
    for (auto next = coming_.begin(); next != coming_.end() && next->first <= now_s; next = coming_.erase(next)) {
      Op& op = ops_[static_cast<std::size_t>(next->second)];
      const Passage& comes = op.departure.leaves;
      op.ends_s = own_.card->in.book(comes.begins_s, comes.ends_s, card_s(own_.shape, op.bytes), burst_s()).ends_s;
      op.state = State::arriving;
      if (static_cast<double>(op.bytes) <= kSendBuffer) continue;
      Beside& beside = new_beside();
      beside.ends_s = told_s(op.ends_s, op.peer);
      beside.told = answers_->isend(op.peer, op.tag, &beside.ends_s, sizeof beside.ends_s);
      beside.answers = true;
    }
  }

  Beside& new_beside() {
    if (idle_.empty())
      beside_.emplace_back();
    else
      beside_.splice(beside_.end(), idle_, idle_.begin());
    return beside_.back();
  }
  // Does not test in every call, because each test of a request may poll the network.
  void free_beside() {
    constexpr double kEvery_s = 20e-6;
    if (beside_.empty()) return;
    const double now_s = clock_.now_s();
    if (now_s - looked_s_ < kEvery_s) return;
    looked_s_ = now_s;
    look_beside();
  }
  void look_beside() {
    for (auto at = beside_.begin(); at != beside_.end();) {
      const auto one = at++;
      const bool told = !one->told.valid() || (one->answers ? answers_ : departures_)->test(one->told);
      const bool left = !one->message.valid() || inner().test(one->message);
      const bool answered = !one->answer.valid() || answers_->test(one->answer);
      if (told && left && answered && !one->held) {
        one->answers = false;
        idle_.splice(idle_.end(), beside_, one);
      }
    }
  }

  Request begin(Op op) {
    if (free_.empty()) {
      free_.push_back(static_cast<std::int64_t>(ops_.size()));
      ops_.emplace_back();
    }
    const std::int64_t id = free_.back();
    free_.pop_back();
    ops_[static_cast<std::size_t>(id)] = op;
    return {id};
  }
  void release(Request& request) {
    if (Beside* beside = at(request).beside) beside->held = false;
    at(request) = {};
    free_.push_back(request.id);
    request.id = -1;
  }

  std::unique_ptr<Transport> departures_, answers_;
  NetworkShape shape_;
  OwnCard own_;
  const Clock& clock_;
  std::deque<Op> ops_;  // by request; addresses must not change, because messages are written to them
  std::vector<std::int64_t> free_;
  std::list<Beside> beside_, idle_;             // in flight; for reuse
  double looked_s_ = 0;                         // when `beside_` was last checked
  std::multimap<double, std::int64_t> coming_;  // by the time at which the first byte is at the card
  CardMeter card_;
};

// Called by all ranks of a host.
OwnCard card_of_host(Transport& whole) {
  const int host = whole.hosts()[static_cast<std::size_t>(whole.rank())];
  const std::unique_ptr<Transport> ranks = whole.split(host, whole.rank());
  if (ranks->size() == 1) {
    auto card = std::make_shared<HostCard>();
    return {.memory = card, .card = card.get()};
  }
  std::shared_ptr<SharedBlock> block = ranks->share(sizeof(HostCard));
  if (!block)
    throw EnvironmentError(
        "ranks of one host of [network] cannot share memory for its card; network.ranks_per_host = 1 needs none");
  static_assert(alignof(HostCard) <= 64, "blocks are aligned to 64");
  auto* card = std::launder(reinterpret_cast<HostCard*>(block->of(0)));
  return {.memory = std::move(block), .card = card};
}

}  // namespace

std::unique_ptr<Transport> make_shaped(std::unique_ptr<Transport> inner, const NetworkShape& shape,
                                       const Clock* clock) {
  std::unique_ptr<Transport> hosts = inner->with_hosts(groups_of_ranks(inner->size(), shape.ranks_per_host));
  OwnCard card = card_of_host(*hosts);
  card.shape = shape.of_host(hosts->hosts()[static_cast<std::size_t>(hosts->rank())]);
  const Clock& of = clock ? *clock : hosts->clock();
  return std::make_unique<ShapedTransport>(std::move(hosts), shape, std::move(card), of);
}

}  // namespace echelon::inline comm
