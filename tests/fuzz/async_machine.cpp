// SPDX-License-Identifier: Apache-2.0
// The machine of the asynchronous server as a worker, a server or both, with its memory and codecs.
#include <algorithm>
#include <cstring>
#include <utility>

#include "comm/codec/codec.hpp"
#include "exchange/asynchronous/buffers.hpp"
#include "tests/fuzz/machines.hpp"
#include "tests/fuzz/targets.hpp"
#include "tests/support/async_setting.hpp"

namespace echelon::fuzz {
namespace {

using test::at;
using Word = AsyncProtocol::Word;

constexpr int kFirstTag = 20;

class AsyncRank final : public MachineWorld {
 public:
  explicit AsyncRank(Tape& tape) {
    static const std::vector<std::string> kCodecs = {"", "lossless", "int8", "topk", "threshold", "onebit", "fp16"};
    const std::string& name = kCodecs[tape.below(kCodecs.size())];
    setting_ = test::draw_async_setting(name.empty() ? "lossless" : name, tape.byte());
    rank_ = static_cast<int>(tape.below(at(setting_.ranks)));
    weights_.resize(at(setting_.parameters.elems()), 0.5F);
    make_memory(!name.empty());
    AsyncRules rules{.soft = setting_.soft};
    if (tape.chance(80)) rules.bound = static_cast<std::int64_t>(tape.below(3));
    if (tape.chance(80)) rules.drop_above = static_cast<std::int64_t>(tape.below(4));
    if (tape.chance(80)) rules.scale = 0.5;
    std::vector<AsyncBucket> buckets;
    for (std::size_t b = 0; b < setting_.buckets.size(); ++b)
      buckets.push_back({.parts = setting_.parts[b], .tag = kFirstTag + 2 * static_cast<int>(b), .recorded = {}});
    protocol_ = std::make_unique<AsyncProtocol>(rank_, setting_.workers, rules, std::move(buckets), *memory_);
    out_.resize(setting_.buckets.size());
  }

  Machine& machine() override { return *protocol_; }

  std::vector<Token> posts() override {
    std::vector<Token> posts;
    if (rank_ >= setting_.workers || meeting_ || done_) return posts;
    bool all = true;
    for (std::size_t b = 0; b < out_.size(); ++b) {
      all = all && !out_[b];
      if (!out_[b]) posts.push_back(AsyncProtocol::token(Word::push, static_cast<int>(b)));
    }
    if (all) posts.insert(posts.end(), {AsyncProtocol::token(Word::meet), AsyncProtocol::token(Word::done)});
    return posts;
  }

  void prepare(Token post) override {
    if (AsyncProtocol::word_of(post) != Word::push) {
      (AsyncProtocol::word_of(post) == Word::meet ? meeting_ : done_) = true;
      return;
    }
    const std::size_t b = at(AsyncProtocol::bucket_of(post));
    const float* weights = weights_.data() + setting_.buckets[b].begin;
    out_[b] = true;
    memory_->set_update(b, {.weights = weights,
                            .gradients = setting_.gradients ? weights : nullptr,
                            .share = 1,
                            .rate = 0.1,
                            .step = step_++});
  }

  void notified(Token token) override {
    const int b = AsyncProtocol::bucket_of(token);
    switch (AsyncProtocol::word_of(token)) {
      case Word::settled:
        out_[at(b)] = false;
        if (codec_) codec_->settled(at(b));
        break;
      case Word::met: meeting_ = false; break;
      case Word::recorded: protocol_->take_ledger(b); break;
      default: break;
    }
  }

  std::string message_for(const OpenReceive& receive, Tape& tape) override {
    const int b = (receive.tag - kFirstTag) / 2;
    Peer& peer = peers_[{b, receive.peer}];
    if ((receive.tag - kFirstTag) % 2 == 0) {  // a worker's update
      AsyncHeader header{.version = peer.version, .clock = peer.clock};
      if (tape.chance(40)) {
        header.kind = static_cast<std::uint32_t>(tape.chance(200) ? AsyncKind::meet : AsyncKind::done);
        return bytes_of(header);
      }
      header.clock = ++peer.clock;
      return message(header, b, rank_, tape);
    }
    AsyncHeader header = peer.asked;  // a server's weights
    header.version = peer.version += static_cast<std::int64_t>(tape.below(3));
    return message(header, b, receive.peer, tape);
  }

