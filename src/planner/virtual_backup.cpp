// SPDX-License-Identifier: Apache-2.0
#include "planner/virtual_served.hpp"

#include <algorithm>
#include <memory>
#include <optional>
#include <vector>

#include "exchange/backup/protocol.hpp"
#include "planner/virtual_traffic.hpp"

namespace echelon::inline planner {
namespace {

// A rank whose messages have the right sizes but no contents, and whose computations are pauses. The ranks meet once,
// at the end.
class BackupRank final : public BackupMemory, public ProtocolHost {
 public:
  BackupRank(const StrategySetting& setting, Traffic& traffic, int rank, VirtualWorld& world)
      : traffic_(traffic), rank_(rank) {
    const auto backups = static_cast<int>(setting.exchange().backup.of(traffic.workers));
    BackupProtocol::Setup setup{.rank = rank,
                                .workers = traffic.workers,
                                .needed = traffic.workers - std::min(backups, traffic.workers - 1),
                                .first_step = 0,
                                .buckets = {},
                                .tag = 0};
    for (std::size_t b = 0; b < traffic.parts.size(); ++b)
      setup.buckets.push_back(
          {.parts = traffic.parts[b], .tag = 4 + 2 * static_cast<int>(b), .priority = traffic.priority(setting, b)});
    protocol_.emplace(std::move(setup), *this);
    actor.emplace(
        world.transport(rank), *protocol_, *this, [this] { return ended_; }, ProtocolActor::kSends,
        traffic.frame_bytes(), traffic.short_bytes());
    if (rank >= traffic.workers) {
      wait_for_all();
      return;
    }
    worker.emplace(setting, 0.0, traffic.factors(setting, rank),
                   VirtualWorker::Calls{.give = [this](int b) { post(Word::push, b); },
                                        .ended = [this] { last_step_ = true, check_if_met(); },
                                        .stepped = [this] { complete(); }});
    worker->begin(*actor);
  }

  Bytes push(int b, int server) override { return of(b, server); }
  Bytes weights_room(int b, int server) override { return of(b, server); }
  Bytes push_room(int b, int) override { return of(b, rank_); }
  void take_step(int, const BackupCommand&) override {}
  Message weights(int b) override { return std::make_shared<std::vector<std::byte>>(of(b, rank_).bytes); }
  void take_own(int) override {}

  void on_notified(Token token, double) override {
    switch (BackupProtocol::word_of(token)) {
      case Word::verdict: return worker->go_on(protocol_->verdict().next_step);
      case Word::pulled: worker->settled(BackupProtocol::bucket_of(token)); return check_if_met();
      default: ended_ = true, post(Word::end);  // all are quiet: they have met before
    }
  }
  void failed(std::exception_ptr error) override { std::rethrow_exception(error); }

  std::optional<ProtocolActor> actor;
  std::optional<VirtualWorker> worker;  // none on a dedicated server

 private:
  using Word = BackupProtocol::Word;

  Bytes of(int b, int server) {
    const ElemRange part = traffic_.parts[static_cast<std::size_t>(b)][static_cast<std::size_t>(server)];
    return {traffic_.scratch.data(), static_cast<std::size_t>(part.elems())};
  }
  void post(Word word, int b = 0) { actor->post(BackupProtocol::token(word, b)); }
  void complete() {
    protocol_->set_complete(
        {.step = worker->step(), .weight = 1, .whole = static_cast<double>(traffic_.workers), .learning_rate = 1});
    post(Word::complete);
  }
  // A worker waits for the weights of its last step.
  void check_if_met() {
    if (!last_step_ || !worker->all_there()) return;
    ++traffic_.met;
    wait_for_all();
  }
  void wait_for_all() {
    constexpr double kPause_s = 1e-3;
    if (traffic_.met < traffic_.workers) return actor->at(actor->now_s() + kPause_s, [this] { wait_for_all(); });
    if (!worker) protocol_->set_step(traffic_.steps);
    post(Word::quiet);
  }

  Traffic& traffic_;
  int rank_;
  std::optional<BackupProtocol> protocol_;
  bool last_step_ = false, ended_ = false;
};

}  // namespace

double simulated_backup_s(const StrategySetting& setting, int replicas) {
  return run_virtual<BackupRank>(setting, replicas);
}

}  // namespace echelon::inline planner
