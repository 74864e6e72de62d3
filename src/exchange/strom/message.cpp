// SPDX-License-Identifier: Apache-2.0
#include "exchange/strom/message.hpp"

#include <algorithm>
#include <cstring>

#include "base/check.hpp"
#include "comm/codec/indices.hpp"
#include "device/vector.hpp"

namespace echelon::inline exchange {
namespace {

constexpr std::uint8_t kRaw = 255;

template <class T>
std::size_t put(std::byte* message, std::size_t at, T value) {
  std::memcpy(message + at, &value, sizeof value);
  return at + sizeof value;
}

template <class T>
T last_of(StromMessage message) {
  ECHELON_CHECK_GE(message.size(), sizeof(T), "a message of entries is damaged");
  T value;
  std::memcpy(&value, message.data() + message.size() - sizeof value, sizeof value);
  return value;
}

template <class T>
void add_entry(std::uint32_t entry, T tau, T* weights, std::int64_t elems) {
  ECHELON_CHECK_LT(entry >> 1, static_cast<std::uint64_t>(elems), "a message of entries is damaged");
  weights[entry >> 1] += (entry & 1) != 0 ? -tau : tau;
}

template <class T>
void add_raw(StromMessage entries, T tau, T* weights, std::int64_t elems) {
  ECHELON_CHECK_EQ(entries.size() % 4, 0u, "a message of entries is damaged");
  for (std::size_t at = 0; at < entries.size(); at += 4) {
    std::uint32_t entry;
    std::memcpy(&entry, entries.data() + at, sizeof entry);
    add_entry(entry, tau, weights, elems);
  }
}

template <class T>
void add_entries(StromMessage entries, bool entropy, T tau, T* weights, std::int64_t elems) {
  if (!entropy || entries.empty()) return add_raw(entries, tau, weights, elems);
  const auto rice_bits = last_of<std::uint8_t>(entries);
  entries = entries.first(entries.size() - 1);
  if (rice_bits == kRaw) return add_raw(entries, tau, weights, elems);
  ECHELON_CHECK_LT(int{rice_bits}, 32, "a message of entries is damaged");
  IndexReader indices({.coding = IndexCoding::golomb, .rice_bits = rice_bits, .extra = true}, entries.data(),
                      entries.size());
  while (!indices.over()) add_entry(indices.next(), tau, weights, elems);
}

}  // namespace

std::size_t strom_room(std::int64_t elems, DType dtype, bool dense) {
  const std::size_t n = static_cast<std::size_t>(elems), entries = 4 * n + 1 + sizeof(float);
  const std::size_t bytes = dense ? std::max(entries, n * size_of(dtype) + sizeof(float)) : entries;
  return (bytes + 7) / 8 * 8;
}

std::size_t write_entries(float tau, std::span<const std::uint32_t> entries, bool entropy, std::int64_t elems,
                          std::byte* message) {
  std::size_t at = 0;
  if (!entropy || entries.empty()) {
    at = write_indices({.coding = IndexCoding::raw, .extra = true}, entries, message);
  } else {
    IndexFormat as = format_for(IndexCoding::golomb, true, entries.size(), elems);
    const bool raw = bytes_of_indices(as, entries) >= entries.size_bytes();
    if (raw) as = {.coding = IndexCoding::raw, .extra = true};
    at = write_indices(as, entries, message);
    at = put(message, at, raw ? kRaw : as.rice_bits);
  }
  return put(message, at, tau);
}

std::size_t write_dense(const void* values, DType dtype, std::int64_t elems, std::byte* message) {
  const std::size_t bytes = static_cast<std::size_t>(elems) * size_of(dtype);
  if (values != message) std::memcpy(message, values, bytes);
  return put(message, bytes, 0.0f);
}

void add_message(StromMessage message, bool entropy, void* weights, DType dtype, std::int64_t elems) {
  const auto tau = last_of<float>(message);
  message = message.first(message.size() - sizeof tau);
  if (tau == 0) {
    ECHELON_CHECK_EQ(message.size(), static_cast<std::size_t>(elems) * size_of(dtype), "a dense message is damaged");
    return host_vector_ops().add(dtype, weights, message.data(), static_cast<std::size_t>(elems));
  }
  if (dtype == DType::f64)
    add_entries(message, entropy, double{tau}, static_cast<double*>(weights), elems);
  else
    add_entries(message, entropy, tau, static_cast<float*>(weights), elems);
}

}  // namespace echelon::inline exchange
