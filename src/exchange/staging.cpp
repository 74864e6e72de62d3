// SPDX-License-Identifier: Apache-2.0
#include "exchange/staging.hpp"

namespace echelon::inline exchange {

Staging::Staging(Device& device, void* arena, std::int64_t elems, DType dtype)
    : device_(device), arena_(arena), dtype_(dtype) {
  if (!device.on_host()) host_ = device.allocate_host(bytes_of(elems));
}

void* Staging::at(std::int64_t elem) const { return host_.data() ? host_.bytes_at(bytes_of(elem)) : on_device(elem); }

std::shared_ptr<const Event> Staging::fetch(ArenaRange range) {
  if (!host_.data()) return nullptr;
  device_.to_host_async(at(range.begin), on_device(range.begin), bytes_of(range.elems()));
  return device_.record();
}

void Staging::store(ArenaRange range) {
  if (!host_.data() || range.elems() <= 0) return;
  device_.to_device_async(on_device(range.begin), at(range.begin), bytes_of(range.elems()));
}

}  // namespace echelon::inline exchange
