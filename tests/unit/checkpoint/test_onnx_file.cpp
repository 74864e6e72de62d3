// SPDX-License-Identifier: Apache-2.0
// Reads ONNX files with a reader of the wire format that shares no code with the writer.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstring>
#include <map>

#include "base/error.hpp"
#include "checkpoint/onnx/builder.hpp"
#include "checkpoint/onnx/file.hpp"
#include "checkpoint/onnx/wire.hpp"
#include "tests/support/random.hpp"

namespace echelon {
namespace {

// A field of a message: varints are numbers; 32-bit values and contents are bytes.
struct Field {
  std::uint64_t number = 0, varint = 0;
  std::string bytes;
};

class Fields {
 public:
  explicit Fields(const std::string& message) : text_(message) {
    while (at_ < text_.size()) {
      const std::uint64_t key = varint();
      Field field;
      field.number = key >> 3;
      switch (key & 7) {
        case 0: field.varint = varint(); break;
        case 2: field.bytes = take(varint()); break;
        case 5: field.bytes = take(4); break;
        default: FAIL("wire type " << (key & 7));
      }
      fields_.push_back(field);
    }
  }
  std::vector<Field> all(std::uint64_t number) const {
    std::vector<Field> found;
    for (const Field& field : fields_)
      if (field.number == number) found.push_back(field);
    return found;
  }
  Field one(std::uint64_t number) const {
    const std::vector<Field> found = all(number);
    REQUIRE(found.size() == 1);
    return found.front();
  }

 private:
  std::uint64_t varint() {
    std::uint64_t value = 0;
    for (int shift = 0;; shift += 7) {
      REQUIRE(at_ < text_.size());
      const auto byte = static_cast<unsigned char>(text_[at_++]);
      value |= std::uint64_t{byte & 0x7fU} << shift;
      if (byte < 0x80) return value;
    }
  }
  std::string take(std::uint64_t length) {
    REQUIRE(length <= text_.size() - at_);
    at_ += length;
    return text_.substr(at_ - length, length);
  }

