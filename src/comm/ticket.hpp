// The engine's side of a Ticket.
#pragma once

#include <atomic>
#include <exception>

#include "comm/engine.hpp"

namespace echelon {

struct Ticket::State {
  std::atomic<int> done = 0;  // published last
  std::atomic<double> started_s = 0;
  double finished_s = 0;
  std::exception_ptr error;

  void finish(std::exception_ptr with);
};

}  // namespace echelon
