// Settings of Open MPI's TCP transport for the messages of an exchange, by its own variables (OMPI_MCA_..), which MPI
// reads as it starts; what the user has set stays.
//
//   btl_tcp_eager_limit  320 KiB: a segment (exchange.segment_kb, 256 KiB) leaves at once. Else its announcement and
//                        the answer wait behind the data of other segments in both directions.
//   btl_tcp_sndbuf       what the kernel takes of a connection: 64 KiB for cards up to 1 Gbit/s, 128 KiB up to
//                        10 Gbit/s; above, and where the rate is not known, the kernel decides. Else megabytes queue
//                        before a slow card, and every acknowledgement waits behind them.
//
// Measured over 2 and 4 hosts at 100 Mbit/s and 1 Gbit/s: rings from 0.83 .. 0.92 of the bound to 0.95 .. 0.96, of
// which a frame's headers leave 0.956 (results/exchange.md).
#pragma once

#include <string>

namespace echelon::inline comm {

inline constexpr int kEagerBytes = 320 << 10;

// Before MPI is started.
void set_tcp_defaults();

// Bytes of btl_tcp_sndbuf for a card of so many Mbit/s; 0: the kernel's choice.
int send_buffer_bytes(int card_mbit_per_s);
// The fastest card that is up, bridges and the loop-back left out, by the text files below `folder`; -1: not known.
int card_mbit_per_s(const std::string& folder = "/sys/class/net");

}  // namespace echelon::inline comm
