// SPDX-License-Identifier: Apache-2.0
// The names in the file format that data/README.md specifies. shard_header.cpp reads it, import/ writes it.
#pragma once

#include <cstdint>

namespace echelon::inline data::sample_format {

inline constexpr std::int64_t kMostClasses = 1 << 24;
inline constexpr const char* kName = "echelon-samples";
inline constexpr std::int64_t kVersion = 1;

// A set of samples.
inline constexpr const char* kSamples = "samples";  // (N, C, H, W), u8 or f32
inline constexpr const char* kLabels = "labels";    // (N), u8 or i32; or numbers (N) or (N, K), f32; for sequences too

// Encoded images instead of `samples`: the bytes of all files, and kLengths of them.
inline constexpr const char* kBytes = "bytes";  // (all), u8

// A text, sequences or pairs: all tokens or values concatenated, and the length of each sequence.
inline constexpr const char* kTokens = "tokens";          // (all), u8 or i32
inline constexpr const char* kValues = "values";          // (all, F), f32: numeric sequences
inline constexpr const char* kLengths = "lengths";        // (N), i32; not for a text
inline constexpr const char* kVocabulary = "vocabulary";  // bytes, see vocabulary.hpp
inline constexpr const char* kTargetTokens = "target_tokens";
inline constexpr const char* kTargetLengths = "target_lengths";
inline constexpr const char* kTargetVocabulary = "target_vocabulary";  // holds <s> and </s>

// Attributes of the root group.
inline constexpr const char* kEncoded = "encoded";         // rgb | grey: samples are bytes of JPEG or PNG files
inline constexpr const char* kFormat = "format";           // kName
inline constexpr const char* kFormatVersion = "version";   // kVersion
inline constexpr const char* kKind = "kind";               // samples (default) | text | sequences | pairs
inline constexpr const char* kLabelsOf = "labels_of";      // sequences: samples (default) | steps, a label for each
inline constexpr const char* kClasses = "classes";         // number of classes; required if there are labels
inline constexpr const char* kClassNames = "class_names";  // one text per class; many are in a dataset (text_list.hpp)
inline constexpr const char* kMean = "mean";               // (C), or (F) for sequences, of value * scale; default 0
inline constexpr const char* kStd = "std";                 // like mean, > 0; default 1
inline constexpr const char* kScale = "scale";             // default 1/255 for u8, 1 for f32
inline constexpr const char* kValueRange = "value_range";  // least and greatest stored value, as information for people

}  // namespace echelon::inline data::sample_format
