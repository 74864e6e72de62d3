// The options of `echelon supervise`.
#include "cli/args_declare.hpp"
#include "cli/options.hpp"

namespace echelon::cli {

Run declare_supervise(CLI::App& app) {
  auto o = held<SuperviseOptions>();
  app.add_option("command", o->command,
                 "behind --: the launcher with its program; {hosts} {slots} {nodes} {ranks} in it")
      ->type_name("-- COMMAND")
      ->required();
  app.add_option("--restarts", o->restarts, "starts again so often after lost ranks (exit 7); a run resumes by itself")
      ->check(CLI::Range(0, 1'000'000))
      ->capture_default_str();
  app.add_option("--hosts", o->hosts, "start on those that answer, and on all once they are back")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->type_name("HOST,..");
  app.add_option("--per-host", o->per_host, "ranks on a host")->check(CLI::Range(1, 4096))->capture_default_str();
  app.add_option("--min-hosts", o->min_hosts, "fewer are not started on; default 1");
  app.add_option("--probe", o->probe, "ends with 0 where {host} answers")->capture_default_str();
  app.add_option("--look", o->look_s, "seconds between two looks for lost hosts")
      ->check(number_in(0.1, 1e6))
      ->capture_default_str();
  app.add_option("--grace", o->grace_s, "seconds in which the launcher must return once the run has ended")
      ->check(number_in(0.1, 1e6))
      ->capture_default_str();
  return [o] { return run_supervised(*o); };
}

}  // namespace echelon::cli
