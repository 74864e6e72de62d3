// SPDX-License-Identifier: Apache-2.0
// Returns the text of the error that a call is expected to throw.
#pragma once

#include <string>

namespace echelon::test {

// Calls `body` and returns the message of the `Thrown` that it throws, or "" where it throws nothing. An error of
// another type is not caught.
template <class Thrown, class Body>
std::string refusal(Body&& body) {
  try {
    body();
  } catch (const Thrown& error) {
    return error.what();
  }
  return "";
}

}  // namespace echelon::test
