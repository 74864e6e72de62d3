#include "train/hooks/fault.hpp"

#include <fmt/format.h>

#include <cstddef>
#include <cstdio>
#include <cstdlib>

#include "base/error.hpp"
#include "base/log.hpp"

namespace echelon::inline train {

void FaultHook::step_end(const StepRecord& record) {
  if (record.step != flip_.step) return;
  strategy_.drain();  // the step's weights, not those before it
  Device& device = arenas_.device();
  auto* byte = static_cast<std::byte*>(arenas_.weights_at(flip_.element)) + flip_.bit / 8;
  std::byte value{};
  device.to_host(&value, byte, 1);
  value ^= std::byte{1} << (flip_.bit % 8);
  device.to_device(byte, &value, 1);
  arenas_.touch();
}

std::unique_ptr<Hook> make_fault_hook(int rank, Arenas& arenas, Strategy& strategy) {
  const char* wanted = std::getenv("ECHELON_FAULT");
  if (!wanted) return nullptr;
  FaultHook::Flip flip;
  long long step = 0, element = 0;
  char rest = 0;
  const auto bits = static_cast<int>(8 * size_of(arenas.dtype()));
  if (std::sscanf(wanted, "flip:%d:%lld:%lld:%d%c", &flip.rank, &step, &element, &flip.bit, &rest) != 4 ||
      element < 0 || element >= arenas.elems() || flip.bit < 0 || flip.bit >= bits)
    throw ConfigError(
        fmt::format("ECHELON_FAULT = \"{}\": flip:<rank>:<step>:<element below {}>:<bit below {}>, or leave it out",
                    wanted, arenas.elems(), bits));
  flip.step = step, flip.element = element;
  if (rank == 0)
    log_warning("ECHELON_FAULT: bit {} of weight {} will be flipped on rank {} after step {}", flip.bit, element,
                flip.rank, step);
  if (rank != flip.rank) return nullptr;
  return std::make_unique<FaultHook>(flip, arenas, strategy);
}

}  // namespace echelon::inline train
