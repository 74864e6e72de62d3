// SPDX-License-Identifier: Apache-2.0
#include "tests/support/async_world.hpp"

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>

#include "base/check.hpp"
#include "base/hash_rng.hpp"
#include "tests/support/async_numbers.hpp"
#include "tests/support/ledger_rows.hpp"
#include "tests/support/protocol_world.hpp"
#include "tests/support/watched_machine.hpp"

namespace echelon::test {
namespace {

// A rank, with its memory and its host, whose steps are pauses.
class AsyncRank final : public ProtocolHost {
 public:
  AsyncRank(const AsyncSchedule& schedule, int rank, VirtualWorld& world, AsyncObserver& observer,
            const std::vector<LedgerBytes>& recorded)
      : schedule_(schedule),
        rank_(rank),
        random_(HashRng(schedule.network.seed, "async rank").at(at(rank))),
        observer_(observer),
        numbers_(schedule.parts, rank, observer),
        settled_(schedule.parts.size(), true) {
    protocol.emplace(rank, schedule.workers, schedule.rules, buckets_of(schedule, recorded), numbers_);
    watched_.emplace(*protocol);
    auto transport = make_disturbed(world.transport(rank), schedule.disturbance[at(rank)]);
    actor.emplace(
        std::move(transport), *watched_, *this, [this] { return ended_; }, schedule.sends);
    if (works()) begin_epoch();
  }

  void on_notified(Token token, double now_s) override {
    const int b = AsyncProtocol::bucket_of(token);
    for (std::size_t i = 0; i < settled_.size(); ++i)
      messages += protocol->take_sent(static_cast<int>(i)).messages_sent;
    switch (AsyncProtocol::word_of(token)) {
      case AsyncProtocol::Word::settled:
        ECHELON_CHECK(!settled_[at(b)]);
        check_settled(b);
        settled_[at(b)] = true;
        numbers_.settled(b);
        last_push_s = now_s;
        if (to_push_ == 0 && std::find(settled_.begin(), settled_.end(), false) == settled_.end()) begin_step();
        break;
      case AsyncProtocol::Word::met:
        ECHELON_CHECK(serves() || (works() && !done_), "told of a meeting that is not its own");
        ++meetings_;
        check_met();
        if (!works() || done_) break;
        observer_.left_meeting(rank_);
        ++epoch_;
        begin_epoch();
        break;
      case AsyncProtocol::Word::ended: ended_ = true; break;
      default: ECHELON_CHECK(false, "word {}", static_cast<int>(AsyncProtocol::word_of(token)));
    }
  }
  void failed(std::exception_ptr error) override { std::rethrow_exception(error); }

  std::optional<AsyncProtocol> protocol;
  std::optional<ProtocolActor> actor;
  std::uint64_t messages = 0;
  double last_push_s = 0;

 private:
  static std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }
  bool works() const { return rank_ < schedule_.workers; }
  bool serves() const {
    return std::any_of(schedule_.parts.begin(), schedule_.parts.end(),
                       [&](const Parts& p) { return !p[at(rank_)].empty(); });
  }

  // The update may be overwritten from now on, so no part of it may still be in flight.
  void check_settled(int b) const {
    for (const auto& [token, send] : watched_->sends())
      ECHELON_CHECK_NE(send.tag, async_tag(b), "bucket {} is settled before it has left", b);
    for (const auto& [token, tag_of] : watched_->waits())
      ECHELON_CHECK_NE(tag_of, async_tag(b) + 1, "bucket {} is settled, and waited for", b);
  }
  // Checks that all workers have come to this rank's pieces and have their answers. Workers do not wait for a server's
  // host here, so a piece may already be at the next meeting.
  void check_met() const {
    for (std::size_t i = 0; i < schedule_.parts.size(); ++i) {
      const int b = static_cast<int>(i);
      const AsyncPiece* piece = protocol->piece(b);
      if (!piece) continue;
      constexpr std::int64_t kDone = 1'000'000;
      std::vector<std::int64_t> meetings(at(schedule_.workers));
      for (const LedgerRow& row : ledger_rows(piece->ledger()))
        if (row.entry.kind != AsyncKind::update)
          meetings[at(row.entry.worker)] += row.entry.kind == AsyncKind::meet ? 1 : kDone;
      const std::int64_t all = *std::min_element(meetings.begin(), meetings.end());
      ECHELON_CHECK_GE(all, meetings_, "the piece of bucket {} is not at the meeting", b);
      if (all > meetings_) continue;
      for (const auto& [token, send] : watched_->sends())
        ECHELON_CHECK(send.tag != async_tag(b) + 1 || kind_of(send.data) != AsyncKind::meet,
                      "answers of bucket {} are on their way", b);
    }
  }
  static AsyncKind kind_of(const void* message) {
    AsyncHeader header;
    std::memcpy(&header, message, sizeof header);
    return static_cast<AsyncKind>(header.kind);
  }

