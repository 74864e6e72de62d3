// Codecs: how a range of gradients is written in fewer bytes. One file each, with its wire format and paper; the
// encoding error is returned as a residual: values + residual = decoded + new residual, for finite values and up to one
// rounding.
//
// Adding one: a file `<name>.cpp` here with make_<name>_codec, a line in config/traits/codecs.hpp that declares its
// properties, rows in configs/strategies/CODECS.md, a plain oracle in tests/support/codec_oracle.cpp. The contract test
// runs every one.
//
// All but `lossless` take f32. Nothing that is not finite may vanish: where a value is inf or NaN, some decoded
// value is inf or NaN, on every rank; each codec states which.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/dtype.hpp"
#include "config/traits/codecs.hpp"
#include "device/device_codec.hpp"

namespace echelon::inline comm {

using CodecInfo = CodecTraits;

// Values that follow one another: rows of equal length, a multiple of which they are; or (row 0) values to be sent as
// they are.
struct CodedRun {
  std::int64_t elems = 0;
  std::int64_t row = 0;
  friend bool operator==(const CodedRun&, const CodedRun&) = default;
};

struct CodecOptions {
  DType dtype = DType::f32;
  int ranks = 1;                        // sums have this many terms
  double density = 0.01;                // topk, and threshold where it adapts: fraction of the values that is sent
  double tau = 0;                       // threshold; 0: adapts
  std::string index_coding = "golomb";  // topk, threshold: raw | golomb | gamma
  std::vector<CodedRun> rows = {};      // onebit: what its messages consist of; empty: one row, of any length
};

// A range to encode.
struct Encoding {
  void* values = nullptr;  // in: a replica's values; out: what decoding will give
  std::int64_t elems = 0;
  float* residual = nullptr;  // in: added to the values first; out: the encoding error. Null: it is dropped
  std::uint64_t key = 0;      // of random draws, by element from `first`
  std::int64_t first = 0;
};

// One object for each bucket: `threshold` keeps its tau between steps, all may keep work space of the largest range so
// far, so that later calls allocate nothing. Not for several threads at once. Ranges have at least one element and, for
// sparse codecs, fewer than 2^31.
class Codec {
 public:
  virtual ~Codec() = default;
  virtual const CodecInfo& info() const = 0;
  virtual std::size_t value_bytes() const { return sizeof(float); }  // of a value before encoding
  // Bytes that `wire` needs for so many values; O(1).
  virtual std::size_t most_bytes(std::int64_t elems) const = 0;
  virtual bool exact_size() const { return true; }  // every message of n values has most_bytes(n) bytes
  // Returns the bytes written, at most most_bytes(range.elems). One or two passes over the values. The same bits for
  // the same values, residual, key and state.
  virtual std::size_t encode(const Encoding& range, std::byte* wire) = 0;
  // values = what a message of `elems` values holds, or values += that. A failed check (exit 1) where the message
  // cannot be one of so many values.
  virtual void decode(const std::byte* wire, std::size_t bytes, void* values, std::int64_t elems) = 0;
  virtual void decode_add(const std::byte* wire, std::size_t bytes, void* values, std::int64_t elems) = 0;

  // Route any: adds the residual (null: none), rounds to representable values and leaves the error in the residual;
  // then encode gives the rounded values exactly. Other routes: nothing.
  virtual void round(void* values, std::int64_t elems, float* residual) { (void)values, (void)elems, (void)residual; }
  // For a device that encodes and decodes by itself (device/device_codec.hpp): it writes and reads this format, except
  // that indices are raw (32 bits each).
  //   chosen      number of the `elems` values that the device selects (topk), or that pass the first tau (threshold)
  //   to_wire     device message -> wire message; `largest_residual` is the maximum magnitude of the device's residual,
  //               by which tau adapts
  //   from_wire   wire message -> device message; a failed check where it is damaged
  // The two return the length of what they wrote, at most most_bytes(elems).
  //   blocks      of a message: values that are encoded together (onebit)
  virtual std::int64_t chosen(std::int64_t elems) const { return (void)elems, 0; }
  virtual std::vector<DeviceCodecBlock> blocks(std::int64_t elems) const {
    return (void)elems, std::vector<DeviceCodecBlock>();
  }
  virtual std::size_t to_wire(const std::byte* raw, std::int64_t elems, double largest_residual, std::byte* wire);
  virtual std::size_t from_wire(const std::byte* wire, std::size_t bytes, std::int64_t elems, std::byte* raw);

  // Of the newest message of this codec: fraction of the values that it holds, and the magnitude from which on values
  // were selected (0: no such threshold). set_tau restores an adaptive threshold from a checkpoint.
  virtual double density() const { return 1; }
  virtual double tau() const { return 0; }
  virtual void set_tau(double) {}

 protected:
  // Where exact_size(): a failed check for a message of another length than most_bytes(elems).
  void require_length(std::size_t bytes, std::int64_t elems) const;
};

std::vector<std::string> codec_names();
// Throws ConfigError with the nearest name for an unknown codec.
const CodecInfo& codec_info(std::string_view name);
// Likewise; a failed check for a lossy codec of another dtype than f32.
std::unique_ptr<Codec> make_codec(std::string_view name, const CodecOptions& options);

// The makers behind the names, one file each.
#define X(name, ...) std::unique_ptr<Codec> make_##name##_codec(const CodecOptions& options);
ECHELON_CODECS(X)
#undef X

}  // namespace echelon::inline comm
