// Which ranks of a run are lost, agreed on by all that are left, before anything breaks (run.on_lost_worker =
// "continue"). A state machine beside the exchange: the engine's thread answers whatever the compute threads do.
//
// Beats. Each rank sends a few bytes to its successor in a ring every interval_s(); a predecessor that is silent for
// timeout_s is lost. So is a rank of this host whose process is gone: the host of the machine posts its number.
//
// Agreement. A rank that learns of a loss sends its set of lost ranks to the lowest rank outside the set, the leader.
// The leader asks all others for their sets, waits for grace_s(), adds the ranks that did not answer, and sends the
// verdict to all; each rank that gets it first sends it on to all others. A leader that is silent for grace_s() is lost
// too, and the next one takes its place.
//
// A rank that was stopped and comes back must not act on what it believed before: its clock stands still while it does
// not run, a leader asks again, and waits twice as long, within which the verdict of the others reaches it.
// Provided that messages between running ranks take less than about a third of grace_s(), all ranks that go on have the
// same verdict.
//
// A verdict by fewer ranks than those of unknown fate is none to go on with, because the others may live behind a
// broken network: ranks are of known fate where their process is gone, or a living rank of their host can kill it. Of
// two equal halves the one with the lowest rank goes on.
//
// Cost: 4 bytes a rank and interval; k (k + 1) messages of k bytes in an agreement.
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
  static constexpr Token kDecided = 0;  // that the host is notified by, once

  struct Verdict {
    std::vector<int> lost;  // ascending; the own rank: the others have given it up
    bool goes_on = true;    // false: too many ranks are of unknown fate
  };

  // `hosts` as in Transport::hosts: one entry a rank.
  LossWatch(int rank, std::vector<int> hosts, double timeout_s);

  double interval_s() const;
  double grace_s() const { return kGraceIntervals * interval_s(); }
  // A post's token is the number of a rank whose process is gone.
  void on(const ProtocolEvent& event, ProtocolActions& actions) override;
  // From kDecided on.
  const Verdict& verdict() const { return verdict_; }

 private:
  static constexpr double kGraceIntervals = 5;
  enum class Kind : std::uint8_t { beat, knows, asks, verdict, verdict_of_few };
  enum class Fate : std::uint8_t { lives, silent, gone };
  enum class Phase : std::uint8_t { calm, following, leading, decided, over };
  // The kind; behind it, of all but beats, the number of the question that is asked or answered (0: none), and a fate
  // for each rank.
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
  double tick_s_ = 0;        // of the transport's clock, at the last tick
  double awake_s_ = 0;       // time in which this rank was running
  double heard_s_ = 0;       // of the predecessor, in awake time
  double phase_ends_s_ = 0;  // likewise
  std::vector<char> answered_;
  std::byte question_{};  // the last that was asked, 1 .. 255
  int ticks_left_ = 0;    // once decided, for the messages to leave
  Message in_;
  std::map<Token, Message> out_;
  Token next_send_ = 0, beat_ = 0;  // beat_: the newest that was sent
  Verdict verdict_;
  ProtocolActions* actions_ = nullptr;  // of the event under way
};

}  // namespace echelon::inline job
