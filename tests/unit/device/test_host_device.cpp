// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>
#include <cstdint>
#include <numeric>

#include "base/error.hpp"
#include "device/host_device.hpp"
#include "device/host_update.hpp"
#include "device/reference/reference.hpp"
#include "device/update_rules/list.hpp"
#include "tests/support/random.hpp"

using namespace echelon;

TEST_CASE("the memory limit is refused with tag, sizes and limit", "[device]") {
  const auto device = make_reference_device({.memory_limit_bytes = 1 << 20});
  const Memory half = device->allocate(1 << 19, "weights");
  CHECK_THROWS_AS(device->allocate((1 << 19) + 1, "gradients"), MemoryError);
  CHECK_THROWS_WITH(device->allocate((1 << 19) + 1, "gradients"), Catch::Contains("'gradients'") &&
                                                                      Catch::Contains("512.00 KiB already in use") &&
                                                                      Catch::Contains("limit of 1.00 MiB"));
  CHECK_THROWS_AS(device->allocate(SIZE_MAX - 3, "everything"), MemoryError);
  CHECK(device->allocated_bytes() == 1 << 19);
  const Memory rest = device->allocate(1 << 19, "gradients");
  CHECK(device->allocated_bytes() == 1 << 20);
  CHECK_THROWS_AS(device->allocate(1, "more"), MemoryError);
}

TEST_CASE("without a limit, what the machine does not have is a memory error", "[device]") {
  const auto device = make_reference_device({});
  CHECK_THROWS_AS(device->allocate(SIZE_MAX - 3, "everything"), MemoryError);
  CHECK_THROWS_AS(device->allocate(std::size_t{1} << 60, "everything"), MemoryError);
  CHECK(device->allocated_bytes() == 0);
}

TEST_CASE("memory moves its ownership and outlives its device", "[device]") {
  auto device = make_reference_device({});
  Memory a = device->allocate(100, "a");
  void* const address = a.data();
  Memory b = std::move(a);
  CHECK(b.data() == address);
  CHECK(a.data() == nullptr);
  CHECK(device->allocated_bytes() == 100);
  b = Memory();
  CHECK(device->allocated_bytes() == 0);
  CHECK(device->peak_bytes() == 100);
  Memory last = device->allocate(10, "last");
  device.reset();
  static_cast<char*>(last.data())[9] = 1;
  CHECK(device_kinds().front() == "auto");
  CHECK(Memory().data() == nullptr);
}

TEST_CASE("an empty memory block has an address", "[device]") {
  const auto device = make_reference_device({});
  const Memory none = device->allocate(0, "nothing");
  CHECK(none.data() != nullptr);
  CHECK(none.bytes() == 0);
}

TEST_CASE("devices open by name, unknown ones with the nearest known", "[device]") {
  CHECK(open_device("reference", {})->name() == "reference");
  CHECK(open_device("paced", {})->name() == "paced");
  CHECK_THROWS_AS(open_device("refrence", {}), ConfigError);
  CHECK_THROWS_WITH(open_device("refrence", {}), Catch::Contains("did you mean 'reference'?"));
  const auto chosen = open_device("auto", {});
  CHECK(chosen->name() == (visible_gpus() > 0 ? "cuda" : "onednn"));
}

TEST_CASE("by default outputs have the layout of the first activation", "[device]") {
  struct Plain final : HostDevice {
    Plain() : HostDevice({}) {}
    std::string_view name() const override { return "plain"; }
    std::string describe() const override { return "plain"; }
    bool supports(DType) const override { return true; }
    std::unique_ptr<Op> make(const OpSpec&) override { return nullptr; }
  } const device;
  OpSpec spec{OpKind::add, DType::f32, ElementwiseDims{Shape{1, 2, 3, 4}}, {Layout::blocked8}};
  CHECK(device.layouts(spec).layouts[2] == Layout::blocked8);
  CHECK(device.layouts(spec).layouts[1] == Layout::plain);
  spec = {OpKind::reorder, DType::f32, ReorderDims{Shape{1, 2, 3, 4}}, {Layout::blocked8, Layout::channels_last}};
  CHECK(device.layouts(spec).layouts == spec.layouts);
  spec = {OpKind::dense_forward, DType::f32, DenseDims{1, 2, 3}, {}};
  CHECK(device.layouts(spec).layouts == spec.layouts);
}

TEST_CASE("sums of squares depend on n alone: not on the address, not on the run", "[vector]") {
  VectorOps& ops = host_vector_ops();
  for (std::size_t n : {1U, 15U, 16U, 17U, 1000U, 4099U}) {
    const auto values = test::random_values(n, "squares");
    std::vector<float> at(n + 16);
    double first = -1;
    for (std::size_t offset = 0; offset < 16; ++offset) {
      for (std::size_t i = 0; i < n; ++i) at[offset + i] = static_cast<float>(values[i]);
      const double sum = ops.sum_squares(DType::f32, at.data() + offset, n);
      if (offset == 0) first = sum;
      CHECK(sum == first);
    }
  }
}

TEST_CASE("sums of many squares keep double precision", "[vector]") {
  const std::vector<float> values(1000001, 0.1F);
  const double each = static_cast<double>(0.1F) * static_cast<double>(0.1F);
  CHECK(host_vector_ops().sum_squares(DType::f32, values.data(), values.size()) ==
        Approx(each * 1000001).epsilon(1e-11));
}

namespace {

// Returns the weights and states after a few updates.
template <class T>
std::vector<std::vector<T>> updated(const char* rule, std::size_t count, std::size_t n, DType dtype, int threads) {
  const auto start = test::random_values(n, "w"), gradient = test::random_values(n, "g");
  const std::vector<T> g(gradient.begin(), gradient.end());
  std::vector<std::vector<T>> values(count + 1, std::vector<T>(n));
  values[0].assign(start.begin(), start.end());
  std::vector<void*> states;
  for (std::size_t s = 1; s <= count; ++s) states.push_back(values[s].data());
  const auto update = make_host_update(rule, dtype, threads);
  for (int step = 0; step < 3; ++step)
    update->apply(values[0].data(), g.data(), states, n,
                  {.learning_rate = 0.1, .momentum = 0.9, .weight_decay = 1e-3, .clip = 0.7});
  return values;
}

}  // namespace

TEST_CASE("updates give the same bits on one thread and on several", "[update]") {
  const std::size_t n = 131077;  // not a multiple of the threads
  const auto check = [&](const char* rule, std::size_t states) {
    INFO(rule);
    CHECK(updated<float>(rule, states, n, DType::f32, 1) == updated<float>(rule, states, n, DType::f32, 3));
    CHECK(updated<double>(rule, states, n, DType::f64, 1) == updated<double>(rule, states, n, DType::f64, 4));
  };
#define X(Rule) check(Rule::kName, Rule::kStates);
  ECHELON_UPDATE_RULES(X)
#undef X
}

TEST_CASE("an unknown update rule names the known ones", "[update]") {
  CHECK_THROWS_WITH(make_host_update("sgdd", DType::f32, 1), Catch::Contains("did you mean 'sgd'?"));
}
