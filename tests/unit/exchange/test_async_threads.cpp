// SPDX-License-Identifier: Apache-2.0
// The asynchronous server's machines on engines, with ranks as threads: checked by the same observer as on virtual
// time; and a run in the order that the threads happened to have, repeated on virtual time bit for bit.
#include <catch2/catch.hpp>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "base/check.hpp"
#include "base/hash_rng.hpp"
#include "comm/engine.hpp"
#include "tests/support/async_numbers.hpp"
#include "tests/support/async_world.hpp"
#include "tests/support/random.hpp"
#include "tests/support/ranks.hpp"

namespace echelon {
namespace {

using namespace test;
using Word = AsyncProtocol::Word;

class ThreadRank final : public ProtocolHost {
 public:
  ThreadRank(const AsyncSchedule& schedule, int rank, AsyncObserver& observer)
      : schedule_(schedule),
        rank_(rank),
        observer_(observer),
        numbers_(schedule.parts, rank, observer),
        protocol(rank, schedule.workers, schedule.rules, buckets_of(schedule, {}), numbers_) {}

  void run(std::unique_ptr<Transport> transport) {
    Engine engine(std::move(transport));
    const auto attached = engine.attach(protocol, *this);
    attached_ = attached.get();
    if (rank_ < schedule_.workers) work();
    wait([&] { return ended_; });
  }

  void on_notified(Token token, double) override {
    const std::lock_guard lock(mutex_);
    const Word word = AsyncProtocol::word_of(token);
    if (word == Word::settled) {
      numbers_.settled(AsyncProtocol::bucket_of(token));
      --out_;
    }
    if (word == Word::met && rank_ < schedule_.workers) observer_.left_meeting(rank_);
    if (word == Word::met) meeting_ = false;
    ended_ = ended_ || word == Word::ended;
    changed_.notify_all();
  }
  void failed(std::exception_ptr error) override {
    const std::lock_guard lock(mutex_);
    error_ = error;
    changed_.notify_all();
  }

 private:
  void work() {
    const auto& epochs = schedule_.steps[static_cast<std::size_t>(rank_)];
    const HashRng random = HashRng(schedule_.network.seed, "pauses").at(static_cast<std::uint64_t>(rank_));
    std::uint64_t draws = 0;
    for (std::size_t e = 0; e < epochs.size(); ++e) {
      for (std::int64_t t = 0; t < epochs[e]; ++t) {
        for (int b = static_cast<int>(schedule_.parts.size()) - 1; b >= 0; --b) {
          std::this_thread::sleep_for(std::chrono::microseconds(random.below(draws++, 100)));
          {
            const std::lock_guard lock(mutex_);
            ++out_;
            numbers_.pushes(b);
          }
          attached_->post(AsyncProtocol::token(Word::push, b));
        }
        wait([&] { return out_ == 0; });
      }
      if (e + 1 == epochs.size()) break;
      observer_.came_to_meeting(rank_);
      meeting_ = true;
      attached_->post(AsyncProtocol::token(Word::meet));
      wait([&] { return !meeting_; });
    }
    observer_.done(rank_);
    attached_->post(AsyncProtocol::token(Word::done));
  }
  template <class Condition>
  void wait(const Condition& holds) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return error_ || holds(); });
    if (error_) std::rethrow_exception(error_);
  }

  const AsyncSchedule& schedule_;
  int rank_;
  AsyncObserver& observer_;
  AsyncNumbers numbers_;
  Attachment* attached_ = nullptr;
  std::mutex mutex_;
  std::condition_variable changed_;
  int out_ = 0;
  bool meeting_ = false, ended_ = false;
  std::exception_ptr error_;

 public:
  AsyncProtocol protocol;
};

}  // namespace

TEST_CASE("an asynchronous run of threads is repeated on virtual time", "[exchange][protocol][asynchronous]") {
  for (std::uint64_t seed = test_seed(); seed < test_seed() + 6; ++seed) {
    CAPTURE(seed);
    AsyncSchedule schedule = draw_async_schedule(seed);
    AsyncObserver observer(schedule.workers, schedule.rules, schedule.parts);
    std::vector<std::unique_ptr<ThreadRank>> ranks;
    std::vector<const AsyncProtocol*> protocols;
    for (int r = 0; r < schedule.ranks; ++r) {
      ranks.push_back(std::make_unique<ThreadRank>(schedule, r, observer));
      protocols.push_back(&ranks.back()->protocol);
    }
    const auto body = [&](std::unique_ptr<Transport> transport) {
      ranks[static_cast<std::size_t>(transport->rank())]->run(std::move(transport));
    };
    REQUIRE_NOTHROW(run_ranks(schedule.ranks, body, 20));
    AsyncOutcome threads, repeated;
    REQUIRE_NOTHROW(threads = outcome_of(schedule, observer, protocols));
    REQUIRE_NOTHROW(repeated = run_async(schedule, threads.ledgers));
    CHECK(repeated.ledgers == threads.ledgers);
    CHECK(repeated.weights == threads.weights);
    CHECK(repeated.pulled == threads.pulled);
  }
}

}  // namespace echelon
