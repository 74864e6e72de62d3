// SPDX-License-Identifier: Apache-2.0
// Makes an error common to all ranks, so that all of them exit normally with one message and one exit code.
#pragma once

#include <functional>
#include <string>

#include "base/error.hpp"
#include "comm/group.hpp"

namespace echelon::inline job {

// Thrown on all ranks at the same point with the same code and text, so that no rank waits for another afterwards. Only
// rank 0 prints it.
struct CommonError : Error {
  using Error::Error;
};

// Runs `body` on every rank and compares the outcomes. If it threw on any rank, all ranks throw the error of the lowest
// such rank as a CommonError, with the prefix "rank 3: " unless that is rank 0. Errors of the file system become exit
// code 3, bad_alloc 6, other exceptions 1. Collective and blocking: a sum of 8 bytes, and after an error an all-gather
// of texts. `body` must not communicate.
void all_or_none(Group& group, const std::function<void()>& body);

// Throws CommonError (exit 3) "the ranks differ in their <what>: rank 0 has .., rank 2 has .." unless `text` is the
// same on all ranks. Collective and blocking: sends rank 0's text to all and sums 8 bytes; if ranks differ, also an
// all-gather.
// `differences` says how two long texts differ, in place of both texts; then ranks compare checksums first.
using Differences = std::function<std::string(const std::string& first, const std::string& other, std::size_t rank)>;
void require_same(Group& group, const std::string& what, const std::string& text, const Differences& differences = {});

}  // namespace echelon::inline job
