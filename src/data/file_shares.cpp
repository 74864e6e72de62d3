// SPDX-License-Identifier: Apache-2.0
#include "data/file_shares.hpp"

#include <algorithm>
#include <numeric>

#include "base/check.hpp"

namespace echelon::inline data {
namespace {

// Moves or swaps a file of the most loaded replica as long as this lowers the maximum load. Among equal changes the
// first counts.
class Improvement {
 public:
  Improvement(const std::vector<std::int64_t>& file_samples, const std::vector<std::int64_t>& batch,
              std::vector<int>& owner)
      : samples_(file_samples), batch_(batch), owner_(owner), load_(batch.size(), 0), files_(batch.size(), 0) {
    for (std::size_t file = 0; file < owner.size(); ++file) {
      load_[at(file)] += samples_[file];
      ++files_[at(file)];
    }
  }

  void run() {
    constexpr int kMostRounds = 1000;
    for (int round = 0; round < kMostRounds && improve(); ++round) continue;
  }

 private:
  std::size_t at(std::size_t file) const { return static_cast<std::size_t>(owner_[file]); }
  double work(std::size_t replica, std::int64_t more = 0) const {
    return static_cast<double>(load_[replica] + more) / static_cast<double>(batch_[replica]);
  }

  bool improve() {
    std::size_t most = 0;
    for (std::size_t r = 1; r < load_.size(); ++r)
      if (work(r) > work(most)) most = r;
    double best = work(most);
    std::size_t given = 0, taken = 0, to = load_.size();
    bool swaps = false;
    const auto consider = [&](std::size_t file, std::size_t other, std::int64_t less, bool swap, std::size_t back) {
      const double after = std::max(work(most, -less), work(other, less));
      if (after < best) best = after, given = file, to = other, swaps = swap, taken = back;
    };
    for (std::size_t file = 0; file < owner_.size(); ++file) {
      if (at(file) != most) continue;
      if (files_[most] > 1)
        for (std::size_t r = 0; r < load_.size(); ++r)
          if (r != most) consider(file, r, samples_[file], false, 0);
      for (std::size_t back = 0; back < owner_.size(); ++back)
        if (at(back) != most && samples_[back] < samples_[file])
          consider(file, at(back), samples_[file] - samples_[back], true, back);
    }
    if (to == load_.size()) return false;
    const std::int64_t less = samples_[given] - (swaps ? samples_[taken] : 0);
    load_[most] -= less;
    load_[to] += less;
    owner_[given] = static_cast<int>(to);
    if (swaps) {
      owner_[taken] = static_cast<int>(most);
    } else {
      --files_[most];
      ++files_[to];
    }
    return true;
  }

  const std::vector<std::int64_t>&samples_, &batch_;
  std::vector<int>& owner_;
  std::vector<std::int64_t> load_, files_;  // [replica]
};

}  // namespace

std::vector<int> deal_files(const std::vector<std::int64_t>& file_samples, const std::vector<std::int64_t>& batch) {
  const std::size_t files = file_samples.size(), replicas = batch.size();
  ECHELON_CHECK_GE(files, replicas, "fewer files than replicas are cut instead");
  std::vector<std::size_t> order(files);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return file_samples[a] > file_samples[b]; });

  std::vector<int> owner(files, -1);
  std::vector<std::int64_t> load(replicas, 0);
  std::size_t without = replicas, left = files;  // replicas without a file; files not yet assigned
  for (const std::size_t file : order) {
    const bool only_empty = left-- <= without;
    std::size_t best = replicas;
    for (std::size_t r = 0; r < replicas; ++r) {
      if (only_empty && load[r] > 0) continue;
      // compares (load + file) / batch without division
      if (best == replicas ||
          (load[r] + file_samples[file]) * batch[best] < (load[best] + file_samples[file]) * batch[r])
        best = r;
    }
    if (load[best] == 0) --without;
    load[best] += file_samples[file];
    owner[file] = static_cast<int>(best);
  }
  Improvement(file_samples, batch, owner).run();
  return owner;
}

std::vector<std::int64_t> cut_in_proportion(std::int64_t samples, const std::vector<std::int64_t>& batch) {
  const std::int64_t global = std::accumulate(batch.begin(), batch.end(), std::int64_t{0});
  std::vector<std::int64_t> borders{0};
  std::int64_t before = 0;
  for (const std::int64_t b : batch) {
    before += b;
    borders.push_back(static_cast<std::int64_t>(static_cast<__int128>(samples) * before / global));
  }
  return borders;
}

}  // namespace echelon::inline data
