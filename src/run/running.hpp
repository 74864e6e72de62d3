// A phase of an attempt: the loop and what it uses together with the other ranks.
#pragma once

#include <memory>

#include "run/link_waits.hpp"
#include "run/ready.hpp"
#include "run/wire_matrix.hpp"
#include "train/hooks/arrivals.hpp"
#include "train/loop.hpp"

namespace echelon::inline run {

struct Running {
  // Collective. EnvironmentError on all ranks if the order of arrivals cannot be recorded.
  explicit Running(Ready& ready);
  Running(const Running&) = delete;

  std::unique_ptr<ArrivalsHook> arrivals;  // if replicas meet on call and some rank serves; called before other hooks
  Control control;
  WireMatrix wire;
  LinkWaitsOfRun waits;
  Loop loop;
};

}  // namespace echelon::inline run
