// The text of the error that a call is expected to end with.
#pragma once

#include <string>

namespace echelon::test {

// Calls `body` and returns the message of the `Thrown` that it ends with: "" where nothing is thrown. An error of
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
