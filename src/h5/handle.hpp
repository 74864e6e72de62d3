// SPDX-License-Identifier: Apache-2.0
// Shared by reader and writer: owned identifiers, the library's error texts, types and dataspaces.
#pragma once

#include <hdf5.h>

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/dtype.hpp"
#include "base/shape.hpp"

namespace echelon::h5 {

// Owns one identifier of the library. `close` returns whether closing succeeded; the destructor ignores the result.
class Handle {
 public:
  using Closer = herr_t (*)(hid_t);
  Handle() = default;
  Handle(hid_t id, Closer closer) : id_(id), closer_(closer) {}
  ~Handle() { close(); }
  Handle(Handle&& other) noexcept : id_(std::exchange(other.id_, -1)), closer_(other.closer_) {}
  Handle& operator=(Handle&& other) noexcept {
    if (this != &other) {
      close();
      id_ = std::exchange(other.id_, -1);
      closer_ = other.closer_;
    }
    return *this;
  }

  hid_t id() const { return id_; }
  bool ok() const { return id_ >= 0; }
  bool close() { return id_ < 0 || closer_(std::exchange(id_, -1)) >= 0; }

 private:
  hid_t id_ = -1;
  Closer closer_ = nullptr;
};

// Turns off the printing of error stacks in the calling thread; the setting is per thread.
void quiet_thread();

// Returns why the thread's last call failed: the system's message if the error stack has one ("No space left on
// device"), else the innermost description.
std::string reason();
// Whether the error stack of the thread contains this text.
bool reason_has(std::string_view text);

hid_t native_type(DType dtype);
// Returns the type as which values are read, by class, size and sign, in any byte order; floats must be those of IEEE.
// Halves are read as f32, integers of other sizes as i32; the library clamps those that do not fit to the nearest i32.
std::optional<DType> dtype_of_type(hid_t type);
std::string type_text(hid_t type);  // "a 64-bit integer", "text", for messages

using Extents = std::array<hsize_t, Shape::kMaxRank>;
Extents extents_of(const Shape& shape);
Handle space_of(const Shape& shape);  // scalar for rank 0

// Returns the extents of a dataspace; none if it has more axes than a Shape can have.
std::optional<Shape> shape_of_space(hid_t space);

// Returns whether every part of a path in the file exists ("weights/conv1.weight"); none if the file is damaged there.
std::optional<bool> path_exists(hid_t file, std::string_view name);

}  // namespace echelon::h5
