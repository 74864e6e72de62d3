// SPDX-License-Identifier: Apache-2.0
// Message formats of BackupProtocol: lengths and the encoding of commands.
#include <cstring>

#include "base/check.hpp"
#include "exchange/backup/protocol.hpp"

namespace echelon::inline exchange {

std::size_t BackupProtocol::length_of(const Key& key) {
  switch (key.use) {
    case Use::push: return bucket(key.bucket).push_bytes;
    case Use::weights: return bucket(key.bucket).links[static_cast<std::size_t>(key.peer)].bytes;
    case Use::complete: return sizeof(BackupComplete);
    case Use::verdict: return sizeof(BackupVerdict);
    case Use::command: break;
  }
  return next_command_.size();
}

std::vector<std::byte> BackupProtocol::encode(const BackupCommand& command) const {
  std::vector<std::byte> message(command_bytes(setup_.workers));
  const WireCommand head{command.step, command.joins, command.factor, command.learning_rate};
  std::memcpy(message.data(), &head, sizeof head);
  std::vector<std::uint64_t> set(set_words(setup_.workers));
  for (const int worker : command.entered)
    set[static_cast<std::size_t>(worker / 64)] |= std::uint64_t{1} << (worker % 64);
  std::memcpy(message.data() + sizeof head, set.data(), set.size() * sizeof set[0]);
  return message;
}

BackupCommand BackupProtocol::decode(const std::vector<std::byte>& message) const {
  WireCommand head;
  std::memcpy(&head, message.data(), sizeof head);
  ECHELON_CHECK(head.joins >= -1 && head.joins < setup_.workers, "worker {} of {} joins", head.joins, setup_.workers);
  BackupCommand command{.step = head.step,
                        .joins = static_cast<int>(head.joins),
                        .factor = head.factor,
                        .learning_rate = head.learning_rate,
                        .entered = {}};
  std::vector<std::uint64_t> set(set_words(setup_.workers));
  std::memcpy(set.data(), message.data() + sizeof head, set.size() * sizeof set[0]);
  for (int w = 0; w < setup_.workers; ++w)
    if ((set[static_cast<std::size_t>(w / 64)] >> (w % 64) & 1) != 0) command.entered.push_back(w);
  ECHELON_CHECK(head.joins >= 0 || !command.entered.empty(), "nobody enters step {}", head.step);
  return command;
}

}  // namespace echelon::inline exchange