  std::string text_;
  std::size_t at_ = 0;
  std::vector<Field> fields_;
};

TEST_CASE("fields on the wire: the examples of the format's own page", "[onnx]") {
  onnx::Message inner, message;
  inner.integer(1, 150);
  CHECK(inner.bytes() == "\x08\x96\x01");
  message.message(3, inner).text(2, "testing");
  CHECK(message.bytes() == std::string("\x1a\x03\x08\x96\x01\x12\x07testing"));
  CHECK(onnx::Message().integer(1, -2).bytes() == "\x08\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01");
  CHECK(onnx::Message().number(16, 1.5F).bytes() == std::string("\x85\x01\x00\x00\xc0\x3f", 6));
  CHECK(onnx::Message().integer(1, 0).bytes() == std::string("\x08\x00", 2));
}

TEST_CASE("numbers of any size come back", "[onnx]") {
  onnx::Message message;
  std::vector<std::int64_t> values = test::random_integers(50, -3, 3, "small");
  for (int bits = 0; bits < 63; ++bits) values.push_back((std::int64_t{1} << bits) - bits % 2);
  for (std::size_t i = 0; i < values.size(); ++i) message.integer(static_cast<int>(i) + 1, values[i]);
  const Fields fields(message.bytes());
  for (std::size_t i = 0; i < values.size(); ++i)
    CHECK(static_cast<std::int64_t>(fields.one(i + 1).varint) == values[i]);
}

onnx::File small_file(const std::vector<float>& weights) {
  onnx::Builder builder;
  builder.set_part("dense");
  for (const char* used : {"x", "y"}) builder.name(used);
  builder.constant("w", onnx::Element::f32, {2, static_cast<std::int64_t>(weights.size() / 2)},
                   {reinterpret_cast<const char*>(weights.data()), weights.size() * sizeof(float)});
  builder.constant("unused", onnx::Element::f32, {1}, std::string(4, '\0'));
  builder.add("Relu", {"x"});
  builder.write("Gemm", {"x", "w", ""}, {"y"},
                {{"transB", std::int64_t{1}},
                 {"alpha", 0.5F},
                 {"axes", std::vector<std::int64_t>{3, -1}},
                 {"name", std::string("n")},
                 {"functions", std::vector<std::string>{"a", "b"}}});
  onnx::File& file = builder.file();
  file.inputs = {{"unread", onnx::Element::i32, {onnx::Port::kBatch}}, {"x", onnx::Element::f32, {-1, 5}, "features"}};
  file.outputs = {{"y", onnx::Element::f32, {onnx::Port::kBatch, 2}}};
  file.metadata = {{"step", "7"}, {"config", "a = 1\n"}};
  return file;
}

TEST_CASE("a file has the model's operations, constants, inputs and outputs, and nothing that is unused", "[onnx]") {
  const std::vector<double> draws = test::random_values(10, "weights");
  const std::vector<float> weights(draws.begin(), draws.end());
  onnx::File file = small_file(weights);
  onnx::remove_unused(file);
  const Fields model(onnx::serialise(std::move(file)));
  CHECK(model.one(1).varint == 8);
  CHECK(Fields(model.one(8).bytes).one(2).varint == 17);
  CHECK(model.one(2).bytes == "echelon");
  REQUIRE(model.all(14).size() == 2);
  CHECK(Fields(model.all(14)[1].bytes).one(1).bytes == "config");
  CHECK(Fields(model.all(14)[1].bytes).one(2).bytes == "a = 1\n");

  const Fields graph(model.one(7).bytes);
  const Fields node(graph.one(1).bytes);
  CHECK(node.one(4).bytes == "Gemm");
  REQUIRE(node.all(1).size() == 2);  // the empty input at the end is left out
  CHECK(node.all(1)[1].bytes == "w");
  CHECK(node.one(2).bytes == "y");
  std::map<std::string, Fields> attributes;
  for (const Field& field : node.all(5)) attributes.emplace(Fields(field.bytes).one(1).bytes, Fields(field.bytes));
  CHECK(attributes.at("transB").one(3).varint == 1);
  CHECK(attributes.at("transB").one(20).varint == 2);
  CHECK(attributes.at("alpha").one(2).bytes == std::string("\0\0\0\x3f", 4));
  CHECK(attributes.at("alpha").one(20).varint == 1);
  CHECK(static_cast<std::int64_t>(attributes.at("axes").all(8)[1].varint) == -1);
  CHECK(attributes.at("axes").one(20).varint == 7);
  CHECK(attributes.at("name").one(4).bytes == "n");
  CHECK(attributes.at("name").one(20).varint == 3);
  CHECK(attributes.at("functions").all(9)[1].bytes == "b");
  CHECK(attributes.at("functions").one(20).varint == 8);

  const Fields tensor(graph.one(5).bytes);
  CHECK(tensor.one(8).bytes == "w");
  CHECK(tensor.one(2).varint == 1);
  CHECK(tensor.all(1)[1].varint == 5);
  REQUIRE(tensor.one(9).bytes.size() == 40);
  CHECK(std::memcmp(tensor.one(9).bytes.data(), weights.data(), 40) == 0);

  const Fields input(graph.one(11).bytes);
  CHECK(input.one(1).bytes == "x");
  CHECK(input.one(3).bytes == "features");
  const Fields type(Fields(input.one(2).bytes).one(1).bytes);
  CHECK(type.one(1).varint == 1);
  const Fields shape(type.one(2).bytes);
  CHECK(Fields(shape.all(1)[0].bytes).one(2).bytes == "N");
  CHECK(Fields(shape.all(1)[1].bytes).one(1).varint == 5);
  CHECK(Fields(graph.one(12).bytes).one(1).bytes == "y");
}

TEST_CASE("names are given once, constants of equal content are one", "[onnx]") {
  onnx::Builder builder;
  CHECK(builder.name("conv") == "conv");
  CHECK(builder.name("conv") == "conv_2");
  CHECK(builder.name("conv") == "conv_3");
  CHECK(builder.integers({1, 2}) == builder.integers({1, 2}));
  CHECK(builder.integers({1, 2}) != builder.integers({12}));
  CHECK(builder.number(0.5F) != builder.number(0.25F));
  CHECK(builder.indices(0, 3) != builder.indices(1, 3));
  builder.set_part("a");
  const std::string first = builder.add("Relu", {"x"});
  CHECK(first == "a/Relu");
  CHECK(builder.add("Relu", {first}) != first);
}

}  // namespace
}  // namespace echelon
