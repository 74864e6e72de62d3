// SPDX-License-Identifier: Apache-2.0
// echelon data import images | tar
#include <fmt/format.h>

#include <charconv>
#include <string_view>
#include <utility>

#include "base/error.hpp"
#include "cli/import_on_ranks.hpp"
#include "cli/import_text.hpp"
#include "cli/options.hpp"
#include "data/import/image_import.hpp"

namespace echelon::cli {
namespace {

// Height and width of "32" or "24x48"; 0 and 0 for "".
std::pair<int, int> extents_of(std::string_view text) {
  constexpr int kMost = 8192;  // with 3 channels at most 2^26 * 3 bytes per sample
  const auto number = [](std::string_view digits) {
    int value = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    return error == std::errc() && end == digits.data() + digits.size() && value <= kMost ? value : 0;
  };
  if (text.empty()) return {0, 0};
  const std::size_t x = text.find('x');
  const int height = number(text.substr(0, x));
  const int width = x == std::string_view::npos ? height : number(text.substr(x + 1));
  if (height < 1 || width < 1)
    throw ConfigError(fmt::format("--size is '{}', must be H or HxW, each from 1 to {}", text, kMost));
  return {height, width};
}

ImageRequest image_request(const ImportOptions& options) {
  const auto [height, width] = extents_of(options.size);
  if (options.channels != 1 && options.channels != 3)
    throw ConfigError(fmt::format("--channels is {}, must be 1 (grey) or 3 (red, green, blue)", options.channels));
  if (options.stored != "u8" && options.stored != "encoded")
    throw ConfigError(fmt::format("--stored is '{}'; images and archives take u8 or encoded", options.stored));
  const bool encoded = options.stored == "encoded";
  if (encoded && !options.size.empty())
    throw ConfigError(
        "--size does not go with --stored encoded, which keeps files as they are: data.image_size of the "
        "experiment says what the model sees");
  return {.format = options.format,
          .inputs = options.inputs,
          .height = height,
          .width = width,
          .channels = options.channels,
          .encoded = encoded,
          .skip_damaged = options.skip_damaged,
          .labels_as_they_are = options.labels_as_they_are || !options.like.empty(),
          .like = options.like};
}

}  // namespace

int run_image_import(const ImportOptions& options) {
  const ImageRequest request = image_request(options);
  const ShardOptions shards = shard_options(options);
  return import_on_ranks(options, "images",
                         [&](const ImportTeam& team) { return write_images(request, shards, team); });
}

}  // namespace echelon::cli
