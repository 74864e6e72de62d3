// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>
#include <cmath>
#include <map>

#include "base/error.hpp"
#include "device/arenas.hpp"
#include "device/host_device.hpp"
#include "device/reference/reference.hpp"

using namespace echelon;

namespace {

// A device whose memory the host must not touch, so that only copies can reach it.
struct Remote final : HostDevice {
  Remote() : HostDevice({}) {}
  std::string_view name() const override { return "remote"; }
  std::string describe() const override { return "remote"; }
  bool on_host() const override { return false; }
  bool supports(DType) const override { return true; }
  std::unique_ptr<Op> make(const OpSpec&) override { return nullptr; }
};

ParameterSet two_parameters() {
  ParameterSet set;
  set.add("conv.weight", Shape{4, 3, 2}, {Init::Kind::uniform, 0.5});
  set.add("conv.bias", Shape{4}, {Init::Kind::constant, 0.25}, false);
  set.add_statistic("norm.mean", Shape{3}, {Init::Kind::constant, 1}, 0.2);
  return set;
}

std::vector<double> weights_of(const Arenas& arenas, int parameter) {
  const Tensor t = arenas.weight(parameter);
  const auto* at = static_cast<const double*>(t.data);
  return {at, at + t.elems()};
}

struct Recorder final : StateVisitor {
  explicit Recorder(double replacement) : value(replacement) {}
  bool loading() const override { return !std::isnan(value); }
  void tensor(const StateTensor& t) override {
    order.emplace_back(t.name);
    tensors[std::string(t.name)] = t;
    auto* at = static_cast<double*>(t.data);
    firsts.push_back(at[0]);
    if (loading()) std::fill(at, at + t.shape.elems(), value);
  }
  void scalar(std::string_view, std::int64_t&, Absent) override {}
  void scalar(std::string_view, double&, Absent) override {}
  double value;
  std::vector<std::string> order;
  std::vector<double> firsts;
  std::map<std::string, StateTensor> tensors;
};

}  // namespace

TEST_CASE("parameters lie one after another in the order they were added", "[arenas]") {
  const ParameterSet set = two_parameters();
  CHECK(set.size() == 3);
  CHECK(set[0].begin == 0);
  CHECK(set[1].begin == 24);
  CHECK(set[2].begin == 28);
  CHECK(set.elems() == 31);
  CHECK(set.weight_elems() == 28);
  CHECK(set.find("conv.bias") == 1);
  CHECK(set.find("conv") == -1);
  CHECK(set[0].decays);
  CHECK_FALSE(set[1].decays);
  CHECK(set[2].kind == ParameterKind::statistic);
  CHECK(set[2].momentum == 0.2);
}

TEST_CASE("a parameter's name is taken once, and its slice stays inside", "[arenas]") {
  ParameterSet set = two_parameters();
  CHECK_THROWS_WITH(set.add("conv.bias", Shape{1}, {}), Catch::Contains("two parameters are called 'conv.bias'"));
  Parameter outside;
  outside.name = "slice";
  outside.global_shape = Shape{4, 4};
  outside.shape = Shape{2, 4};
  outside.offset = Shape{3, 0};
  CHECK_THROWS_WITH(set.add(outside), Catch::Contains("exceeds the parameter along axis 0"));
  CHECK(set.size() == 3);
}

TEST_CASE("sparse parameters have marks for their rows; they count once somebody tracks them", "[arenas]") {
  const auto device = make_reference_device({});
  ParameterSet set = two_parameters();
  Arenas plain(*device, set, DType::f64);
  plain.track_rows(true);
  CHECK_FALSE(plain.tracks_rows());  // nothing to track
  for (const char* name : {"first", "second"}) {
    Parameter table;
    table.name = name, table.shape = table.global_shape = Shape{70, 2}, table.offset = Shape{0, 0};
    table.sparse = true;
    set.add(table);
  }
  Arenas arenas(*device, set, DType::f64);
  CHECK_THROWS_WITH(arenas.row_marks(0), Catch::Contains("the gradient of conv.weight is dense"));
  const RowMarks first = arenas.row_marks(3), second = arenas.row_marks(4);
  CHECK(first.rows == 70);
  CHECK(first.width == 2);
  CHECK(second.words - first.words == 3);
  CHECK_FALSE(arenas.tracks_rows());
  arenas.track_rows(true);
  CHECK(arenas.tracks_rows());
  mark_row(second.words, 69);
  auto* gradients = static_cast<double*>(arenas.gradients_at(0));
  std::fill_n(gradients, arenas.elems(), 1.0);
  arenas.clear_tables();
  CHECK(gradients[set[3].begin - 1] == 1);  // the value belongs to a dense parameter
  CHECK(std::count(gradients, gradients + arenas.elems(), 0.0) == 280);
  CHECK(second.words[2] == 0);
  const auto paced = open_device("paced", {});
  Arenas asleep(*paced, set, DType::f32);
  asleep.track_rows(true);
  CHECK_FALSE(asleep.tracks_rows());  // where nothing is computed, nothing is marked
}

