// SPDX-License-Identifier: Apache-2.0
// The machine of the synchronous server as a worker, a server or both, with plain or coded messages.
#include <algorithm>
#include <cstring>
#include <limits>
#include <optional>
#include <tuple>

#include "base/check.hpp"
#include "comm/codec/codec.hpp"
#include "exchange/server/form.hpp"
#include "exchange/server/protocol.hpp"
#include "tests/fuzz/machines.hpp"
#include "tests/fuzz/targets.hpp"
#include "tests/support/async_setting.hpp"

namespace echelon::fuzz {
namespace {

using test::at;
using Word = ServerProtocol::Word;

constexpr int kFirstTag = 20;
constexpr std::int64_t kPiece = 100;  // elements of an uncoded message

// Reads and writes messages as exchange/server/buffers.cpp does, on plain vectors.
class Memory final : public ServerMemory {
 public:
  Memory(const test::AsyncSetting& setting, bool coded) : coded_(coded) {
    for (std::size_t b = 0; b < setting.buckets.size(); ++b) {
      const ArenaRange bucket = setting.buckets[b];
      values_.emplace_back(at(bucket.elems()), 0.5F);
      forms_.push_back(
          ServerForm::make(setting.exchange, setting.parameters, DType::f32, bucket, setting.parts[b], {}, false));
    }
  }
  std::int64_t piece_elems(int) const override { return coded_ ? std::numeric_limits<std::int64_t>::max() : kPiece; }
  Bytes push(int b, int server, ElemRange piece) override { return write({0, b, server, piece.begin}, b, piece); }
  Bytes pull(int b, ElemRange piece) override { return write({1, b, 0, piece.begin}, b, piece); }
  Bytes push_room(int b, int worker, int slot, ElemRange piece) override {
    return room({2, b, worker, slot}, b, piece);
  }
  Bytes pull_room(int b, int server, ElemRange piece) override { return room({3, b, server, piece.begin}, b, piece); }
  void add(int b, int worker, int slot, ElemRange piece, std::size_t bytes, bool replaces) override {
    read({2, b, worker, slot}, b, piece, bytes, !replaces);
  }
  void take(int b, int server, ElemRange piece, std::size_t bytes) override {
    read({3, b, server, piece.begin}, b, piece, bytes, false);
  }

  std::string message(int b, ElemRange piece, Tape& tape) {
    std::string values = floats(at(piece.elems()), tape);
    if (!coded_) return values;
    std::string wire(forms_[at(b)]->most_bytes(piece.elems()), '\0');
    wire.resize(forms_[at(b)]->encode(values.data(), piece, true, reinterpret_cast<std::byte*>(wire.data())));
    return wire;
  }

 private:
  using Key = std::tuple<int, int, int, std::int64_t>;

  std::size_t most(int b, ElemRange piece) const {
    return coded_ ? forms_[at(b)]->most_bytes(piece.elems()) : 4 * at(piece.elems());
  }
  Bytes room(const Key& key, int b, ElemRange piece) {
    std::vector<std::byte>& bytes = buffers_[key];
    bytes.assign(most(b, piece), std::byte{0});
    return {bytes.data(), bytes.size()};
  }
  Bytes write(const Key& key, int b, ElemRange piece) {
    Bytes wire = room(key, b, piece);
    float* values = values_[at(b)].data() + piece.begin;
    if (coded_)
      wire.bytes = forms_[at(b)]->encode(values, piece, false, static_cast<std::byte*>(wire.data));
    else
      std::memcpy(wire.data, values, wire.bytes);
    return wire;
  }
  void read(const Key& key, int b, ElemRange piece, std::size_t bytes, bool adds) {
    const std::byte* wire = buffers_.at(key).data();
    float* values = values_[at(b)].data() + piece.begin;
    if (coded_)
      return adds ? forms_[at(b)]->decode_add(wire, bytes, values, piece)
                  : forms_[at(b)]->decode(wire, bytes, values, piece);
    ECHELON_CHECK_EQ(bytes, most(b, piece));
    std::memcpy(values, wire, bytes);
  }

  bool coded_;
  std::vector<std::vector<float>> values_;
  std::vector<std::unique_ptr<ServerForm>> forms_;
  std::map<Key, std::vector<std::byte>> buffers_;
};

class ServerRank final : public MachineWorld {
 public:
  explicit ServerRank(Tape& tape) {
    static const std::vector<std::string> kCodecs = {"", "lossless", "int8", "topk", "threshold", "onebit", "bf16"};
    const std::string& name = kCodecs[tape.below(kCodecs.size())];
    coded_ = !name.empty();
    setting_ = test::draw_async_setting(coded_ ? name : "lossless", tape.byte());
    rank_ = static_cast<int>(tape.below(at(setting_.ranks)));
    memory_.emplace(setting_, coded_);
    std::vector<ServerBucket> buckets;
    for (std::size_t b = 0; b < setting_.buckets.size(); ++b)
      buckets.push_back({.parts = setting_.parts[b], .tag = kFirstTag + 2 * static_cast<int>(b)});
    protocol_.emplace(rank_, setting_.ranks, setting_.workers, buckets, *memory_);
    states_.resize(setting_.buckets.size(), Word::settled);
    came_.resize(setting_.buckets.size());
  }

  Machine& machine() override { return *protocol_; }
  std::vector<Token> posts() override {
    std::vector<Token> posts;
    for (std::size_t b = 0; b < states_.size(); ++b) {
      if (states_[b] == Word::settled) posts.push_back(ServerProtocol::token(Word::gradient, static_cast<int>(b)));
      if (states_[b] == Word::summed) posts.push_back(ServerProtocol::token(Word::updated, static_cast<int>(b)));
    }
    return posts;
  }
  void prepare(Token post) override {
    const std::size_t b = at(ServerProtocol::bucket_of(post));
    states_[b] = ServerProtocol::word_of(post);
    came_[b].clear();
  }
  void notified(Token token) override {
    states_[at(ServerProtocol::bucket_of(token))] = ServerProtocol::word_of(token);
  }
  std::string message_for(const OpenReceive& receive, Tape& tape) override {
    const int b = (receive.tag - kFirstTag) / 2;
    const bool push = (receive.tag - kFirstTag) % 2 == 0;
    const ElemRange part = setting_.parts[at(b)][at(push ? rank_ : receive.peer)];
    const std::int64_t begin = part.begin + (coded_ ? 0 : kPiece * came_[at(b)][receive.peer]++);
    const std::int64_t most = coded_ ? part.elems() : kPiece;
    if (begin >= part.end) return {};
    return memory_->message(b, {begin, std::min(begin + most, part.end)}, tape);
  }
  void sent(int, int, const std::string&) override {}

 private:
  test::AsyncSetting setting_;
  int rank_ = 0;
  bool coded_ = false;
  std::optional<Memory> memory_;
  std::optional<ServerProtocol> protocol_;
  std::vector<Word> states_;                       // one per bucket
  std::vector<std::map<int, std::int64_t>> came_;  // by bucket and peer: number of pieces
};

class ServerTarget final : public MachineTarget {
  std::unique_ptr<MachineWorld> world(Tape& tape) override { return std::make_unique<ServerRank>(tape); }
};

}  // namespace

std::unique_ptr<Target> make_server_machine(const Place&) { return std::make_unique<ServerTarget>(); }

}  // namespace echelon::fuzz
