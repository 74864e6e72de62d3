// The names of the sample format, as data/README.md writes them down: read by dataset.cpp, written by import/.
#pragma once

#include <cstdint>

namespace echelon::sample_format {

inline constexpr const char* kName = "echelon-samples";
inline constexpr std::int64_t kVersion = 1;

inline constexpr const char* kSamples = "samples";  // (N, C, H, W), u8 or f32
inline constexpr const char* kLabels = "labels";    // (N), u8 or i32

// Attributes of the root.
inline constexpr const char* kFormat = "format";           // kName
inline constexpr const char* kFormatVersion = "version";   // kVersion
inline constexpr const char* kClasses = "classes";         // number of classes, the only one that must be there
inline constexpr const char* kClassNames = "class_names";  // one text a class
inline constexpr const char* kMean = "mean";               // (C), of value * scale; default 0
inline constexpr const char* kStd = "std";                 // (C), > 0; default 1
inline constexpr const char* kScale = "scale";             // default 1/255 for u8, 1 for f32
inline constexpr const char* kValueRange = "value_range";  // least and greatest stored value; for readers

}  // namespace echelon::sample_format
