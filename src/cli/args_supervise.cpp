// SPDX-License-Identifier: Apache-2.0
// The options of `echelon supervise`.
#include "cli/args_declare.hpp"
#include "cli/options.hpp"

namespace echelon::cli {

Run declare_supervise(CLI::App& app) {
  auto o = held<SuperviseOptions>();
  app.add_option("command", o->command,
                 "after --: the launcher with its program; {hosts} {slots} {nodes} {ranks} in it are replaced")
      ->type_name("-- COMMAND")
      ->required();
  app.add_option("--restarts", o->restarts, "number of restarts after lost ranks (exit 7); a run resumes by itself")
      ->check(CLI::Range(0, 1'000'000))
      ->capture_default_str();
  app.add_option("--hosts", o->hosts, "start on hosts that answer, and on all once they are back")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->type_name("HOST,..");
  app.add_option("--per-host", o->per_host, "ranks on a host")->check(CLI::Range(1, 4096))->capture_default_str();
  app.add_option("--min-hosts", o->min_hosts, "minimum number of hosts; default 1");
  app.add_option("--probe", o->probe, "command that exits with 0 if {host} answers")->capture_default_str();
  app.add_option("--look", o->look_s, "interval of checks for lost hosts in seconds")
      ->check(number_in(0.1, 1e6))
      ->capture_default_str();
  app.add_option("--grace", o->grace_s, "seconds in which the launcher must return once the run has ended")
      ->check(number_in(0.1, 1e6))
      ->capture_default_str();
  return [o] { return run_supervised(*o); };
}

}  // namespace echelon::cli
