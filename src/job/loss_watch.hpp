// SPDX-License-Identifier: Apache-2.0
// Lets the remaining ranks of a run agree on which ranks are lost, before anything breaks (run.on_lost_worker =
// "continue"). A state machine beside the exchange: the engine's thread answers whatever compute threads do.
//
// Beats. Each rank sends a few bytes to its successor in a ring every interval_s(). A predecessor that is silent for
// timeout_s is lost. So is a rank of this host whose process is gone: the machine's host posts its number.
//
// Agreement. A rank that learns of a loss sends its set of lost ranks to the lowest rank outside the set, the leader.
// The leader asks all others for their sets, waits for grace_s(), adds the ranks that did not answer, and sends the
// verdict to all. Each rank forwards the first verdict that it gets to all others. A leader that is silent for
// grace_s() is lost too, and the next one takes its place.
//
// A rank that was stopped and comes back must not act on its old beliefs. Its clock stands still while it does not
// run, and a leader then asks again and waits twice as long, within which the verdict of the others reaches it. If
// messages between running ranks take less than about a third of grace_s(), all ranks that continue have the same
// verdict.
//
// Ranks must not continue by the verdict of fewer ranks than those of unknown fate, because the others may be alive
// behind a broken network. The fate of a rank is known if its process is gone, or if a living rank of its host can kill
// it. Of two equal halves the one with the lowest rank continues.
//
// Cost: 4 bytes per rank and interval; k (k + 1) messages of k bytes per agreement.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "comm/part_transport.hpp"
#include "comm/protocol/machine.hpp"

namespace echelon::inline job {

class LossWatch final : public Machine {
 public:
  static constexpr int kTag = kTagsOfPart - 2;
  static constexpr Token kDecided = 0;  // notifies the host of a decision, once

  struct Verdict {
    std::vector<int> lost;  // ascending; contains this rank if the others have given it up
    bool goes_on = true;    // false: the fate of too many ranks is unknown
  };

  // `hosts` as in Transport::hosts: one entry per rank.
  LossWatch(int rank, std::vector<int> hosts, double timeout_s);

  double interval_s() const;
  double grace_s() const { return kGraceIntervals * interval_s(); }
  // The token of a post is the number of a rank whose process is gone.
  void on(const ProtocolEvent& event, ProtocolActions& actions) override;
  // Valid from kDecided on.
  const Verdict& verdict() const { return verdict_; }

 private:
  static constexpr double kGraceIntervals = 5;
  enum class Kind : std::uint8_t { beat, knows, asks, verdict, verdict_of_few };
  enum class Fate : std::uint8_t { lives, silent, gone };
  enum class Phase : std::uint8_t { calm, following, leading, decided, over };
  // The kind. All kinds except beats are followed by the number of the question that is asked or answered (0: none) and
  // a fate for each rank.
  using Message = std::vector<std::byte>;
  static constexpr std::size_t kHeader = 2;

  int ranks() const { return static_cast<int>(fates_.size()); }
  bool lives(int rank) const { return fates_[static_cast<std::size_t>(rank)] == Fate::lives; }
  int lowest_living() const;
  void tick(double now_s);
  void received(int from, std::size_t bytes);
  bool merge(const Message& message);
  void lose(int rank, Fate fate);
  void follow_or_lead();
  void lead();
  void conclude_if_all_answered();
  void conclude();
  bool may_go_on() const;
  void decide(bool goes_on);
  void settle();
  void send(int peer, Kind kind, std::byte question = {});
  void beat();
  void send_to_others(Kind kind, bool living_alone);

  const int rank_;
  const std::vector<int> hosts_;
  const double timeout_s_;
  std::vector<Fate> fates_;
  Phase phase_ = Phase::calm;
  double tick_s_ = 0;        // transport's clock at the last tick
  double awake_s_ = 0;       // time during which this rank was running
  double heard_s_ = 0;       // when the predecessor was last heard, in awake time
  double phase_ends_s_ = 0;  // in awake time
  std::vector<char> answered_;
  std::byte question_{};  // number of the last question, 1 .. 255
  int ticks_left_ = 0;    // once decided: ticks left for the messages to be sent
  Message in_;
  std::map<Token, Message> out_;
  Token next_send_ = 0, beat_ = 0;  // beat_: the newest beat sent
  Verdict verdict_;
  ProtocolActions* actions_ = nullptr;  // valid during an event
};

}  // namespace echelon::inline job
