// SPDX-License-Identifier: Apache-2.0
#include "cli/study_network.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <map>

#include "base/atomic_file.hpp"
#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/text.hpp"
#include "cli/network_text.hpp"
#include "comm/group.hpp"
#include "comm/links/all_pairs.hpp"
#include "comm/mpi/world.hpp"
#include "job/agree.hpp"
#include "job/launch.hpp"

namespace echelon::cli {
namespace {

namespace fs = std::filesystem;

constexpr const char* kStem = "network_k";

// Called on rank 0.
void store(const StudyPlan& study, const LinkMatrix& links, const LinkFaults& faults) {
  const std::string path = fmt::format("{}/{}{}", study.folder, kStem, links.ranks());
  const std::string text = crowd_text(links) + network_text(links, faults);
  make_folders(study.folder);
  write_file_whole(path + ".json", link_matrix_json(links));
  write_file_whole(path + ".svg", network_figure(links));
  write_file_whole(path + ".txt", where_text(links) + "\n" + text);
  fmt::print("network   {}: {}.txt\n", where_text(links), path);
  for (const std::string& fault : faults.blocked) fmt::print("BLOCKED   {}\n", fault);
  for (const std::string& fault : faults.slow) fmt::print("slow      {}\n", fault);
  if (faults.blocked.empty() && faults.slow.empty()) fmt::print("          no slow or blocked links\n");
  if (!faults.blocked.empty()) fmt::print("no cell was run: a cell that uses a blocked link hangs\n");
  std::fflush(stdout);
}

std::string section_of(const LinkMatrix& links, const std::string& stem) {
  const LinkFaults faults = find_link_faults(links, {});
  std::string text = fmt::format("\n{}, measured {} (`{}.json`):\n\n", escaped_for_markdown(where_text(links)),
                                 escaped_for_markdown(links.date), stem);
  for (const std::string& fault : faults.blocked)
    text += fmt::format("* **blocked**: {}\n", escaped_for_markdown(fault));
  for (const std::string& fault : faults.slow) text += fmt::format("* slow: {}\n", escaped_for_markdown(fault));
  if (faults.blocked.empty() && faults.slow.empty()) text += "* no slow or blocked links\n";
  return text + fmt::format("\n![Bandwidth of the links]({}.svg)\n", stem);
}

}  // namespace

bool check_network(const StudyPlan& study, Engine& launch, Transport& transport) {
  if (launch.size() == 1) return true;
  Group all(launch, 0);
  AllPairs pairs = measure_all_pairs(transport, {.interface = interface_here(transport)});
  const bool first = launch.rank() == 0;
  bool blocked = false;
  std::string failure;
  if (first) {
    pairs.links.date = now_utc_text();
    const LinkFaults faults = find_link_faults(pairs.links, pairs.silent);
    blocked = !faults.blocked.empty();
    try {
      store(study, pairs.links, faults);
    } catch (const Error& error) {
      failure = error.what();
    }
    // A blocked link would hang whatever follows, and MPI_Finalize.
    if (!pairs.complete) MpiWorld::abort(kExitUnmet);
  }
  all_or_none(all, [&] {
    if (!failure.empty()) throw EnvironmentError(failure);
  });
  return all.max(blocked ? 1 : 0) == 0;
}

std::string network_markdown(const StudyPlan& study) {
  std::map<std::size_t, std::string> sections;  // by ranks
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(study.folder, error)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(kStem) || entry.path().extension() != ".json") continue;
    const LinkMatrix links = read_link_matrix(entry.path().string());
    sections[links.ranks()] = section_of(links, entry.path().stem().string());
  }
  std::string text;
  for (const auto& [ranks, section] : sections) text += section;
  return text.empty() ? "" : "\n## The network\n" + text;
}

}  // namespace echelon::cli
