// SPDX-License-Identifier: Apache-2.0
// Checks transports, all-reduces and codecs between the ranks of this launch.
#include <fmt/format.h>

#include <cmath>

#include "base/check.hpp"
#include "base/checksum.hpp"
#include "base/hash_rng.hpp"
#include "comm/checked.hpp"
#include "comm/codec/coded_bucket.hpp"
#include "comm/collective/algorithms.hpp"
#include "comm/engine.hpp"
#include "comm/group.hpp"
#include "config/traits/codecs.hpp"
#include "device/device.hpp"
#include "verify/check.hpp"
#include "verify/shared_check.hpp"
#include "verify/transport_contract.hpp"

namespace echelon::verify {
namespace {

constexpr int kControlChannel = 1, kDataChannel = 2;

const std::vector<std::int64_t>& odd_sizes(bool quick) {
  static const std::vector<std::int64_t> few = {0, 1, 3, 1009}, all = {0, 1, 2, 3, 5, 1009, 30011, 123457};
  return quick ? few : all;
}

std::string check_shared(VerifyContext& context) {
  needs(context.one_host(), "ranks are on several hosts");
  Engine engine(context.transport());
  needs(engine.share(64) != nullptr, "the message library offers no shared memory");
  check_shared_links(engine, *open_device("reference", {}));
  check_shared_collectives(engine);
  return "";
}

// Uses zeros and ones, whose sums codecs of half precision hold exactly. The result plus what a lossy codec kept back
// must equal the sum, and every rank must end with the same bits.
void check_codec(Engine& engine, const std::string& name, std::int64_t elems) {
  const int me = engine.rank(), k = engine.size();
  CodecOptions options;
  options.ranks = k;
  const CodecInfo& info = codec_info(name);
  const AllreduceRequest request{.rank = me, .ranks = k, .elems = elems, .segment_elems = 500, .hosts = {}};
  const std::shared_ptr<const Plan> plan = info.route == CodecRoute::any      ? make_allreduce("ring", request)
                                           : info.route == CodecRoute::direct ? make_direct_allreduce(request)
                                                                              : make_allreduce("naive", request);
  const ElemRange own = even_part(elems, k, me);
  std::vector<float> residual(info.lossy ? static_cast<std::size_t>(elems) : 0);
  std::vector<float> of_sums(info.route == CodecRoute::direct ? static_cast<std::size_t>(own.elems()) : 0);
  const auto bucket = std::make_shared<CodedBucket>(make_codec(name, options), elems, residual, of_sums, own.begin);
  const HashRng random(11, "codec");
  const auto value = [&](int rank, std::int64_t i) {
    return static_cast<float>(random.at(static_cast<std::uint64_t>(rank)).bits(static_cast<std::uint64_t>(i)) & 1U);
  };
  std::vector<float> data(static_cast<std::size_t>(elems));
  for (std::int64_t i = 0; i < elems; ++i) data[static_cast<std::size_t>(i)] = value(me, i);
  bucket->begin_step(HashRng(7, "codec").at(static_cast<std::uint64_t>(me)).key());
  engine.run({.plan = plan,
              .data = data.data(),
              .dtype = DType::f32,
              .channel = kDataChannel,
              .after = nullptr,
              .form = bucket});
  Group group(engine, kControlChannel);
  const std::string bits = hex64(checksum64(data.data(), data.size() * sizeof(float)));
  for (const std::string& other : group.gather(bits))
    ECHELON_CHECK(other == bits, "{}: ranks end with different bits", name);
  std::vector<double> kept(residual.begin(), residual.end());
  kept.resize(data.size());
  for (std::size_t i = 0; i < of_sums.size(); ++i) kept[static_cast<std::size_t>(own.begin) + i] += of_sums[i];
  group.sum(kept);
  for (std::int64_t i = 0; i < elems; ++i) {
    double expected = 0;
    for (int rank = 0; rank < k; ++rank) expected += value(rank, i);
    const double got = data[static_cast<std::size_t>(i)] + kept[static_cast<std::size_t>(i)];
    ECHELON_CHECK(std::fabs(got - expected) <= 1e-5 * k, "{}: element {} of {} is {} with its residual, not {}", name,
                  i, elems, got, expected);
  }
}

}  // namespace

std::vector<VerifyCheck> message_checks() {
  std::vector<VerifyCheck> checks = {
      {"transport", "messages: sizes, order, any source, parts",
       [](VerifyContext& context) {
         const auto transport = context.transport();
         check_transport(*transport);
         return transport->name();
       }},
      {"transport", "the same with exchange.check_messages",
       [](VerifyContext& context) {
         check_transport(*make_checked(context.transport()));
         return std::string();
       }},
      {"transport", "sums, gathers, broadcasts of a group",
       [](VerifyContext& context) {
         Engine engine(context.transport());
         check_group(engine);
         check_engine_split(engine);
         return std::string();
       }},
      {"transport", "many channels in a different order on each rank",
       [](VerifyContext& context) {
         Engine engine(context.transport());
         check_many_channels(engine, context.quick ? 20 : 60);
         return std::string();
       }},
      {"transport", "memory shared by the ranks of a host", check_shared},
  };
  for (const std::string& name : allreduce_names())
    checks.push_back({"all-reduce", name, [name](VerifyContext& context) {
                        needs(!algorithm_traits(name).in_memory || context.one_host(), "ranks are on several hosts");
                        Engine engine(context.transport());
                        for (const std::int64_t elems : odd_sizes(context.quick)) check_allreduce(engine, elems, name);
                        return std::string();
                      }});
  for (const CodecTraits& codec : kCodecs)
    checks.push_back({"codec", std::string(codec.name), [name = std::string(codec.name)](VerifyContext& context) {
                        Engine engine(context.transport());
                        for (const std::int64_t elems : odd_sizes(context.quick)) check_codec(engine, name, elems);
                        return std::string();
                      }});
  return checks;
}

}  // namespace echelon::verify
