// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/onnx/wire.hpp"

#include <bit>

namespace echelon::inline checkpoint::onnx {
namespace {

enum WireType : int { kVarint = 0, kLength = 2, kFourBytes = 5 };

}  // namespace

void Message::varint(std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) bytes_ += static_cast<char>((value & 0x7f) | 0x80);
  bytes_ += static_cast<char>(value);
}

void Message::key(int field, int type) { varint(static_cast<std::uint64_t>(field) << 3 | static_cast<unsigned>(type)); }

Message& Message::integer(int field, std::int64_t value) {
  key(field, kVarint);
  varint(static_cast<std::uint64_t>(value));
  return *this;
}

Message& Message::number(int field, float value) {
  key(field, kFourBytes);
  const auto bits = std::bit_cast<std::uint32_t>(value);
  for (int shift = 0; shift < 32; shift += 8) bytes_ += static_cast<char>(bits >> shift & 0xff);
  return *this;
}

Message& Message::begin_message(int field, std::size_t length) {
  key(field, kLength);
  varint(length);
  return *this;
}

Message& Message::text(int field, std::string_view bytes) { return begin_message(field, bytes.size()).append(bytes); }

Message& Message::message(int field, const Message& content) { return text(field, content.bytes_); }

}  // namespace echelon::inline checkpoint::onnx
