// SPDX-License-Identifier: Apache-2.0
// A codec writes a range of gradients in fewer bytes. Each has a file that states its wire format and paper. The
// encoding error is returned as a residual: values + residual = decoded + new residual, for finite values and up to one
// rounding error.
//
// To add a codec: a file `<name>.cpp` here with make_<name>_codec, a line in config/traits/codecs.hpp that declares its
// properties, rows in configs/strategies/CODECS.md, and a plain oracle in tests/support/codec_oracle.cpp. The contract
// test runs every codec.
//
// All codecs but `lossless` take f32. A value that is not finite must not vanish: where a value is inf or NaN, some
// decoded value is inf or NaN, on every rank; each codec states which one.
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

// A run of consecutive values: `elems` is a multiple of `row`, the length of its rows; with row 0 the values are sent
// uncompressed.
struct CodedRun {
  std::int64_t elems = 0;
  std::int64_t row = 0;
  friend bool operator==(const CodedRun&, const CodedRun&) = default;
};

struct CodecOptions {
  DType dtype = DType::f32;
  int ranks = 1;                        // number of terms in a sum
  double density = 0.01;                // topk, and threshold where it adapts: fraction of the values to send
  double tau = 0;                       // threshold: the magnitude; 0: it adapts
  std::string index_coding = "golomb";  // topk, threshold: raw | golomb | gamma
  std::vector<CodedRun> rows = {};      // onebit: the runs that its messages consist of; empty: one row of any length
};

// A range to encode, with what the encoder reads and writes.
struct Encoding {
  void* values = nullptr;  // in: a replica's values; out: the values that decoding will produce
  std::int64_t elems = 0;
  float* residual = nullptr;  // in: added to the values first; out: the encoding error. Null: the error is dropped
  std::uint64_t key = 0;      // key of the random draws, which are numbered by element from `first` on
  std::int64_t first = 0;
};

// Each bucket has its own codec object: `threshold` keeps its tau between steps, and all may keep work space for the
// largest range so far, so that later calls do not allocate. Not thread-safe. Ranges have at least one element and, for
// sparse codecs, fewer than 2^31.
class Codec {
 public:
  virtual ~Codec() = default;
  virtual const CodecInfo& info() const = 0;
  virtual std::size_t value_bytes() const { return sizeof(float); }  // bytes of a value before encoding
  // Upper bound of the bytes that `wire` needs for `elems` values; O(1).
  virtual std::size_t most_bytes(std::int64_t elems) const = 0;
  virtual bool exact_size() const { return true; }  // every message of n values has most_bytes(n) bytes
  // Expected bytes of a message of `elems` values, if a codec by density sends its fraction of them; O(1).
  virtual double typical_bytes(std::int64_t elems) const { return static_cast<double>(most_bytes(elems)); }
  // Returns the number of bytes written, at most most_bytes(range.elems). Makes one or two passes over the values.
  // Equal values, residual, key and state give equal bits.
  virtual std::size_t encode(const Encoding& range, std::byte* wire) = 0;
  // Sets values to those of a message of `elems` values, or adds them (decode_add). A check fails (exit 1) if the
  // message cannot be one of `elems` values.
  virtual void decode(const std::byte* wire, std::size_t bytes, void* values, std::int64_t elems) = 0;
  virtual void decode_add(const std::byte* wire, std::size_t bytes, void* values, std::int64_t elems) = 0;

  // On route any: adds the residual (if not null), rounds to representable values and leaves the error in the residual;
  // encode then reproduces the rounded values exactly. On other routes: does nothing.
  virtual void round(void* values, std::int64_t elems, float* residual) { (void)values, (void)elems, (void)residual; }
  // These serve a device that encodes and decodes by itself (device/device_codec.hpp). It writes and reads this format,
  // except that indices are raw (32 bits each).
  //   chosen      how many of the `elems` values the device selects (topk), or how many pass the first tau (threshold)
  //   to_wire     converts a device message to a wire message; `largest_residual` is the maximum magnitude of the
  //               device's residual, by which tau adapts
  //   from_wire   converts a wire message to a device message; a check fails if it is damaged
  //   blocks      the groups of values of a message that are encoded together (onebit)
  // to_wire and from_wire return the length of what they wrote, at most most_bytes(elems).
  virtual std::int64_t chosen(std::int64_t elems) const { return (void)elems, 0; }
  virtual std::vector<DeviceCodecBlock> blocks(std::int64_t elems) const {
    return (void)elems, std::vector<DeviceCodecBlock>();
  }
  virtual std::size_t to_wire(const std::byte* raw, std::int64_t elems, double largest_residual, std::byte* wire);
  virtual std::size_t from_wire(const std::byte* wire, std::size_t bytes, std::int64_t elems, std::byte* raw);

  // density() and tau() describe the newest message of this codec: the fraction of the values that it holds, and the
  // smallest magnitude that was selected (0: no such threshold). set_tau restores an adaptive threshold from a
  // checkpoint.
  virtual double density() const { return 1; }
  virtual double tau() const { return 0; }
  virtual void set_tau(double) {}

 protected:
  // For codecs with exact_size(): a check fails if the message does not have most_bytes(elems) bytes.
  void require_length(std::size_t bytes, std::int64_t elems) const;
};

std::vector<std::string> codec_names();
// Throws ConfigError with the nearest name for an unknown codec.
const CodecInfo& codec_info(std::string_view name);
// Throws ConfigError for an unknown name. A check fails for a lossy codec of a dtype other than f32.
std::unique_ptr<Codec> make_codec(std::string_view name, const CodecOptions& options);

// Bytes on the wire for each value of messages of `elems` >= 1 values: expected, and the bound that buffers are made
// for. "none": the bytes of the values. If options.rows is given, `elems` is the number of values in the rows. A lossy
// codec takes f32, whatever options.dtype is. Throws ConfigError for an unknown name.
struct CodedSize {
  double typical = 0, most = 0;
};
CodedSize coded_size(std::string_view codec, const CodecOptions& options, std::int64_t elems);

// The maker of each codec, defined in its file.
#define X(name, ...) std::unique_ptr<Codec> make_##name##_codec(const CodecOptions& options);
ECHELON_CODECS(X)
#undef X

}  // namespace echelon::inline comm