  void sent(int peer, int tag, const std::string& message) override {
    if (message.size() < sizeof(AsyncHeader)) throw Defect("a message without its header was sent");
    Peer& to = peers_[{(tag - kFirstTag) / 2, peer}];
    std::memcpy(&to.asked, message.data(), sizeof to.asked);
    if ((tag - kFirstTag) % 2 == 1) to.version = to.asked.version;
  }

 private:
  struct Peer {
    std::int64_t version = 0, clock = 0;
    AsyncHeader asked = {};  // the newest message that it sent
  };

  void make_memory(bool coded) {
    std::vector<ArenaRange> own;
    bool serves = false;
    for (std::size_t b = 0; b < setting_.buckets.size(); ++b) {
      const ElemRange part = setting_.parts[b][at(rank_)];
      own.push_back({setting_.buckets[b].begin + part.begin, setting_.buckets[b].begin + part.end});
      serves = serves || !part.empty();
    }
    if (coded)
      codec_ = std::make_unique<AsyncCodec>(setting_.exchange, setting_.parameters,
                                            AsyncCodec::Layout{.rank = rank_,
                                                               .ranks = setting_.ranks,
                                                               .workers = setting_.workers,
                                                               .buckets = setting_.buckets,
                                                               .parts = setting_.parts});
    AsyncServing serving{.workers = setting_.workers, .adds_up = setting_.soft > 1, .keeps_copies = coded};
    if (setting_.compensates) serving.compensation = {.lambda = 0.2};
    if (setting_.gradients) serving.optimiser.emplace();
    if (serves)
      served_ =
          std::make_unique<AsyncServed>(open_device("reference", {}), setting_.parameters, DType::f32, own, serving);
    memory_ = std::make_unique<AsyncBuffers>(AsyncBuffers::Layout{.rank = rank_,
                                                                  .workers = setting_.workers,
                                                                  .buckets = setting_.buckets,
                                                                  .parts = setting_.parts,
                                                                  .dtype = DType::f32},
                                             setting_.parameters, served_.get(), codec_.get());
    memory_->begin(weights_.data());
  }

  // Makes the message with a server's part of a bucket, coded or not.
  std::string message(AsyncHeader header, int b, int server, Tape& tape) {
    const ElemRange part = setting_.parts[at(b)][at(server)];
    std::string values = floats(at(part.elems()), tape);
    header.factor = tape.chance(10) ? -1e30 : 0.1;
    header.flags = 0;
    if (codec_ == nullptr || !tape.chance(160)) return bytes_of(header) + values;
    header.flags = 1 | static_cast<std::uint32_t>(tape.byte()) << 1;
    const std::unique_ptr<ServerForm> form =
        ServerForm::make(setting_.exchange, setting_.parameters, DType::f32, setting_.buckets[at(b)], {part}, {}, true);
    std::string wire(form->most_bytes(part.elems()), '\0');
    wire.resize(form->encode(values.data(), part, false, reinterpret_cast<std::byte*>(wire.data())));
    return bytes_of(header) + wire;
  }

  test::AsyncSetting setting_;
  int rank_ = 0;
  std::vector<float> weights_;
  std::unique_ptr<AsyncCodec> codec_;
  std::unique_ptr<AsyncServed> served_;
  std::unique_ptr<AsyncBuffers> memory_;
  std::unique_ptr<AsyncProtocol> protocol_;
  std::map<std::pair<int, int>, Peer> peers_;  // keyed by bucket and rank
  std::vector<bool> out_;
  std::int64_t step_ = 0;
  bool meeting_ = false, done_ = false;
};

class AsyncTarget final : public MachineTarget {
  std::unique_ptr<MachineWorld> world(Tape& tape) override { return std::make_unique<AsyncRank>(tape); }
};

}  // namespace

std::unique_ptr<Target> make_async_machine(const Place&) { return std::make_unique<AsyncTarget>(); }

}  // namespace echelon::fuzz
