// SPDX-License-Identifier: Apache-2.0
// Settings of Open MPI's TCP transport for the messages of an exchange, made through its environment variables
// (OMPI_MCA_..), which MPI reads at its start; variables that the user has set are kept.
//
//   btl_tcp_eager_limit  320 KiB, so that a segment (exchange.segment_kb, 256 KiB) leaves at once. Otherwise its
//                        announcement and the answer wait behind the data of other segments in both directions.
//   btl_tcp_sndbuf       send buffer of the kernel per connection: 64 KiB for cards up to 1 Gbit/s, 128 KiB up to
//                        10 Gbit/s; above, or if the rate is not known, the kernel decides. Otherwise megabytes queue
//                        before a slow card, and every acknowledgement waits behind them.
//
// Measured with 2 and 4 hosts at 100 Mbit/s and 1 Gbit/s: rings improve from 0.83 .. 0.92 of the bound to 0.95 .. 0.96;
// frame headers alone limit them to 0.956 (results/exchange.md).
#pragma once

#include <string>

namespace echelon::inline comm {

inline constexpr int kEagerBytes = 320 << 10;

// Must be called before MPI is started.
void set_tcp_defaults();

// The value of btl_tcp_sndbuf in bytes for a card of `card_mbit_per_s`; 0: the kernel decides.
int send_buffer_bytes(int card_mbit_per_s);
// The rate of the fastest card that is up, bridges and the loopback excluded, read from the text files below `folder`;
// -1: not known.
int card_mbit_per_s(const std::string& folder = "/sys/class/net");

}  // namespace echelon::inline comm
