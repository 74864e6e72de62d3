// SPDX-License-Identifier: Apache-2.0
#include "tests/support/async_numbers.hpp"

#include <algorithm>
#include <cstring>

#include "base/check.hpp"

namespace echelon::test {
namespace {

constexpr std::int64_t kLongest = 3;  // most extra numbers that a message may carry behind those of its part

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

AsyncMemory::Message write(std::vector<std::byte>& bytes, const Integers& numbers) {
  bytes.resize(std::max(bytes.size(), sizeof(AsyncHeader) + numbers.size() * sizeof(std::int64_t)));
  if (!numbers.empty())
    std::memcpy(bytes.data() + sizeof(AsyncHeader), numbers.data(), numbers.size() * sizeof(std::int64_t));
  AsyncMemory::Message message;
  message.data = bytes.data();
  message.bytes = sizeof(AsyncHeader) + numbers.size() * sizeof(std::int64_t);
  return message;
}

Integers read(AsyncMemory::Payload payload) {
  Integers numbers(payload.size() / sizeof(std::int64_t));
  if (!numbers.empty()) std::memcpy(numbers.data(), payload.data(), payload.size());
  return numbers;
}

}  // namespace

AsyncNumbers::AsyncNumbers(const std::vector<Parts>& parts, int rank, AsyncObserver& observer)
    : parts_(parts), rank_(rank), observer_(observer), pushes_(parts.size()) {}

void AsyncNumbers::pushes(int b) {
  ++pushes_[at(b)];
  observer_.pushed(rank_, b);
}

void AsyncNumbers::settled(int b) {
  for (auto& [key, buffer] : updates_)
    if (key.first == b) std::fill(buffer.bytes.begin(), buffer.bytes.end(), std::byte{0xee});
  observer_.settled(rank_, b);
}

AsyncMemory::Room AsyncNumbers::room(Buffer& buffer, int b, int server) {
  const std::size_t numbers = at(part(b, server).elems() + kLongest);
  buffer.bytes.assign(sizeof(AsyncHeader) + numbers * sizeof(std::int64_t), std::byte{0xee});
  return {buffer.bytes.data(), buffer.bytes.size()};
}

AsyncMemory::Message AsyncNumbers::push(int b, int server) {
  const std::int64_t t = pushes_[at(b)];
  const ElemRange range = part(b, server);
  Integers numbers;
  for (std::int64_t i = range.begin; i < range.end; ++i) numbers.push_back(AsyncObserver::gradient(rank_, t, b, i));
  numbers.resize(numbers.size() + at(t % (kLongest + 1)));
  Message message = write(updates_[{b, server}].bytes, numbers);
  message.factor = static_cast<double>(t) / 8;
  message.flags = static_cast<std::uint32_t>(rank_);
  return message;
}

void AsyncNumbers::take(int b, int server, const AsyncHeader& header, Payload weights) {
  ECHELON_CHECK_EQ(header.flags, 77u);
  observer_.taken(rank_, b, server, header, read(weights));
}

AsyncMemory::Room AsyncNumbers::push_room(int b, int worker) {
  Buffer& buffer = served_[{b, worker}];
  ECHELON_CHECK(!buffer.posted, "a room is given twice");
  buffer.posted = true;
  return room(buffer, b, rank_);
}

void AsyncNumbers::apply(int b, int worker, const AsyncUpdate& update, const AsyncHeader& header, Payload payload) {
  ECHELON_CHECK_EQ(header.factor, static_cast<double>(update.clock) / 8);
  ECHELON_CHECK_EQ(static_cast<int>(header.flags), worker);
  Integers numbers = read(payload);
  ECHELON_CHECK_EQ(numbers.size(), at(part(b, rank_).elems() + update.clock % (kLongest + 1)));
  observer_.applied(b, rank_, worker, update, numbers);
}

AsyncMemory::Message AsyncNumbers::answer(int b, int worker, const AsyncHeader& asked) {
  // `asked` must be the message's own header: updates carry their worker in the flags, control messages nothing.
  const bool update = static_cast<AsyncKind>(asked.kind) == AsyncKind::update;
  ECHELON_CHECK_EQ(asked.flags, update ? static_cast<std::uint32_t>(worker) : 0u);
  Buffer& buffer = served_[{b, worker}];
  ECHELON_CHECK(worker == rank_ || buffer.posted, "an answer that nobody asked for");
  buffer.posted = false;
  Message message = write(buffer.bytes, observer_.weights(b, rank_));
  message.flags = 77;
  return message;
}

}  // namespace echelon::test
