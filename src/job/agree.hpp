// Errors common to all ranks, so that all of them exit normally with one message and one exit code.
#pragma once

#include <functional>
#include <string>

#include "base/error.hpp"
#include "comm/group.hpp"

namespace echelon::inline job {

// Thrown on all ranks at the same point with the same code and text, so that no rank waits for another afterwards; only
// rank 0 prints it.
struct CommonError : Error {
  using Error::Error;
};

// Runs `body` on every rank, then compares: if it threw on any rank, all throw the error of the lowest such rank as a
// CommonError, with "rank 3: " in front unless that is rank 0. Errors of the file system become exit code 3, bad_alloc
// 6, other exceptions 1. Collective, blocking: a sum of 8 bytes, and an all-gather of texts where there was an error;
// `body` must not communicate.
void all_or_none(Group& group, const std::function<void()>& body);

// Throws CommonError (exit 3) "the ranks differ in their <what>: rank 0 has .., rank 2 has .." unless `text` is the
// same on all ranks. Collective, blocking: the text of rank 0 to all and a sum of 8 bytes, and an all-gather where
// ranks differ.
void require_same(Group& group, const std::string& what, const std::string& text);

}  // namespace echelon::inline job
