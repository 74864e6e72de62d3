// SPDX-License-Identifier: Apache-2.0
// Serialises values into bytes, for other ranks of this launch and for checksums.
#pragma once

#include <concepts>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/check.hpp"

namespace echelon::inline data {

class Packing {
 public:
  template <class T>
  requires std::is_arithmetic_v<T>
  void put(T value) { bytes_.append(reinterpret_cast<const char*>(&value), sizeof value); }
  void put(std::string_view text) {
    put(std::uint64_t{text.size()});
    bytes_ += text;
  }
  void put(const std::vector<std::string>& texts) {
    put(std::uint64_t{texts.size()});
    for (const std::string& text : texts) put(std::string_view(text));
  }
  template <class T>
  requires std::is_arithmetic_v<T>
  void put(const std::vector<T>& values) {
    put(std::uint64_t{values.size()});
    bytes_.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
  }
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

// Reads values in the order in which they were put.
class Unpacking {
 public:
  explicit Unpacking(std::string_view bytes) : left_(bytes) {}

  bool done() const { return left_.empty(); }
  template <class T>
  requires std::is_arithmetic_v<T>
  void get(T& value) { std::memcpy(&value, take(sizeof value).data(), sizeof value); }
  void get(std::string& text) {
    std::uint64_t bytes = 0;
    get(bytes);
    text = take(bytes);
  }
  void get(std::vector<std::string>& texts) {
    std::uint64_t count = 0;
    get(count);
    texts.resize(count);
    for (std::string& text : texts) get(text);
  }
  template <class T>
  requires std::is_arithmetic_v<T>
  void get(std::vector<T>& values) {
    std::uint64_t count = 0;
    get(count);
    const std::string_view bytes = take(count * sizeof(T));
    values.resize(count);
    if (count > 0) std::memcpy(values.data(), bytes.data(), bytes.size());
  }

 private:
  std::string_view take(std::uint64_t bytes) {
    ECHELON_CHECK(bytes <= left_.size(), "{} bytes are left of a packed text, but {} are needed", left_.size(), bytes);
    const std::string_view taken = left_.substr(0, bytes);
    left_.remove_prefix(bytes);
    return taken;
  }
  std::string_view left_;
};

}  // namespace echelon::inline data
