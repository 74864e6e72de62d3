// SPDX-License-Identifier: Apache-2.0
// echelon bench network: measures all pairs of ranks, names faults, and stores the matrix for a planner.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <optional>

#include "base/atomic_file.hpp"
#include "base/error.hpp"
#include "base/text.hpp"
#include "cli/network_text.hpp"
#include "cli/on_ranks.hpp"
#include "cli/options.hpp"
#include "cli/set_up_limit.hpp"
#include "comm/links/all_pairs.hpp"
#include "comm/links/tournament.hpp"
#include "comm/mpi/library.hpp"
#include "comm/mpi/world.hpp"
#include "job/agree.hpp"
#include "job/launch.hpp"
#include "job/shaped_network.hpp"

namespace echelon::cli {
namespace {

// Returns the error in the options, "" if there is none.
std::string fault_of(const BenchNetworkOptions& options) {
  if (!(options.seconds > 0 && options.seconds <= 10))
    return fmt::format("--seconds {}: must be above 0 and at most 10", options.seconds);
  if (!(options.limit_s >= 20 * options.seconds))
    return fmt::format("--limit {}: must be at least 20 times --seconds, {:g}", options.limit_s, 20 * options.seconds);
  return "";
}

// Throws on every rank alike.
void check(const BenchNetworkOptions& options, int ranks) {
  if (ranks < 2)
    throw CommonError(kExitConfig,
                      "bench network measures links between ranks: start it on at least 2, as in 'mpirun -n 4 echelon "
                      "bench network'");
  if (const std::string fault = fault_of(options); !fault.empty()) throw CommonError(kExitConfig, fault);
  try {
    if (!options.network.rate.empty()) (void)shape_of(options.network, "--shaped");
  } catch (const ConfigError& error) {
    throw CommonError(kExitConfig, error.what());
  }
}

// Runs on rank 0; returns the exit code.
int print(AllPairs& all, const BenchNetworkOptions& options) {
  all.links.date = now_utc_text();
  const LinkFaults faults = find_link_faults(all.links, all.silent);
  const std::string json = link_matrix_json(all.links);
  if (options.json)
    std::fputs(json.c_str(), stdout);
  else
    fmt::print("{}\n{}{}\n{}", where_text(all.links), chosen_transports_text(), crowd_text(all.links),
               network_text(all.links, faults));
  if (!options.out.empty()) write_file_whole(options.out, json);
  if (!options.figure.empty()) write_file_whole(options.figure, network_figure(all.links));
  std::fflush(stdout);
  return faults.blocked.empty() ? kExitOk : kExitUnmet;
}

// Adds the rates under load, if there are several hosts and no link is blocked. Only rank 0 knows whether one is: it
// tells the other hosts by not beginning, and aborts at the end.
void measure_load(Transport& transport, AllPairs& all, const BenchNetworkOptions& options) {
  const LinkMatrix hosts = LinkMatrix::of(transport.host_names(), transport.hosts());
  const std::vector<int> leaders = hosts.leaders();
  if (leaders.size() < 2 || std::find(leaders.begin(), leaders.end(), transport.rank()) == leaders.end()) return;
  if (transport.rank() == 0 && !all.complete) return;
  const double bytes_per_s = transport.rank() == 0 ? network_of(all.links).between.bytes_per_s : 1;
  all.links.loaded = measure_loaded_links(
      transport, leaders, {.seconds = options.seconds, .bytes_per_s = bytes_per_s, .limit_s = options.limit_s});
}

// `limit`: guards the steps before links are measured.
int run_in(MpiWorld& world, const BenchNetworkOptions& options, std::optional<SetUpLimit>& limit) {
  check(options, world.size());
  const std::unique_ptr<Transport> transport = with_network(world.transport(), options.network);
  limit.reset();
  AllPairs all = measure_all_pairs(*transport, {options.seconds, options.limit_s, interface_here(*transport)});
  measure_load(*transport, all, options);
  const int code = transport->rank() == 0 ? print(all, options) : kExitOk;
  // A blocked link would hang MPI_Finalize too.
  if (transport->rank() == 0 && !all.complete) MpiWorld::abort(code == kExitOk ? kExitUnmet : code);
  return code;
}

}  // namespace

int run_bench_network(const BenchNetworkOptions& options) {
  prepare_process();
  std::optional<SetUpLimit> limit;
  MpiWorld world([&](int rank) {
    // Invalid options set no limit.
    if (fault_of(options).empty()) limit.emplace(rank, 2 * options.limit_s);
  });
  return ending_world(world, [&] { return run_in(world, options, limit); });
}

}  // namespace echelon::cli
