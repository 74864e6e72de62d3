// SPDX-License-Identifier: Apache-2.0
#include "job/crew.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <numeric>

#include "base/check.hpp"
#include "base/clock.hpp"
#include "base/log.hpp"
#include "base/process.hpp"
#include "comm/collective/algorithms.hpp"
#include "comm/group.hpp"
#include "comm/part_transport.hpp"

namespace echelon::inline job {
namespace {

constexpr int kChannel = 0;
constexpr int kSpacesOfCrew = 16;  // number of groups that one crew's engine may be split into
constexpr double kLook_s = 0.2;

std::vector<int> all_ranks(const Transport& transport) {
  std::vector<int> all(static_cast<std::size_t>(transport.size()));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

}  // namespace

Crew::Crew(std::shared_ptr<Transport> launch) : Crew(launch, all_ranks(*launch), 0) {}

Crew::Crew(std::shared_ptr<Transport> launch, std::vector<int> members, int generation)
    : launch_(std::move(launch)),
      members_(std::move(members)),
      generation_(generation),
      engine_(std::make_unique<Engine>(make_part_transport(launch_, members_, generation * kSpacesOfCrew))) {}

Crew::~Crew() { stop_looking(); }

void Crew::stop_looking() {
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void Crew::leave(double limit_s) {
  stop_looking();
  attachment_.reset();
  std::vector<char> all(members_.size());
  const Ticket come = engine_->submit({.plan = make_allgather(engine_->rank(), size(), 1),
                                       .data = all.data(),
                                       .dtype = DType::u8,
                                       .channel = kChannel,
                                       .after = nullptr});
  for (const double until_s = now_s() + limit_s; !come.done() && now_s() < until_s;)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  if (come.done()) return;
  engine_->break_off(std::make_exception_ptr(LostRankError({}, false, "a rank did not reach the end")));
  engine_->settle();  // `all` may be used from here on
}

std::string Crew::name(int rank) const {
  const Transport& transport = engine_->transport();
  const int host = transport.hosts()[static_cast<std::size_t>(rank)];
  return fmt::format("rank {} on {}", in_launch(rank), transport.host_names()[static_cast<std::size_t>(host)]);
}

void Crew::watch(double timeout_s) {
  ECHELON_CHECK(!loss_watch_, "a crew is watched once");
  timeout_s_ = timeout_s;
  Group group(*engine_, kChannel);
  const std::string own = process_id_text();
  const std::vector<std::string> ids = group.gather(own);
  const std::vector<double> ticks = group.gather(static_cast<double>(start_ticks(own)));
  for (std::size_t rank = 0; rank < ids.size(); ++rank)
    if (is_near(ids[rank]))
      processes_.push_back(
          {.rank = static_cast<int>(rank), .id = ids[rank], .started_ticks = static_cast<std::uint64_t>(ticks[rank])});
  attach();
}

void Crew::attach() {
  loss_watch_.emplace(engine_->rank(), engine_->transport().hosts(), timeout_s_);
  attachment_ = engine_->attach(*loss_watch_, *this);
  thread_ = std::thread([this] { look(); });
}

std::unique_ptr<Crew> Crew::without(const std::vector<int>& lost) {
  engine_->settle();
  std::vector<int> members, rank_then(members_.size(), -1);
  for (int rank = 0; rank < size(); ++rank) {
    if (std::find(lost.begin(), lost.end(), rank) != lost.end()) continue;
    rank_then[static_cast<std::size_t>(rank)] = static_cast<int>(members.size());
    members.push_back(in_launch(rank));
  }
  std::vector<Process> processes;
  for (Process process : processes_) {
    process.rank = rank_then[static_cast<std::size_t>(process.rank)];
    if (process.rank >= 0) processes.push_back(std::move(process));
  }
  std::unique_ptr<Crew> left(new Crew(launch_, std::move(members), generation_ + 1));
  left->timeout_s_ = timeout_s_;
  left->processes_ = std::move(processes);
  left->attach();
  return left;
}

bool Crew::let_messages_end(double limit_s) {
  Group group(*engine_, kChannel);
  const double until_s = now_s() + std::min(limit_s, timeout_s_ / 2);  // the launch watch ends the process later
  try {
    for (double open = 1; open > 0;) {
      open = launch_->abandoned() > 0 && now_s() < until_s ? 1 : 0;
      group.sum({&open, 1});
    }
  } catch (const LostRankError&) {  // the next attempt will end with it
    return false;
  }
  return launch_->abandoned() == 0;
}

// Posts the end of each process only once.
void Crew::look() {
  std::vector<char> reported(processes_.size());
  std::unique_lock lock(mutex_);
  while (!wake_.wait_for(lock, std::chrono::duration<double>(kLook_s), [this] { return ended_; }))
    for (std::size_t i = 0; i < processes_.size(); ++i)
      if (!reported[i] && is_gone(processes_[i].id)) {
        reported[i] = 1;
        attachment_->post(static_cast<Token>(processes_[i].rank));
      }
}

void Crew::on_notified(Token, double) {
  const LossWatch::Verdict& verdict = loss_watch_->verdict();
  std::vector<std::string> names;
  for (const int rank : verdict.lost) {
    names.push_back(name(rank));
    if (rank != engine_->rank()) continue;
    log_error("the other ranks gave up on {}, which did not answer for {:.1f} s; it ends", name(rank), timeout_s_);
    flush_log();
    ::_exit(kExitLostRank);
  }
  for (const int rank : verdict.lost)
    for (const Process& process : processes_)
      if (process.rank == rank) kill_process(process.id, process.started_ticks);
  std::string text = fmt::format("{} {} lost", fmt::join(names, " and "), names.size() > 1 ? "were" : "was");
  if (!verdict.goes_on)
    text +=
        ", and more ranks are in an unknown state than are known to be alive: these may be the ones that were cut off";
  engine_->break_off(std::make_exception_ptr(LostRankError(verdict.lost, verdict.goes_on, text)));
}

// The engine stops by itself; errors of the network end the exchange too.
void Crew::failed(std::exception_ptr) {}

}  // namespace echelon::inline job
