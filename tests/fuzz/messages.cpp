// SPDX-License-Identifier: Apache-2.0
// Decodes messages of codecs and of strategy strom. An input is a head (below) and the message.
#include <cstring>
#include <span>

#include "comm/codec/codec.hpp"
#include "exchange/strom/message.hpp"
#include "tests/fuzz/mutate.hpp"
#include "tests/fuzz/targets.hpp"
#include "tests/support/guarded.hpp"

namespace echelon::fuzz {
namespace {

constexpr std::size_t kMostElems = 5000, kMostBytes = 1 << 20;  // message limits; buffers are as long as the longest

struct Head {
  std::uint8_t codec = 0;    // index of the codec's name
  std::uint8_t variant = 0;  // lowest bit: f64, where it is supported; then the coding of indices
  std::uint8_t action = 0;   // decode | decode_add | from_wire
  std::uint8_t unused = 0;
  std::uint32_t elems = 1;  // modulo kMostElems, at least 1
};

std::size_t elems_of(const Head& head) { return 1 + head.elems % kMostElems; }

std::string with_head(const Head& head, const std::string& message) {
  return std::string(reinterpret_cast<const char*>(&head), sizeof head) + message;
}

std::string normals(std::size_t elems, bool twice, Draws& draws) {
  const double zeros = draws.chance(0.5) ? 0.9 : 0;
  std::string all;
  for (std::size_t i = 0; i < elems; ++i) {
    const double value = draws.chance(zeros) ? 0 : static_cast<double>(draws.between(-1000, 1000)) / 777;
    const auto single = static_cast<float>(value);
    twice ? all.append(reinterpret_cast<const char*>(&value), 8)
          : all.append(reinterpret_cast<const char*>(&single), 4);
  }
  return all;
}

std::size_t some_elems(Draws& draws) {
  static const std::vector<std::size_t> kSizes = {1, 2, 7, 8, 9, 31, 255, 256, 257, 300, 4096, 4999};
  return draws.chance(0.5) ? draws.one_of(kSizes) : 1 + draws.below(600);
}

std::string damaged(std::string message, Draws& draws) {
  if (draws.chance(0.1)) return draws.bytes(draws.below(message.size() + 8));
  if (draws.chance(0.2)) message.resize(draws.below(message.size() + 1));
  return draws.chance(0.9) ? mutate_bytes(std::move(message), {}, draws) : message;
}

class CodecTarget final : public Target {
 public:
  std::string draw(Draws& draws) override {
    Head head{.codec = static_cast<std::uint8_t>(draws.below(names_.size())),
              .variant = static_cast<std::uint8_t>(draws.bits()),
              .action = static_cast<std::uint8_t>(draws.below(3))};
    const std::size_t elems = some_elems(draws);
    head.elems = static_cast<std::uint32_t>(elems - 1);
    const std::unique_ptr<Codec> codec = codec_of(head);
    std::string values = normals(elems, codec->value_bytes() == 8, draws),
                message(codec->most_bytes(static_cast<std::int64_t>(elems)), '\0');
    message.resize(codec->encode({.values = values.data(), .elems = static_cast<std::int64_t>(elems)},
                                 reinterpret_cast<std::byte*>(message.data())));
    return with_head(head, damaged(std::move(message), draws));
  }

  bool take(const std::string& input) override {
    if (input.size() < sizeof(Head) || input.size() > kMostBytes) return false;
    Head head;
    std::memcpy(&head, input.data(), sizeof head);
    const std::unique_ptr<Codec> codec = codec_of(head);
    const auto elems = static_cast<std::int64_t>(elems_of(head));
    const std::size_t bytes = input.size() - sizeof head;
    const std::byte* wire = wire_.place(input.substr(sizeof head));
    std::byte* values = values_.place(static_cast<std::size_t>(elems) * codec->value_bytes());
    std::memset(values, 0, static_cast<std::size_t>(elems) * codec->value_bytes());
    const bool accepted = refused_with({kExitInternal}, [&] {
      switch (head.action % 3) {
        case 0: return codec->decode(wire, bytes, values, elems);
        case 1: return codec->decode_add(wire, bytes, values, elems);
        default: {
          std::byte* raw = values_.place(codec->most_bytes(elems));
          if (codec->from_wire(wire, bytes, elems, raw) > codec->most_bytes(elems))
            throw Defect("a message of a device is longer than the longest");
        }
      }
    });
    if (!values_.intact()) throw Defect("values before the range were written");
    return accepted;
  }

 private:
  std::unique_ptr<Codec> codec_of(const Head& head) const {
    const std::string& name = names_[head.codec % names_.size()];
    static const std::vector<std::string> kCodings = {"raw", "golomb", "gamma"};
    const bool twice = !codec_info(name).lossy && (head.variant & 1) != 0;
    return comm::make_codec(name, {.dtype = twice ? DType::f64 : DType::f32,
                                   .ranks = 3,
                                   .density = 0.1,
                                   .tau = 0.5,
                                   .index_coding = kCodings[(head.variant >> 1U) % kCodings.size()]});
  }

  std::vector<std::string> names_ = codec_names();
  test::Guarded wire_{kMostBytes}, values_{1 << 18};
};

class StromTarget final : public Target {
 public:
  std::string draw(Draws& draws) override {
    Head head{.variant = static_cast<std::uint8_t>(draws.bits()), .action = static_cast<std::uint8_t>(draws.below(2))};
    const std::size_t elems = some_elems(draws);
    head.elems = static_cast<std::uint32_t>(elems - 1);
    std::string message(strom_room(static_cast<std::int64_t>(elems), DType::f64, true), '\0');
    auto* to = reinterpret_cast<std::byte*>(message.data());
    if (draws.chance(0.2)) {
      const std::string values = normals(elems, (head.variant & 1) != 0, draws);
      message.resize(write_dense(values.data(), dtype_of(head), static_cast<std::int64_t>(elems), to));
    } else {
      std::vector<std::uint32_t> entries;
      for (std::uint32_t i = 0; i < elems; ++i)
        if (draws.chance(0.1)) entries.push_back(i << 1 | static_cast<std::uint32_t>(draws.below(2)));
      message.resize(write_entries(0.5F, entries, head.action != 0, static_cast<std::int64_t>(elems), to));
    }
    return with_head(head, damaged(std::move(message), draws));
  }

  bool take(const std::string& input) override {
    if (input.size() < sizeof(Head) || input.size() > kMostBytes) return false;
    Head head;
    std::memcpy(&head, input.data(), sizeof head);
    const std::size_t elems = elems_of(head), bytes = input.size() - sizeof head;
    const StromMessage message(wire_.place(input.substr(sizeof head), sizeof(double)), bytes);  // as strom's rooms lie
    std::byte* weights = weights_.place(elems * size_of(dtype_of(head)));
    std::memset(weights, 0, elems * size_of(dtype_of(head)));
    const bool accepted = refused_with({kExitInternal}, [&] {
      add_message(message, head.action % 2 != 0, weights, dtype_of(head), static_cast<std::int64_t>(elems));
    });
    if (!weights_.intact()) throw Defect("weights before the bucket were written");
    return accepted;
  }

 private:
  static DType dtype_of(const Head& head) { return (head.variant & 1) != 0 ? DType::f64 : DType::f32; }

  test::Guarded wire_{kMostBytes}, weights_{1 << 16};
};

}  // namespace

std::unique_ptr<Target> make_codec(const Place&) { return std::make_unique<CodecTarget>(); }
std::unique_ptr<Target> make_strom(const Place&) { return std::make_unique<StromTarget>(); }

}  // namespace echelon::fuzz
