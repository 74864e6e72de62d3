// SPDX-License-Identifier: Apache-2.0
// The wire format of protocol buffers, in which ONNX files are written: a message is a sequence of fields, each with a
// number, a type and a value. https://protobuf.dev/programming-guides/encoding
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace echelon::inline checkpoint::onnx {

class Message {
 public:
  // int32, int64 or enum: 7 bits per byte, lowest first; a negative number takes 10 bytes.
  Message& integer(int field, std::int64_t value);
  Message& number(int field, float value);              // 4 bytes, little-endian
  Message& text(int field, std::string_view bytes);     // string or bytes: length, then content
  Message& message(int field, const Message& content);  // length, then content

  // Writes a long message in pieces: first its field and length, then its content by `append`.
  Message& begin_message(int field, std::size_t length);
  Message& append(std::string_view bytes) { return bytes_ += bytes, *this; }
  Message& append(const Message& fields) { return append(fields.bytes_); }
  void prepend(const Message& fields) { bytes_.insert(0, fields.bytes_); }

  const std::string& bytes() const { return bytes_; }
  std::string take() { return std::move(bytes_); }
  void reserve(std::size_t bytes) { bytes_.reserve(bytes); }

 private:
  void key(int field, int type);
  void varint(std::uint64_t value);

  std::string bytes_;
};

}  // namespace echelon::inline checkpoint::onnx
