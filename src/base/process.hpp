// Which process this is, so that others on the same host find out when it is gone.
#pragma once

#include <string>

namespace echelon::inline base {

// This process: its PID, and the boot and PID namespace in which that number is unique. One line, "4711 <boot id>
// <namespace>".
std::string process_id_text();

// True where `id`, a process_id_text, is of a process on this host and in this PID namespace, gone or not.
bool is_near(const std::string& id);
// True where `id`, a process_id_text, is of a process in this PID namespace that no longer exists (a child that nobody
// has waited for yet still does). False where it exists or cannot be seen from here. Any thread.
bool is_gone(const std::string& id);

}  // namespace echelon::inline base
