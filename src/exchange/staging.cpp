#include "exchange/staging.hpp"

namespace echelon {

Staging::Staging(Arenas& arenas) : arenas_(arenas) {
  if (!arenas.device().on_host()) host_ = arenas.device().allocate_host(bytes_of(arenas.elems()));
}

void* Staging::gradients(ArenaRange range) const {
  return host_.data() ? host_.bytes_at(bytes_of(range.begin)) : arenas_.gradients_at(range.begin);
}

std::shared_ptr<const Event> Staging::fetch(ArenaRange range) {
  if (!host_.data()) return nullptr;
  Device& device = arenas_.device();
  device.to_host_async(gradients(range), arenas_.gradients_at(range.begin), bytes_of(range.elems()));
  return device.record();
}

void Staging::store(ArenaRange range) {
  if (!host_.data()) return;
  arenas_.device().to_device_async(arenas_.gradients_at(range.begin), gradients(range), bytes_of(range.elems()));
}

}  // namespace echelon
