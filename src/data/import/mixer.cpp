// SPDX-License-Identifier: Apache-2.0
#include "data/import/mixer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <utility>

#include "base/error.hpp"
#include "base/hash_rng.hpp"

namespace echelon::inline data {
namespace {

struct Head {
  std::int64_t number;
  std::uint64_t bytes;
};

constexpr HashRng kDraws(1, "mixed import");

}  // namespace

Mixer::Mixer(const std::string& place, std::int64_t bytes, std::int64_t pile_bytes)
    : piles_(static_cast<std::size_t>(std::max<std::int64_t>(1, (bytes + pile_bytes - 1) / pile_bytes))),
      most_held_(piles_.size() == 1 ? std::numeric_limits<std::size_t>::max()
                                    : static_cast<std::size_t>(pile_bytes) / (2 * piles_.size())) {
  if (piles_.size() > 1) folder_.emplace(place + ".mixing");
}

std::size_t Mixer::pile_of(std::int64_t number) const {
  return static_cast<std::size_t>(kDraws.at(0).below(static_cast<std::uint64_t>(number), piles_.size()));
}

// Fisher-Yates shuffle.
void Mixer::permute(std::vector<std::size_t>& values, std::size_t pile) const {
  const HashRng draws = kDraws.at(1).at(pile);
  for (std::size_t i = values.size(); i > 1; --i) std::swap(values[i - 1], values[draws.below(i, i)]);
}

std::string Mixer::file_of(std::size_t pile) const { return folder_->now(fmt::format("pile-{}", pile)); }

void Mixer::flush(std::size_t pile) {
  Pile& full = piles_[pile];
  errno = 0;
  std::ofstream file(file_of(pile), std::ios::binary | std::ios::app);
  file.write(full.held.data(), static_cast<std::streamsize>(full.held.size()));
  file.close();
  if (!file)
    throw EnvironmentError(
        fmt::format("{}: cannot be written: {}; --keep-order does not mix samples and needs no such space",
                    file_of(pile), std::strerror(errno != 0 ? errno : EIO)));
  full.on_disk = true;
  full.held.clear();
}

void Mixer::add(std::string_view record) {
  const Head head{records_, record.size()};
  const std::size_t pile = pile_of(records_++);
  std::string& held = piles_[pile].held;
  if (!held.empty() && held.size() + record.size() > most_held_) flush(pile);
  held.append(reinterpret_cast<const char*>(&head), sizeof head);
  held += record;
}

void Mixer::each(const Body& body) {
  for (std::size_t pile = 0; pile < piles_.size(); ++pile) {
    std::string all;
    if (piles_[pile].on_disk) {
      flush(pile);
      all.resize(std::filesystem::file_size(file_of(pile)));
      if (!std::ifstream(file_of(pile), std::ios::binary).read(all.data(), static_cast<std::streamsize>(all.size())))
        throw EnvironmentError(fmt::format("{}: cannot be read: {}", file_of(pile), std::strerror(errno)));
      std::error_code ignored;
      std::filesystem::remove(file_of(pile), ignored);
    } else {
      all = std::move(piles_[pile].held);
    }
    std::vector<std::size_t> offsets;
    Head head{};
    for (std::size_t at = 0; at < all.size(); at += sizeof head + head.bytes) {
      std::memcpy(&head, all.data() + at, sizeof head);
      offsets.push_back(at);
    }
    permute(offsets, pile);
    for (const std::size_t at : offsets) {
      std::memcpy(&head, all.data() + at, sizeof head);
      body(head.number, std::string_view(all).substr(at + sizeof head, head.bytes));
    }
  }
}

std::vector<std::int64_t> Mixer::order(std::int64_t records) const {
  std::vector<std::vector<std::size_t>> dealt(piles_.size());
  for (std::int64_t number = 0; number < records; ++number)
    dealt[pile_of(number)].push_back(static_cast<std::size_t>(number));
  std::vector<std::int64_t> all;
  all.reserve(static_cast<std::size_t>(records));
  for (std::size_t pile = 0; pile < dealt.size(); ++pile) {
    permute(dealt[pile], pile);
    all.insert(all.end(), dealt[pile].begin(), dealt[pile].end());
  }
  return all;
}

}  // namespace echelon::inline data
