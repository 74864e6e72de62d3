// SPDX-License-Identifier: Apache-2.0
// Reads attributes of a file's root group or of a dataset (`file` is its identifier), for Reader. Throws DataError with
// `path` and the attribute if it is missing or has another type, or if the file is damaged there.
#pragma once

#include <hdf5.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "h5/file.hpp"

namespace echelon::h5 {

bool has_attribute(hid_t file, const std::string& path, std::string_view name);
// One number or a list of numbers, of any numeric type.
std::vector<double> read_doubles(hid_t file, const std::string& path, std::string_view name);
std::int64_t read_int(hid_t file, const std::string& path, std::string_view name);
// One text or a list, of fixed or variable length.
std::vector<std::string> read_texts(hid_t file, const std::string& path, std::string_view name);
// The same for texts of fixed length; empty if there is no such attribute, or if it has another type.
std::vector<std::string> read_fixed_texts_of(hid_t file, const std::string& path, std::string_view name);
// A list of records with the members split, source (texts of fixed length), start and stop, as Fuel writes it. Empty if
// there is no such attribute or if it has another form.
std::vector<NamedRows> read_named_rows(hid_t file, const std::string& path, std::string_view name);

}  // namespace echelon::h5