TEST_CASE("initial weights depend on seed and name, not on what else there is", "[arenas]") {
  const auto device = make_reference_device({});
  Arenas arenas(*device, two_parameters(), DType::f64);
  arenas.initialise(7);
  const auto values = weights_of(arenas, 0);
  CHECK(*std::min_element(values.begin(), values.end()) >= -0.5);
  CHECK(*std::max_element(values.begin(), values.end()) < 0.5);
  CHECK(weights_of(arenas, 1) == std::vector<double>(4, 0.25));

  ParameterSet other;
  other.add("first", Shape{5}, {Init::Kind::normal, 1});
  other.add("conv.weight", Shape{4, 3, 2}, {Init::Kind::uniform, 0.5});
  Arenas moved(*device, other, DType::f64);
  moved.initialise(7);
  CHECK(weights_of(moved, 1) == values);
  moved.initialise(8);
  CHECK(weights_of(moved, 1) != values);
}

TEST_CASE("the initial values of a slice are the slice of the whole", "[arenas]") {
  const auto device = make_reference_device({});
  const auto kind = GENERATE(Init::Kind::uniform, Init::Kind::normal, Init::Kind::orthogonal);
  ParameterSet whole;
  whole.add("w", Shape{5, 4, 3}, {kind, 0.1});
  Arenas all(*device, whole, DType::f64);
  all.initialise(3);
  Parameter part = whole[0];
  part.shape = Shape{2, 3, 2};
  part.offset = Shape{3, 1, 0};
  ParameterSet slice;
  slice.add(part);
  Arenas some(*device, slice, DType::f64);
  some.initialise(3);
  const auto values = weights_of(all, 0), sliced = weights_of(some, 0);
  std::size_t at = 0;
  for (std::size_t a = 3; a < 5; ++a)
    for (std::size_t b = 1; b < 4; ++b)
      for (std::size_t c = 0; c < 2; ++c) CHECK(sliced[at++] == values[(a * 4 + b) * 3 + c]);
}

TEST_CASE("rows or columns of orthogonal initial values have length 1 and right angles", "[arenas]") {
  const auto device = make_reference_device({});
  const Shape shape = GENERATE(Shape{6, 3, 5}, Shape{15, 2, 3}, Shape{7, 7});
  ParameterSet set;
  set.add("w", shape, {Init::Kind::orthogonal, 2});
  Arenas arenas(*device, set, DType::f64);
  arenas.initialise(5);
  const std::vector<double> values = weights_of(arenas, 0);
  const std::int64_t rows = shape[0], columns = shape.row_elems();
  const std::int64_t count = std::min(rows, columns), length = std::max(rows, columns);
  const auto at = [&](std::int64_t vector, std::int64_t i) {
    return values[static_cast<std::size_t>(rows <= columns ? vector * columns + i : i * columns + vector)];
  };
  for (std::int64_t a = 0; a < count; ++a)
    for (std::int64_t b = 0; b < count; ++b) {
      double dot = 0;
      for (std::int64_t i = 0; i < length; ++i) dot += at(a, i) * at(b, i);
      CHECK(dot == Approx(a == b ? 4 : 0).margin(1e-12));
    }
}

TEST_CASE("normal initial values have their standard deviation", "[arenas]") {
  const auto device = make_reference_device({});
  ParameterSet set;
  set.add("w", Shape{100, 200}, {Init::Kind::normal, 0.5});
  Arenas arenas(*device, set, DType::f64);
  arenas.initialise(11);
  double sum = 0, squares = 0;
  for (double value : weights_of(arenas, 0)) sum += value, squares += value * value;
  CHECK(std::fabs(sum / 20000) < 0.02);
  CHECK(std::sqrt(squares / 20000) == Approx(0.5).epsilon(0.03));
}

TEST_CASE("the version rises whenever weights may have changed", "[arenas]") {
  const auto device = make_reference_device({});
  Arenas arenas(*device, two_parameters(), DType::f64);
  const auto first = arenas.version();
  arenas.initialise(1);
  CHECK(arenas.version() > first);
  const auto second = arenas.version();
  Recorder reading(NAN);
  arenas.visit_state(reading);
  CHECK(arenas.version() == second);
  Recorder loading(2);
  arenas.visit_state(loading);
  CHECK(arenas.version() > second);
}

TEST_CASE("arenas show their weights by name, on the host and elsewhere", "[arenas]") {
  const auto host = make_reference_device({});
  Remote remote;
  Arenas here(*host, two_parameters(), DType::f64), there(remote, two_parameters(), DType::f64);
  here.initialise(5);
  there.initialise(5);
  CHECK(here.checksum() == there.checksum());
  Recorder of_here(NAN), of_there(NAN);
  here.visit_state(of_here);
  there.visit_state(of_there);
  CHECK(of_here.order == std::vector<std::string>{"weights/conv.weight", "weights/conv.bias", "weights/norm.mean"});
  CHECK(of_here.firsts == of_there.firsts);
  CHECK(of_here.tensors.at("weights/conv.weight").placement == Placement::replicated);

  Recorder loading(3);
  there.visit_state(loading);
  Recorder again(NAN);
  there.visit_state(again);
  CHECK(again.firsts == std::vector<double>{3, 3, 3});
  CHECK(here.checksum() != there.checksum());
}

TEST_CASE("a slice says where it belongs", "[arenas]") {
  const auto device = make_reference_device({});
  Parameter part;
  part.name = "w";
  part.global_shape = Shape{6, 2};
  part.shape = Shape{2, 2};
  part.offset = Shape{4, 0};
  ParameterSet set;
  set.add(part);
  Arenas arenas(*device, set, DType::f64);
  Recorder recorder(NAN);
  arenas.visit_state(recorder);
  const StateTensor& shown = recorder.tensors.at("weights/w");
  CHECK(shown.placement == Placement::slice);
  CHECK(shown.global_shape == Shape{6, 2});
  CHECK(shown.offset == Shape{4, 0});
}
