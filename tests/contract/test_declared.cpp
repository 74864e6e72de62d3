// SPDX-License-Identifier: Apache-2.0
// Checks that entries of registries do what the registries declare of them (config/traits/).
#include <array>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <map>
#include <set>

#include "comm/codec/codec.hpp"
#include "comm/collective/algorithms.hpp"
#include "comm/collective/halves.hpp"
#include "config/traits/codecs.hpp"
#include "config/traits/layers.hpp"
#include "tests/support/layer_rows.hpp"
#include "tests/support/random.hpp"

namespace echelon {
namespace {

// Encodes values and returns what they decode to.
std::vector<float> round_trip(Codec& codec, const std::vector<float>& values) {
  std::vector<float> encoded = values, decoded(values.size());
  const auto n = static_cast<std::int64_t>(values.size());
  std::vector<std::byte> wire(codec.most_bytes(n));
  const std::size_t bytes = codec.encode({.values = encoded.data(), .elems = n, .key = 7}, wire.data());
  codec.decode(wire.data(), bytes, decoded.data(), n);
  return decoded;
}

std::vector<float> drawn(std::size_t n, const char* name) {
  const std::vector<double> values = test::random_values(n, name);
  return {values.begin(), values.end()};
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

// Tells whether the message changes with an option that the codec may read.
bool minds(std::string_view name, const CodecOptions& changed) {
  const std::vector<float> values = drawn(3000, "options");
  const auto plain = make_codec(name, {}), other = make_codec(name, changed);
  std::vector<std::byte> a(plain->most_bytes(3000)), b(other->most_bytes(3000));
  std::vector<float> of_a = values, of_b = values;
  const std::size_t a_bytes = plain->encode({.values = of_a.data(), .elems = 3000, .key = 7}, a.data());
  const std::size_t b_bytes = other->encode({.values = of_b.data(), .elems = 3000, .key = 7}, b.data());
  return a_bytes != b_bytes || std::memcmp(a.data(), b.data(), a_bytes) != 0;
}

// Returns the splits that a layer object supports, by the same questions that parallel/ asks.
std::set<std::string> splits_of(const Graph& graph, const Node& node) {
  const auto shape = [&](ValueId id) { return graph.values()[static_cast<std::size_t>(id)].shape; };
  const LayerSplit& split = layer_split(*node.layer);
  const auto units = [](const Shape& sample) {
    const std::int64_t all = sample.rank() == 2 ? sample[1] : sample[0];
    return Units{0, all / 2, all};
  };
  const Shape in = shape(node.inputs[0]), out = shape(node.outputs[0]);
  std::set<std::string> splits;
  const bool by_units = (units(out).all >= 2 && split.with_outputs(units(out)) != nullptr) ||
                        (units(in).all >= 2 && split.with_inputs(units(in)) != nullptr) ||
                        (in.rank() != 2 && split.on_channels(units(in)) != nullptr) || split.table_rows() > 0 ||
                        split.state_units() > 0;
  if (by_units) splits.insert("tensor");
  if (split.row_window().has_value()) splits.insert("space");
  if (split.on_steps({0, in[0], in[0]}) != nullptr) splits.insert("time_chunks");
  return splits;
}

}  // namespace

// Values are uniform in [-1, 1], so that a share `density` of them reaches tau = 1 - density. The mean length of kDrawn
// messages must be the expected one up to four standard deviations. From message to message, the number of values that
// reach tau deviates by 1 / sqrt(density n) of itself; topk sends a fixed number, and each takes 32 bits and the bits
// of its gap, which deviate by up to 2.5 of 48. Whole words and bytes add up to 4 bytes, the last block of `lossless`
// up to 64.
TEST_CASE("messages have the lengths by which memory and step times are predicted", "[contract][declared]") {
  constexpr int kDrawn = 40;
  const auto check = [&](std::string_view name, const CodecOptions& options, std::int64_t n) {
    CAPTURE(name, options.density, options.index_coding, n);
    const CodedSize size = coded_size(name, options, n);
    const auto codec = make_codec(name, options);
    const auto most = static_cast<std::size_t>(std::llround(size.most * static_cast<double>(n)));
    REQUIRE(most == codec->most_bytes(n));
    std::vector<std::byte> wire(most);
    double bytes = 0;
    for (int message = 0; message < kDrawn; ++message) {
      std::vector<float> values = drawn(static_cast<std::size_t>(n), std::to_string(message).c_str());
      const std::size_t written = codec->encode({.values = values.data(), .elems = n, .key = 7}, wire.data());
      CHECK(written <= most);
      if (codec->exact_size()) CHECK(written == most);
      bytes += static_cast<double>(written) / kDrawn;
    }
    const double expected = size.typical * static_cast<double>(n), sent = options.density * static_cast<double>(n);
    CHECK(size.typical <= size.most);
    if (codec->exact_size())
      CHECK(expected == Approx(bytes));
    else if (name == "lossless")
      CHECK(std::fabs(bytes - expected) < 0.01 * expected + 64);
    else {
      const double deviation = (name == "topk" ? 2.5 / 48 : 1) / std::sqrt(kDrawn * std::max(1.0, sent));
      CHECK(std::fabs(bytes - expected) < 4 * deviation * expected + 4);
    }
  };
  for (const CodecTraits& declared : kCodecs)
    for (const std::int64_t n : {1, 7, 255, 513, 1003, 2049, 20'001}) {
      if (!declared.reads.contains("density")) {
        check(declared.name, {}, n);
        continue;
      }
      for (const double density : {0.002, 0.01, 0.1, 0.4})
        for (const char* coding : {"raw", "golomb", "gamma"})
          check(declared.name, {.density = density, .tau = 1 - density, .index_coding = coding}, n);
    }
  const CodecOptions rows{.rows = {{600, 200}, {13, 0}, {5000, 2500}}};  // whole words of bits and two means for a row
  CHECK(coded_size("onebit", rows, 5613).most * 5613 == Approx(3 * (28 + 8) + 13 * 4 + 2 * (4 * 79 + 2 * 8)));
  CHECK(coded_size("none", {.dtype = DType::f64}, 3).most == 8);
  CHECK_THROWS_WITH(coded_size("fp61", {}, 3), Catch::Contains("fp16"));
}

TEST_CASE("codecs that are declared lossless give back any bits, the others do not", "[contract][declared]") {
  for (const CodecTraits& declared : kCodecs) {
    CAPTURE(declared.name);
    const auto codec = make_codec(declared.name, {});
    const std::vector<float> values = drawn(1003, "values");
    CHECK(same_bits(round_trip(*codec, values), values) == !declared.lossy);
    CHECK(&codec->info() == find_traits(kCodecs, declared.name));
  }
}

TEST_CASE("codecs read the keys that they declare", "[contract][declared]") {
  for (const CodecTraits& declared : kCodecs) {
    CAPTURE(declared.name);
    CHECK(minds(declared.name, {.density = 0.1}) == declared.reads.contains("density"));
    CHECK(minds(declared.name, {.tau = 0.3}) == declared.reads.contains("tau"));
    CHECK(minds(declared.name, {.index_coding = "raw"}) == declared.reads.contains("index_coding"));
  }
}

TEST_CASE("codecs declared to work with any plan round sums, the others do not", "[contract][declared]") {
  for (const CodecTraits& declared : kCodecs) {
    CAPTURE(declared.name);
    const auto codec = make_codec(declared.name, {});
    std::vector<float> sum = drawn(512, "sum");
    const std::vector<float> before = sum;
    codec->round(sum.data(), 512, nullptr);
    CHECK(same_bits(sum, before) == (!declared.lossy || declared.route != CodecRoute::any));
  }
}

TEST_CASE("all-reduces declared as the library's consist of library steps only", "[contract][declared]") {
  for (const std::string& name : allreduce_names()) {
    CAPTURE(name);
    const auto plan = make_allreduce(name, {.rank = 1, .ranks = 4, .elems = 100, .hosts = {}});
    CHECK(plan->uses_library() == algorithm_traits(name).library);
    CHECK(plan->name() == name);
  }
}

TEST_CASE("all-reduces declared to have reduce-scatter and all-gather halves have them", "[contract][declared]") {
  for (const std::string& name : allreduce_names()) {
    CAPTURE(name);
    if (algorithm_traits(name).halves)
      CHECK(halves_of(name).most_owners(4) >= 1);
    else
      CHECK_THROWS_WITH(halves_of(name), Catch::Contains("all-reduce in two halves"));
  }
}

TEST_CASE("all-reduces depend on the fields of the request that they declare", "[contract][declared]") {
  const auto messages = [](const std::string& name, AllreduceRequest request) {
    request.ranks = 8, request.elems = 1'000'000;
    const Price price = price_allreduce(name, request);
    return std::array{price.messages, price.payload_elems, std::int64_t{price.steps}};
  };
  for (const std::string& name : allreduce_names()) {
    CAPTURE(name);
    const std::vector<int> hosts = {0, 0, 0, 0, 1, 1, 1, 1};
    const auto plain = messages(name, {.hosts = hosts});
    const Words& reads = algorithm_traits(name).reads;
    CHECK((messages(name, {.segment_elems = 100, .hosts = hosts}) != plain) == reads.contains("segment_kb"));
    CHECK((messages(name, {.hosts = hosts, .servers = 3}) != plain) == reads.contains("servers"));
    CHECK((messages(name, {.hosts = hosts, .inner = "tree"}) != plain) == reads.contains("inner"));
    CHECK((messages(name, {.hosts = hosts, .outer = "naive"}) != plain) == reads.contains("outer"));
    CHECK(reads.contains("inner") == algorithm_traits(name).nests);
  }
}

TEST_CASE("layers are split in the ways that they declare", "[contract][declared]") {
  std::map<std::string, std::set<std::string>> found;
  std::set<std::string> splittable;
  for (const test::LayerRow& row : test::layer_rows()) {
    const Graph graph = test::graph_of(row);
    for (const Node& node : graph.nodes()) {
      const std::string kind(node.layer->kind());
      found[kind].merge(splits_of(graph, node));
      if (node.layer->split() != nullptr) splittable.insert(kind);
    }
  }
  for (const LayerTraits& layer : kLayers) {
    CAPTURE(layer.name);
    REQUIRE(found.contains(std::string(layer.name)));
    CHECK(found[std::string(layer.name)] == std::set<std::string>(layer.splits.begin(), layer.splits.end()));
    CHECK(splittable.contains(std::string(layer.name)) == (layer.splits.size() > 0));
  }
}

}  // namespace echelon