  void begin_epoch() {
    left_ = schedule_.steps[at(rank_)][at(epoch_)];
    begin_step();
  }
  double pause_s() {
    const double spread = 1 + schedule_.spread * (random_.uniform(draws_++) - 0.5);
    return schedule_.compute_s * schedule_.slowness[at(rank_)] * spread;
  }
  // Forward takes a third of a step; back-propagation finishes the last bucket first.
  void begin_step() {
    if (left_-- == 0) {
      const bool last = epoch_ + 1 == static_cast<int>(schedule_.steps[at(rank_)].size());
      last ? observer_.done(rank_) : observer_.came_to_meeting(rank_);
      done_ = last;
      actor->post(AsyncProtocol::token(last ? AsyncProtocol::Word::done : AsyncProtocol::Word::meet));
      return;
    }
    const double step_s = pause_s();
    to_push_ = static_cast<int>(settled_.size());
    for (int b = to_push_ - 1, i = 1; b >= 0; --b, ++i)
      actor->at(actor->now_s() + step_s * (1 + 2.0 * i / static_cast<double>(settled_.size())) / 3, [this, b] {
        settled_[at(b)] = false;
        --to_push_;
        numbers_.pushes(b);
        actor->post(AsyncProtocol::token(AsyncProtocol::Word::push, b));
      });
  }

  const AsyncSchedule& schedule_;
  int rank_;
  HashRng random_;
  std::uint64_t draws_ = 0;
  AsyncObserver& observer_;
  AsyncNumbers numbers_;
  std::vector<bool> settled_;
  std::optional<WatchedMachine> watched_;
  std::int64_t meetings_ = 0;
  int epoch_ = 0, to_push_ = 0;
  std::int64_t left_ = 0;
  bool done_ = false, ended_ = false;
};

}  // namespace

StalenessTally AsyncOutcome::all() const {
  StalenessTally sum;
  for (const StalenessTally& worker : staleness) sum += worker;
  return sum;
}

std::vector<AsyncBucket> buckets_of(const AsyncSchedule& schedule, const std::vector<LedgerBytes>& recorded) {
  std::vector<AsyncBucket> buckets;
  for (std::size_t b = 0; b < schedule.parts.size(); ++b)
    buckets.push_back({.parts = schedule.parts[b],
                       .tag = async_tag(static_cast<int>(b)),
                       .priority = static_cast<int>(b),
                       .recorded = recorded.empty() ? LedgerBytes{} : recorded[b]});
  return buckets;
}

AsyncOutcome outcome_of(const AsyncSchedule& schedule, AsyncObserver& observer,
                        const std::vector<const AsyncProtocol*>& protocols) {
  AsyncOutcome outcome;
  const auto workers = static_cast<std::size_t>(schedule.workers);
  outcome.lead = observer.lead();
  outcome.pulled.resize(workers);
  outcome.staleness.resize(workers);
  outcome.weights.resize(schedule.parts.size());
  for (std::size_t r = 0; r < protocols.size(); ++r) {
    std::vector<LedgerBytes>& ledgers = outcome.ledgers.emplace_back(schedule.parts.size());
    for (std::size_t w = 0; w < workers; ++w) outcome.staleness[w] += protocols[r]->staleness(static_cast<int>(w));
    for (std::size_t i = 0; i < schedule.parts.size(); ++i) {
      const int b = static_cast<int>(i), rank = static_cast<int>(r);
      const AsyncPiece* piece = protocols[r]->piece(b);
      ECHELON_CHECK_EQ(piece != nullptr, !schedule.parts[i][r].empty());
      if (!piece) continue;
      ECHELON_CHECK(!piece->replaying() && piece->all_done());
      observer.check_piece(b, rank, *piece);
      ledgers[i] = piece->ledger();
      const Integers weights = observer.weights(b, rank);
      outcome.weights[i].insert(outcome.weights[i].end(), weights.begin(), weights.end());
      for (std::size_t w = 0; w < workers; ++w)
        outcome.pulled[w].push_back(observer.pulled(static_cast<int>(w), b, rank));
    }
  }
  return outcome;
}

AsyncOutcome run_async(const AsyncSchedule& schedule, const std::vector<std::vector<LedgerBytes>>& recorded) {
  VirtualWorld world(schedule.ranks, schedule.network);
  AsyncObserver observer(schedule.workers, schedule.rules, schedule.parts);
  std::vector<std::unique_ptr<AsyncRank>> ranks;
  std::vector<VirtualActor*> actors;
  for (int r = 0; r < schedule.ranks; ++r) {
    const auto& order = recorded.empty() ? std::vector<LedgerBytes>{} : recorded[static_cast<std::size_t>(r)];
    ranks.push_back(std::make_unique<AsyncRank>(schedule, r, world, observer, order));
    actors.push_back(&*ranks.back()->actor);
  }
  world.run(actors, 100);

  std::vector<const AsyncProtocol*> protocols;
  std::vector<double> last_push_s;
  std::uint64_t messages = 0, sent = 0;
  for (const auto& rank : ranks) {
    protocols.push_back(&*rank->protocol);
    last_push_s.push_back(rank->last_push_s);
    messages += rank->messages;
    sent += rank->actor->wire().messages_sent;
  }
  ECHELON_CHECK_EQ(messages, observer.messages(), "messages that the host was told of");
  ECHELON_CHECK_EQ(sent, observer.messages(), "messages on the wire");
  AsyncOutcome outcome = outcome_of(schedule, observer, protocols);
  outcome.last_push_s = last_push_s;
  return outcome;
}

}  // namespace echelon::test
