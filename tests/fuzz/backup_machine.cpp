// SPDX-License-Identifier: Apache-2.0
// The machine of backup workers as the coordinator, another server or a worker, with its memory.
#include <algorithm>
#include <cstring>
#include <optional>

#include "exchange/backup/buffers.hpp"
#include "tests/fuzz/machines.hpp"
#include "tests/fuzz/targets.hpp"
#include "tests/support/async_setting.hpp"

namespace echelon::fuzz {
namespace {

using test::at;
using Word = BackupProtocol::Word;

constexpr int kTag = 10, kFirstTag = 20;

class BackupRank final : public MachineWorld {
 public:
  explicit BackupRank(Tape& tape) : setting_(test::draw_async_setting("lossless", tape.byte())) {
    rank_ = static_cast<int>(tape.below(at(setting_.ranks)));
    const int needed = 1 + static_cast<int>(tape.below(at(setting_.workers)));
    const auto elems = setting_.parameters.elems();
    device_ = open_device("reference", {});
    arenas_.emplace(*device_, setting_.parameters, DType::f32);
    optimiser_.emplace(OptimiserConfig{}, *arenas_);
    gradients_.emplace(*device_, arenas_->gradients_at(0), elems, DType::f32);
    weights_.emplace(*device_, arenas_->weights_at(0), elems, DType::f32);
    memory_.emplace(rank_, setting_.workers, setting_.buckets, setting_.parts, *arenas_, *optimiser_, *gradients_,
                    *weights_);
    memory_->begin();
    BackupProtocol::Setup setup{
        .rank = rank_, .workers = setting_.workers, .needed = needed, .buckets = {}, .tag = kTag};
    for (std::size_t b = 0; b < setting_.buckets.size(); ++b)
      setup.buckets.push_back({.parts = setting_.parts[b], .tag = kFirstTag + 2 * static_cast<int>(b)});
    protocol_.emplace(std::move(setup), *memory_);
    pulled_.assign(setting_.buckets.size(), true);
    pushed_.assign(setting_.buckets.size(), false);
  }

  Machine& machine() override { return *protocol_; }

  std::vector<Token> posts() override {
    std::vector<Token> posts;
    const bool works = rank_ < setting_.workers;
    for (std::size_t b = 0; b < pushed_.size() && works; ++b)
      if (!pushed_[b] && pulled_[b] && judged_) posts.push_back(BackupProtocol::token(Word::push, static_cast<int>(b)));
    if (works && judged_ && std::find(pushed_.begin(), pushed_.end(), false) == pushed_.end())
      posts.push_back(BackupProtocol::token(Word::complete));
    if (works && posts.size() == pushed_.size() && !quiet_) posts.push_back(BackupProtocol::token(Word::quiet));
    if (held_) posts.push_back(BackupProtocol::token(Word::resume));
    return posts;
  }
  void prepare(Token post) override {
    switch (BackupProtocol::word_of(post)) {
      case Word::push: pushed_[at(BackupProtocol::bucket_of(post))] = true; break;
      case Word::complete:
        protocol_->set_complete(
            {.step = protocol_->verdict().next_step, .weight = 8, .whole = 32, .learning_rate = 0.1});
        judged_ = false;
        pushed_.assign(pushed_.size(), false);
        pulled_.assign(pulled_.size(), false);
        break;
      case Word::resume: held_ = false; break;
      default: quiet_ = true;
    }
  }
  void notified(Token token) override {
    switch (BackupProtocol::word_of(token)) {
      case Word::verdict: judged_ = true; break;
      case Word::pulled: pulled_[at(BackupProtocol::bucket_of(token))] = true; break;
      case Word::quiet: quiet_ = false, held_ = true; break;
      default: break;
    }
  }

  std::string message_for(const OpenReceive& receive, Tape& tape) override {
    if (receive.tag == kTag)
      return bytes_of(BackupComplete{.step = next_[receive.peer], .weight = 8, .whole = 32, .learning_rate = 0.1});
    if (receive.tag == kTag + 1) {
      step_ += 1 + static_cast<std::int64_t>(tape.below(2));
      return bytes_of(BackupVerdict{.next_step = step_, .entered = tape.chance(128) ? 1 : 0});
    }
    if (receive.tag == kTag + 2) return command(tape, receive.room);
    return floats(receive.room / sizeof(float), tape);
  }
  void sent(int peer, int tag, const std::string& message) override {
    if (tag != kTag + 1) return;
    BackupVerdict verdict;
    if (message.size() != sizeof verdict) throw Defect("a verdict of another length");
    std::memcpy(&verdict, message.data(), sizeof verdict);
    next_[peer] = verdict.next_step;
  }

 private:
  // Makes a command as the coordinator writes it: step, worker that joins, factor, rate, set of those that entered.
  std::string command(Tape& tape, std::size_t room) {
    const bool joins = tape.chance(40);
    const std::int64_t worker = joins ? static_cast<std::int64_t>(tape.below(at(setting_.workers))) : -1;
    std::uint64_t entered = joins ? 0 : tape.byte() & ((1U << setting_.workers) - 1);
    std::string message = bytes_of(commands_) + bytes_of(worker) + bytes_of(1.0) + bytes_of(0.1) + bytes_of(entered);
    if (!joins) ++commands_;
    message.resize(room);
    return message;
  }

  test::AsyncSetting setting_;
  int rank_ = 0;
  std::unique_ptr<Device> device_;
  std::optional<Arenas> arenas_;
  std::optional<Optimiser> optimiser_;
  std::optional<Staging> gradients_, weights_;
  std::optional<BackupBuffers> memory_;
  std::optional<BackupProtocol> protocol_;
  std::vector<bool> pulled_, pushed_;  // one flag per bucket
  bool judged_ = true, quiet_ = false, held_ = false;
  std::map<int, std::int64_t> next_;  // by worker: the step that it completes next
  std::int64_t step_ = 0, commands_ = 0;
};

class BackupTarget final : public MachineTarget {
  std::unique_ptr<MachineWorld> world(Tape& tape) override { return std::make_unique<BackupRank>(tape); }
};

}  // namespace

std::unique_ptr<Target> make_backup_machine(const Place&) { return std::make_unique<BackupTarget>(); }

}  // namespace echelon::fuzz
