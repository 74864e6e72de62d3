// The reference device against itself in double, and its backward ops against finite differences.
#include <catch2/catch.hpp>

#include "device/reference/reference.hpp"
#include "tests/support/device_contract.hpp"

using namespace echelon;
using namespace echelon::test;

TEST_CASE("the reference device keeps the contract of devices", "[device]") {
  const auto device = make_reference_device({});
  for (const std::string& failure : check_device(*device, DType::f32, 2e-6)) FAIL_CHECK(failure);
  for (const std::string& failure : check_device(*device, DType::f64, 1e-14)) FAIL_CHECK(failure);
  SUCCEED();
}
