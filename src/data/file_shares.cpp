#include "data/file_shares.hpp"

#include <algorithm>
#include <numeric>

#include "base/check.hpp"

namespace echelon::inline data {

std::vector<int> deal_files(const std::vector<std::int64_t>& file_samples, const std::vector<std::int64_t>& batch) {
  const std::size_t files = file_samples.size(), replicas = batch.size();
  ECHELON_CHECK_GE(files, replicas, "fewer files than replicas are cut instead");
  std::vector<std::size_t> order(files);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return file_samples[a] > file_samples[b]; });

  std::vector<int> owner(files, -1);
  std::vector<std::int64_t> load(replicas, 0);
  std::size_t without = replicas, left = files;  // replicas without a file; files not dealt yet
  for (const std::size_t file : order) {
    const bool only_empty = left-- <= without;
    std::size_t best = replicas;
    for (std::size_t r = 0; r < replicas; ++r) {
      if (only_empty && load[r] > 0) continue;
      // (load + file) / batch, compared without division
      if (best == replicas ||
          (load[r] + file_samples[file]) * batch[best] < (load[best] + file_samples[file]) * batch[r])
        best = r;
    }
    if (load[best] == 0) --without;
    load[best] += file_samples[file];
    owner[file] = static_cast<int>(best);
  }
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
