// SPDX-License-Identifier: Apache-2.0
// Feeds one rank's machine of a protocol (comm/protocol/machine.hpp) with messages of ranks that do not exist. An input
// is a tape: each byte is a decision, about what happens next or how a message is wrong.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "comm/protocol/machine.hpp"
#include "tests/fuzz/target.hpp"

namespace echelon::fuzz {

// Reads the bytes of an input one after another; zeros follow the last.
class Tape {
 public:
  explicit Tape(const std::string& bytes) : bytes_(bytes) {}
  bool over() const { return at_ >= bytes_.size(); }
  std::uint8_t byte() { return over() ? std::uint8_t{0} : static_cast<std::uint8_t>(bytes_[at_++]); }
  std::size_t below(std::size_t bound) { return static_cast<std::size_t>(byte()) % bound; }
  bool chance(int of_256) { return byte() < of_256; }
  std::uint64_t word();

 private:
  const std::string& bytes_;
  std::size_t at_ = 0;
};

struct OpenReceive {
  Token token = 0;
  int peer = 0, tag = 0;
  std::byte* data = nullptr;
  std::size_t room = 0;
};

// A rank, with its machine, memory and host, and what it knows of the others.
class MachineWorld {
 public:
  virtual ~MachineWorld() = default;
  virtual Machine& machine() = 0;
  // Returns what the host may post now. Called before each post; prepare() is then called with the chosen one.
  virtual std::vector<Token> posts() = 0;
  virtual void prepare(Token post) = 0;
  virtual void notified(Token token) = 0;
  // Returns the message that the peer would send for this receive.
  virtual std::string message_for(const OpenReceive& receive, Tape& tape) = 0;
  virtual void sent(int peer, int tag, const std::string& message) = 0;
};

class MachineTarget : public Target {
 public:
  std::string draw(Draws& draws) final { return draws.bytes(16 + draws.below(draws.chance(0.2) ? 3000 : 300)); }
  bool take(const std::string& input) final;

 private:
  virtual std::unique_ptr<MachineWorld> world(Tape& tape) = 0;
};

// Makes `count` floats of moderate size.
std::string floats(std::size_t count, Tape& tape);
template <class T>
std::string bytes_of(const T& value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

}  // namespace echelon::fuzz
