// The wire format of protocol buffers, in which ONNX files are written: a message is a sequence of fields, each a
// number with a type, then a value. https://protobuf.dev/programming-guides/encoding
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace echelon::inline checkpoint::onnx {

class Message {
 public:
  // int32, int64 or enum: 7 bits a byte, the lowest first; a negative one takes 10 bytes.
  Message& integer(int field, std::int64_t value);
  Message& number(int field, float value);              // 4 bytes, little-endian
  Message& text(int field, std::string_view bytes);     // string or bytes: the length, then the content
  Message& message(int field, const Message& content);  // likewise

  // A long message in pieces: its field and length, then by `append` its content.
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
