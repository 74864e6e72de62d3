// SPDX-License-Identifier: Apache-2.0
// Messages of codecs that are too short, too long or have an impossible head: a check fails, or values stay inside
// their range. Memory ends at a page that cannot be accessed.
#include <catch2/catch.hpp>
#include <cstring>

#include "base/error.hpp"
#include "comm/codec/codec.hpp"
#include "comm/codec/indices.hpp"
#include "tests/support/guarded.hpp"

namespace echelon {
namespace {

constexpr std::int64_t kElems = 300;

std::string message_of(Codec& codec) {
  std::vector<float> values(kElems);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 7) - 2.5F;
  std::string message(codec.most_bytes(kElems), '\0');
  message.resize(
      codec.encode({.values = values.data(), .elems = kElems}, reinterpret_cast<std::byte*>(message.data())));
  return message;
}

// Tells whether the message was refused. Accessing memory beyond the message or the values crashes.
bool refuses(Codec& codec, const std::string& message, int action) {
  static test::Guarded wire(1 << 16), values(1 << 16);
  const std::byte* from = wire.place(message);
  std::byte* to = values.place(action == 2 ? codec.most_bytes(kElems) : kElems * sizeof(float));
  if (action != 2) std::memset(to, 0, kElems * sizeof(float));
  try {
    if (action == 0) codec.decode(from, message.size(), to, kElems);
    if (action == 1) codec.decode_add(from, message.size(), to, kElems);
    if (action == 2) codec.from_wire(from, message.size(), kElems, to);
  } catch (const Error& error) {
    CHECK(error.code() == kExitInternal);
    return true;
  }
  CHECK(values.intact());
  return false;
}

}  // namespace

TEST_CASE("a message of a codec that is cut off anywhere is refused or decoded inside its bounds", "[comm][codec]") {
  const std::string name = GENERATE(from_range(codec_names()));
  for (const char* coding : {"raw", "golomb", "gamma"}) {
    const auto codec = make_codec(name, {.density = 0.1, .tau = 1, .index_coding = coding});
    const std::string message = message_of(*codec);
    CAPTURE(name, coding, message.size());
    for (const int action : {0, 1, 2}) {
      CHECK(!refuses(*codec, message, action));
      for (std::size_t bytes = 0; bytes < message.size(); ++bytes) {
        const bool refused = refuses(*codec, message.substr(0, bytes), action);
        if (codec->exact_size()) CHECK(refused);
      }
      if (codec->exact_size()) CHECK(refuses(*codec, message + "more", action));
    }
  }
}

TEST_CASE("a message of places with an impossible Rice parameter, map or exception is refused", "[comm][codec]") {
  const auto topk = make_codec("topk", {.density = 0.1, .index_coding = "golomb"});
  const auto threshold = make_codec("threshold", {.tau = 2.5, .index_coding = "golomb"});
  for (const int action : {0, 1, 2})
    for (const int parameter : {32, 63, 64, 200, 253}) {
      CAPTURE(action, parameter);
      std::string message = message_of(*topk);
      message[0] = static_cast<char>(parameter);
      CHECK(refuses(*topk, message, action));
      message = message_of(*threshold);
      message[8] = static_cast<char>(parameter);
      CHECK(refuses(*threshold, message, action));
    }
  for (const int action : {0, 1, 2}) {
    std::string message = message_of(*threshold).substr(0, 20);
    message[8] = static_cast<char>(254);  // a map, of 75 bytes
    CHECK(refuses(*threshold, message, action));
    message = message_of(*threshold).substr(0, 12);
    message[9] = 1;  // an exception, of 8 bytes
    CHECK(refuses(*threshold, message, action));
  }
}

}  // namespace echelon
