// SPDX-License-Identifier: Apache-2.0
// Checks every available device against the plain loops of the reference device.
#include <fmt/format.h>

#include "base/check.hpp"
#include "base/error.hpp"
#include "base/processor.hpp"
#include "config/traits/devices.hpp"
#include "device/cuda_entry.hpp"
#include "device/device.hpp"
#include "verify/check.hpp"
#include "verify/device_contract.hpp"

namespace echelon::verify {
namespace {

constexpr double kSingle = 1e-5, kHalf = 2e-2;

int local_rank(const VerifyContext& context) {
  int local = 0;
  for (int rank = 0; rank < context.rank; ++rank)
    local += context.hosts[static_cast<std::size_t>(rank)] == context.hosts[static_cast<std::size_t>(context.rank)];
  return local;
}

// Assigns GPUs to ranks in the same way as a run does.
std::unique_ptr<Device> open(const VerifyContext& context, const std::string& kind) {
  DeviceOptions options;
  options.threads = 1;
  if (kind == "cuda") {
    const int visible = visible_gpus();
    needs(visible > 0, "no GPU is usable here");
    options.index = local_rank(context) % visible;
  }
  return open_device(kind, options);
}

void require(const std::vector<std::string>& failures) {
  ECHELON_CHECK(failures.empty(), "{} failed, the first: {}", failures.size(), failures.front());
}

std::string check_ops(VerifyContext& context, const std::string& kind, DType dtype) {
  needs(kind == "cuda" || !is_half(dtype) || multiplies_bf16(), half_instructions_text());
  const auto device = open(context, kind);
  std::vector<OpSpec> specs = contract_specs(dtype);
  std::erase_if(specs, [&](const OpSpec& spec) { return !device->has(spec.kind, dtype); });
  constexpr std::size_t kEach = 6;  // in quick mode one in this many cases is run
  std::vector<std::string> failures;
  std::size_t tried = 0;
  for (std::size_t i = 0; i < specs.size(); ++i) {
    if (context.quick && i % kEach != 0) continue;
    ++tried;
    if (const OpCheck check = check_op(*device, specs[i], is_half(dtype) ? kHalf : kSingle); !check.ok)
      failures.push_back(check.message);
  }
  require(failures);
  return fmt::format("{} of {} cases on {}", tried, specs.size(), device->describe());
}

std::string check_rest(VerifyContext& context, const std::string& kind) {
  const auto device = open(context, kind);
  require(check_memory(*device));
  require(check_vector_ops(*device, DType::f32, kSingle));
  require(check_updates(*device, DType::f32, kSingle));
  return "";
}

}  // namespace

std::vector<VerifyCheck> device_checks() {
  std::vector<VerifyCheck> checks;
  for (const std::string kind : {"onednn", "cuda"}) {
    checks.push_back({"device " + kind, "memory, vector operations, update rules",
                      [=](VerifyContext& context) { return check_rest(context, kind); }, 300});
    checks.push_back({"device " + kind, "operations in all layouts",
                      [=](VerifyContext& context) { return check_ops(context, kind, DType::f32); }, 900});
    checks.push_back({"device " + kind, "operations in bf16",
                      [=](VerifyContext& context) { return check_ops(context, kind, DType::bf16); }, 900});
  }
  return checks;
}

}  // namespace echelon::verify
