// SPDX-License-Identifier: Apache-2.0
#include "run/survivors.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.hpp"

namespace echelon::inline run {
namespace {

using Crews = std::vector<std::unique_ptr<Crew>>;

// Adds the ranks of `crew` that were newly lost to those of `own`, an earlier crew.
void add_lost(const Crew& own, const Crew& crew, const std::vector<int>& newly, std::vector<int>& lost) {
  for (int rank = 0; rank < own.size(); ++rank)
    for (const int gone : newly)
      if (own.in_launch(rank) == crew.in_launch(gone) && std::find(lost.begin(), lost.end(), rank) == lost.end())
        lost.push_back(rank);
  std::sort(lost.begin(), lost.end());
}

// Later attempts resume from what was saved, also if the first one was to begin anew.
AttemptOptions options_for(const AttemptOptions& given, Crew& crew, const std::vector<std::string>& lost, bool saved,
                           const std::optional<HandedOver>& before) {
  AttemptOptions options = given;
  options.before = before;
  options.crew = &crew;
  options.lost = lost;
  options.load_config = [load = given.load_config, some_lost = !lost.empty(), saved](std::vector<std::string>& notes) {
    Config config = load(notes);
    config.batch.nearly_equal = config.exchange.fewer_workers = some_lost;
    if (saved) config.run.restart = Restart::automatic;
    return config;
  };
  return options;
}

// Hands the attempt over to the remaining ranks, of which more may be lost meanwhile. Returns 0 if the last of `crews`
// goes on.
int hand_over(Attempt& attempt, Crews& crews, std::vector<int>& lost) {
  const Crew& own = *crews.front();
  std::vector<int> newly = lost = attempt.loss()->lost;
  for (;;) {
    crews.push_back(crews.back()->without(newly));
    Crew& left = *crews.back();
    set_thread_rank(left.engine().rank());
    try {
      return attempt.hand_over(left, lost);
    } catch (const LostRankError& again) {
      newly = again.lost;
      add_lost(own, left, newly, lost);
      if (!again.goes_on) return attempt.fail({lost, false, again.what()});
    }
  }
}

}  // namespace

int run_with_survivors(std::shared_ptr<Transport> launch, const AttemptOptions& options,
                       const std::function<void()>& on_loss) {
  Crews crews;  // that of the attempt, and those that it is handed over to
  crews.push_back(std::make_unique<Crew>(std::move(launch)));
  std::vector<std::string> lost_names;
  std::optional<HandedOver> before;
  bool saved = false;
  for (;;) {
    auto attempt = std::make_unique<Attempt>(crews.front()->engine(),
                                             options_for(options, *crews.front(), lost_names, saved, before));
    int code = attempt->run();
    std::vector<int> lost;
    if (attempt->loss()) {
      on_loss();
      code = hand_over(*attempt, crews, lost);
    }
    if (lost.empty() || code != kExitOk) {
      crews.back()->leave();
      return code;
    }
    for (const int rank : lost)
      lost_names.push_back(fmt::format("{}, at step {}", crews.front()->name(rank), attempt->last_step()));
    saved |= attempt->saved();
    before = attempt->handed_over();
    const bool quiet = crews.back()->let_messages_end();
    if (!quiet) {  // what they hold may still be written to
      (void)attempt.release();
      for (std::size_t crew = 0; crew + 1 < crews.size(); ++crew) (void)crews[crew].release();
    }
    attempt.reset();
    crews.erase(crews.begin(), crews.end() - 1);
  }
}

}  // namespace echelon::inline run
