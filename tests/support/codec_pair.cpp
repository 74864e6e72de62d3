// SPDX-License-Identifier: Apache-2.0
#include "tests/support/codec_pair.hpp"

#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>

#include "tests/support/discrete_codec.hpp"
#include "tests/support/random.hpp"

namespace echelon::test {
namespace {

using Floats = std::vector<float>;

// Counts the values whose bits differ; any two NaN are equal.
std::size_t differing(const Floats& a, const Floats& b) {
  std::size_t count = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    count += std::memcmp(&a[i], &b[i], sizeof(float)) != 0 && !(std::isnan(a[i]) && std::isnan(b[i])) ? 1 : 0;
  return count;
}

// Makes gradients of many sizes, among them zeros and equal values.
Floats gradients(std::int64_t n, const std::string& name, double scale) {
  const std::vector<double> values = random_values(static_cast<std::size_t>(n), name);
  const std::vector<double> powers = random_values(static_cast<std::size_t>(n), name + " powers");
  Floats all;
  for (std::size_t i = 0; i < values.size(); ++i)
    all.push_back(static_cast<float>(scale * (i % 11 == 0  ? 0
                                              : i % 7 == 0 ? 0.5
                                                           : values[i] * std::exp2(6 * powers[i]))));
  return all;
}

// Returns the rows, or parts of rows, in [begin, end).
std::vector<CodedRun> rows_in(const std::vector<CodedRun>& runs, std::int64_t begin, std::int64_t end) {
  std::vector<CodedRun> inside;
  std::int64_t at = 0;
  for (const CodedRun& run : runs)
    for (std::int64_t left = run.elems, row = run.row > 0 ? run.row : run.elems; left > 0; left -= row, at += row)
      if (const std::int64_t n = std::min(end, at + row) - std::max(begin, at); n > 0)
        inside.push_back({n, run.row > 0 ? n : 0});
  return inside;
}

class Pair {
 public:
  Pair(Device& device, const std::string& name, std::int64_t n, const CodecOptions& options, int parts)
      : device_(device),
        name_(name),
        n_(n),
        options_(options),
        gradients_(memory("gradients")),
        residual_(memory("owed")) {
    spec_ = {.name = name, .ranks = options.ranks, .chosen = make_codec(name, options)->chosen(n), .parts = {}};
    if (parts == 0) parts = codec_info(name).route == CodecRoute::direct ? 3 : 1;
    for (int r = 0; r < parts; ++r) {
      const std::int64_t begin = n * r / parts, elems = n * (r + 1) / parts - begin;
      if (elems == 0) continue;
      const auto codec = codec_of(begin, elems);
      const std::size_t most = codec->most_bytes(elems);
      spec_.parts.push_back(
          {.begin = begin, .elems = elems, .at = bytes_, .bytes = most, .blocks = codec->blocks(elems)});
      bytes_ += (most + 63) / 64 * 64;
    }
    host_ = device.allocate_host(bytes_);
    codec_ = device.make_codec(spec_);
    discrete_codec_ =
        make_discrete_codec(spec_, [](void* dst, const void* src, std::size_t bytes) { std::memcpy(dst, src, bytes); });
    discrete_residual_ = gradients(n, "owed", 1);
    device.to_device(residual_.data(), discrete_residual_.data(), residual_.bytes());
  }

  // `exact`: messages must equal the host's bit for bit; with NaN among the values their bits may differ.
  void check(const Floats& values, std::uint64_t key, float tau, bool exact) {
    device_.to_device(gradients_.data(), values.data(), gradients_.bytes());
    codec_->encode({.values = at(gradients_), .residual = at(residual_), .key = key, .tau = tau}, host_.bytes_at(0));
    device_.synchronize();
    std::vector<std::byte> far(bytes_);
    discrete_codec_->encode({.values = values.data(), .residual = discrete_residual_.data(), .key = key, .tau = tau},
                            far.data());
    CHECK(differing(fetch(residual_), discrete_residual_) == 0);
    ResidualNorms here, there;
    std::memcpy(&here, host_.data(), sizeof here);
    std::memcpy(&there, far.data(), sizeof there);
    CHECK(here.most == there.most);
    CHECK(here.squares == Approx(there.squares).epsilon(1e-12));
    for (std::size_t p = 0; p < spec_.parts.size(); ++p)
      check_part(p, far.data() + spec_.parts[p].at, there.most, exact);
  }

 private:
  Memory memory(const char* tag) { return device_.allocate(static_cast<std::size_t>(n_) * sizeof(float), tag); }
  static float* at(const Memory& memory) { return static_cast<float*>(memory.data()); }
  Floats fetch(const Memory& memory) {
    Floats values(memory.bytes() / sizeof(float));
    device_.to_host(values.data(), memory.data(), memory.bytes());
    return values;
  }

  std::unique_ptr<Codec> codec_of(std::int64_t begin, std::int64_t elems) const {
    CodecOptions options = options_;
    options.rows = rows_in(options.rows, begin, begin + elems);
    return make_codec(name_, options);
  }

  void check_part(std::size_t p, const std::byte* far, double largest_residual, bool exact) {
    const DeviceCodecPart& part = spec_.parts[p];
    std::vector<std::byte> mine(part.bytes), theirs(part.bytes);
    const auto wired = [&](const std::byte* raw, std::vector<std::byte>& wire) {
      return codec_of(part.begin, part.elems)->to_wire(raw, part.elems, largest_residual, wire.data());
    };
    const std::size_t bytes = wired(host_.bytes_at(part.at), mine);
    REQUIRE(bytes == wired(far, theirs));
    if (exact) CHECK(std::memcmp(mine.data(), theirs.data(), bytes) == 0);
    std::memcpy(host_.bytes_at(part.at), theirs.data(), bytes);
    for (const bool add : {false, true}) {
      Floats right(static_cast<std::size_t>(n_), 0.7F);
      device_.to_device(gradients_.data(), right.data(), gradients_.bytes());
      const auto decode = add ? &DeviceCodec::decode_add : &DeviceCodec::decode;
      (codec_.get()->*decode)(p, host_.bytes_at(part.at), bytes, at(gradients_) + part.begin);
      (discrete_codec_.get()->*decode)(p, theirs.data(), bytes, right.data() + part.begin);
      CHECK(differing(fetch(gradients_), right) == 0);
    }
  }

  Device& device_;
  std::string name_;
  std::int64_t n_;
  CodecOptions options_;
  DeviceCodecSpec spec_;
  std::size_t bytes_ = 64;
  Memory gradients_, residual_, host_;
  std::unique_ptr<DeviceCodec> codec_, discrete_codec_;
  Floats discrete_residual_;
};

}  // namespace

void check_device_codec(Device& device, const std::string& name, std::int64_t n, const CodecOptions& options,
                        int parts) {
  CAPTURE(name, n, options.tau, options.density, parts);
  Pair pair(device, name, n, options, parts);
  const auto tau = static_cast<float>(options.tau);
  std::uint64_t key = 0x123456789abcdefULL;
  for (const double scale : {1.0, 1e-3, 1e-39, 0.0}) pair.check(gradients(n, "values", scale), ++key, tau, true);
  Floats bad = gradients(n, "bad", 3);
  bad[static_cast<std::size_t>(n / 2)] = std::nanf("");
  bad[static_cast<std::size_t>(n / 3)] = -INFINITY;
  pair.check(bad, ++key, tau, false);
  pair.check(gradients(n, "after", 1), ++key, tau, true);
}

}  // namespace echelon::test
