// SPDX-License-Identifier: Apache-2.0
// The machine of strategy strom: a replica that accepts arriving messages.
#include <algorithm>
#include <optional>

#include "exchange/strom/message.hpp"
#include "exchange/strom/protocol.hpp"
#include "tests/fuzz/machines.hpp"
#include "tests/fuzz/targets.hpp"

namespace echelon::fuzz {
namespace {

using Word = StromProtocol::Word;

constexpr int kFirstTag = 10;
constexpr std::int64_t kElems = 200;

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

class StromRank final : public MachineWorld {
 public:
  explicit StromRank(Tape& tape) {
    ranks_ = 2 + static_cast<int>(tape.below(3));
    rank_ = static_cast<int>(tape.below(at(ranks_)));
    traffic_ = {.asynchronous = tape.chance(160), .ring = tape.chance(128), .rooms = {}, .first_tag = kFirstTag};
    for (std::size_t b = 1 + tape.below(2); b > 0; --b) traffic_.rooms.push_back(strom_room(kElems, DType::f32, true));
    protocol_.emplace(rank_, ranks_, traffic_);
    free_.assign(traffic_.rooms.size(), kStromSlots);
    open_.assign(traffic_.rooms.size(), false);
    weights_.resize(kElems);
  }

  Machine& machine() override { return *protocol_; }

  std::vector<Token> posts() override {
    std::vector<Token> posts;
    if (meeting_) return to_take_;
    bool quiet = true;
    for (std::size_t b = 0; b < open_.size(); ++b) {
      quiet = quiet && !open_[b];
      if (traffic_.asynchronous ? free_[b] > 0 : !open_[b])
        posts.push_back(StromProtocol::token(Word::round, static_cast<int>(b)));
    }
    if (traffic_.asynchronous && quiet) posts.push_back(StromProtocol::token(Word::meet));
    for (const Token token : to_take_) posts.push_back(token);
    return posts;
  }
  void prepare(Token post) override {
    const int b = StromProtocol::bucket_of(post);
    switch (StromProtocol::word_of(post)) {
      case Word::round: {
        const std::uint32_t entry = 7 << 1;
        protocol_->commit(b, write_entries(0.5F, {&entry, 1}, true, kElems, protocol_->draft(b)));
        --free_[at(b)];
        open_[at(b)] = !traffic_.asynchronous;
        break;
      }
      case Word::meet:
        protocol_->meet();
        meeting_ = true;
        break;
      default: to_take_.erase(std::find(to_take_.begin(), to_take_.end(), post));
    }
  }
  void notified(Token token) override {
    const int b = StromProtocol::bucket_of(token), origin = StromProtocol::origin_of(token);
    switch (StromProtocol::word_of(token)) {
      case Word::arrived:
        add_message(protocol_->newest(b, origin), true, weights_.data(), DType::f32, kElems);
        if (meeting_)
          protocol_->take(b, origin);
        else
          to_take_.push_back(StromProtocol::token(Word::taken, b, origin));
        break;
      case Word::freed: ++free_[at(b)]; break;
      case Word::gathered: open_[at(b)] = false; break;
      case Word::met: meeting_ = false; break;
      default: break;
    }
  }
  std::string message_for(const OpenReceive& receive, Tape& tape) override {
    if (receive.room == 0 || tape.chance(traffic_.asynchronous ? 20 : 0)) return {};
    const std::vector<std::uint32_t> entries = {static_cast<std::uint32_t>(tape.below(100)) << 1,
                                                (100U + static_cast<std::uint32_t>(tape.below(100))) << 1 | 1U};
    std::string message(receive.room, '\0');
    message.resize(write_entries(0.25F, entries, true, kElems, reinterpret_cast<std::byte*>(message.data())));
    return message;
  }
  void sent(int, int, const std::string&) override {}

 private:
  int rank_ = 0, ranks_ = 2;
  StromTraffic traffic_;
  std::optional<StromProtocol> protocol_;
  std::vector<int> free_;   // free slots, by bucket
  std::vector<bool> open_;  // by bucket: whether a round is open
  std::vector<Token> to_take_;
  std::vector<float> weights_;
  bool meeting_ = false;
};

class StromTarget final : public MachineTarget {
  std::unique_ptr<MachineWorld> world(Tape& tape) override { return std::make_unique<StromRank>(tape); }
};

}  // namespace

std::unique_ptr<Target> make_strom_machine(const Place&) { return std::make_unique<StromTarget>(); }

}  // namespace echelon::fuzz
