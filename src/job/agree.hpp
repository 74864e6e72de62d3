// Errors common to all ranks, so that all of them exit normally with one message and one exit code.
#pragma once

#include <functional>
#include <string>

#include "base/error.hpp"
#include "comm/group.hpp"

namespace echelon::inline job {

// Thrown on all ranks at the same point with the same code and text; only rank 0 prints it.
struct CommonError : Error {
  using Error::Error;
};

// Runs `body`, which must not talk to other ranks, and learns whether every rank came through. Where one did not, all
// throw its error (of the lowest such rank) as a CommonError, "rank 3: " in front unless rank 0 has the same.
void all_or_none(Group& group, const std::function<void()>& body);

// Throws a CommonError(EnvironmentError's code) unless `text` is the same on all ranks: "rank 2 has ..., rank 0 ...".
void require_same(Group& group, const std::string& what, const std::string& text);

}  // namespace echelon::inline job
