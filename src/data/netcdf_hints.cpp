// SPDX-License-Identifier: Apache-2.0
#include "data/netcdf_hints.hpp"

#include <algorithm>
#include <sstream>

#include "base/lower_case.hpp"

namespace echelon::inline data {
namespace {

std::string beside(const std::string& dataset, const std::string& name) {
  return dataset.substr(0, dataset.rfind('/') + 1) + name;  // npos + 1 is 0
}

std::string text_of(const h5::Reader& file, const std::string& dataset, const char* attribute) {
  const std::vector<std::string> texts = file.texts_of(dataset, attribute);
  return texts.empty() ? "" : texts.front();
}

std::int64_t dimension_id(const h5::Reader& file, const std::string& dataset) {
  const std::vector<double> id = file.numbers_of(dataset, "_Netcdf4Dimid");
  return id.size() == 1 ? static_cast<std::int64_t>(id[0]) : -1;
}

}  // namespace

NetcdfHints::NetcdfHints(const h5::Reader& file, const std::vector<h5::DatasetInfo>& datasets) : file_(file) {
  for (const h5::DatasetInfo& info : datasets) {
    for (const char* attribute :
         {"bounds", "climatology", "coordinates", "cell_measures", "ancillary_variables", "grid_mapping"}) {
      std::istringstream names(text_of(file, info.name, attribute));
      for (std::string name; names >> name;)
        if (!name.ends_with(':')) describing_.insert(beside(info.name, name));
    }
    if (text_of(file, info.name, "CLASS") != "DIMENSION_SCALE") continue;
    describing_.insert(info.name);
    if (info.shape.rank() == 1)
      scales_.push_back({.id = dimension_id(file, info.name), .extent = info.shape[0], .letter = letter_of(info.name)});
  }
}

char NetcdfHints::letter_of(const std::string& scale) const {
  const std::string axis = text_of(file_, scale, "axis");
  if (axis.size() == 1 && std::string("TZYX").find(axis[0]) != std::string::npos)
    return "NCHW"[std::string("TZYX").find(axis[0])];
  const std::string name = lower_case(scale.substr(scale.rfind('/') + 1)),
                    kind = lower_case(text_of(file_, scale, "standard_name")),
                    units = lower_case(text_of(file_, scale, "units"));
  const auto has = [](const std::string& text, const char* word) { return text.find(word) != std::string::npos; };
  if (has(units, " since ") || kind == "time" || name.starts_with("time")) return 'N';
  if (has(kind, "latitude") || has(kind, "y_coordinate") || name == "y" || name == "lat") return 'H';
  if (has(kind, "longitude") || has(kind, "x_coordinate") || name == "x" || name == "lon") return 'W';
  const bool level = !text_of(file_, scale, "positive").empty() || has(kind, "pressure") || has(kind, "height") ||
                     has(kind, "depth") || has(name, "lev") || has(name, "depth");
  return level ? 'C' : '\0';
}

std::string NetcdfHints::axes_of(const h5::DatasetInfo& variable) const {
  const std::vector<double> ids = file_.numbers_of(variable.name, "_Netcdf4Coordinates");
  std::string axes;
  for (int axis = 0; axis < variable.shape.rank(); ++axis) {
    char letter = 0;
    for (const Scale& scale : scales_) {
      const bool same = std::ssize(ids) == variable.shape.rank()
                            ? scale.id == static_cast<std::int64_t>(ids[static_cast<std::size_t>(axis)])
                            : scale.extent == variable.shape[axis] && axes.find(scale.letter) == std::string::npos;
      if (same && letter == 0) letter = scale.letter;
    }
    if (letter == 0 || axes.find(letter) != std::string::npos) return {};
    axes += letter;
  }
  return axes;
}

}  // namespace echelon::inline data
