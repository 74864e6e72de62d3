// SPDX-License-Identifier: Apache-2.0
// Exchanges sparse gradients: the rows that each replica touched instead of whole tables.
//
// Once the gradients of all sparse parameters are ready, `launch`
//   1. gathers the number of touched rows per table and rank (an all-gather of 8 bytes each);
//   2. decides for each table whether to send rows or the whole table (exchange/allreduce/row_price.hpp), by these
//      numbers, which are the same on all ranks;
//   3. gathers the row numbers (u32) and the rows of all ranks, in two all-gathers of unequal blocks for all tables
//      sent as rows together, and starts an all-reduce for each table sent whole.
// `settle` waits, zeroes the tables sent as rows, and adds the rows of all ranks in the order of ranks, so that every
// rank gets the same bits. The marks are then those of all replicas' rows.
//
// If the host cannot address device memory, whole tables are staged: the copy over PCIe is dense, the messages are not.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "exchange/allreduce/row_price.hpp"
#include "exchange/staging.hpp"
#include "exchange/step_account.hpp"
#include "exchange/strategy.hpp"

namespace echelon::inline exchange {

class RowExchange {
 public:
  // Uses the channels from `first_channel` on. It is `empty` if there are no sparse parameters with tracked rows. A
  // single rank sends nothing.
  RowExchange(RowRequest request, const StrategyContext& context, Staging& staging, int first_channel);

  bool empty() const { return tables_.empty(); }
  void begin_step();
  // Notes that gradients of sparse parameters in the range are final, and starts to fetch complete tables from the
  // device.
  void ready(ArenaRange done, std::int64_t step);
  bool all_ready() const;
  // Whether a sparse parameter overlaps the range.
  bool holds(ArenaRange range) const;
  // Blocks until all ranks have announced their numbers of rows.
  void launch();
  // Blocks until the rows have arrived; the gradients of the tables are then sums over ranks. Calls `done` with every
  // ticket after its wait.
  void settle(const std::function<void(const Ticket&)>& done);
  const std::vector<ArenaRange>& ranges() const { return ranges_; }

  // The mean over the steps so far.
  double formula_bytes_per_step() const;
  // Returns for instance "touched rows of 2 tables (6.87 MiB), whole above 40 % of rows".
  std::string describe() const;

 private:
  struct Table {
    int parameter = 0;
    RowMarks marks;                  // in device memory
    std::uint32_t* words = nullptr;  // the same marks in host memory
    Memory host_words;               // empty if the host can address the device's marks
    ReadyCount gradient;
    std::vector<std::uint32_t> rows;        // touched by this rank in this step
    bool whole = false;                     // this step sends the whole table
    double most_rows = 0;                   // above this number of rows over all ranks the table is sent whole
    double row_bytes = 0, whole_bytes = 0;  // bytes that all ranks send by formula
    std::shared_ptr<const Plan> table_plan, marks_plan;  // for a table sent whole
    std::vector<std::byte> column;  // marks as numbers of the gradient's dtype, which are summed too
  };

  const Parameter& parameter(const Table& table) const { return context_.arenas.parameters()[table.parameter]; }
  ArenaRange range(const Table& table) const { return {parameter(table).begin, parameter(table).end()}; }
  std::size_t elem_bytes() const { return size_of(request_.dtype); }
  int ranks() const { return context_.engine.size(); }
  int rank() const { return context_.engine.rank(); }
  std::int64_t count(int rank, std::size_t table) const;

  void list_rows();
  void gather_counts();
  void choose_ways();
  void send_rows();
  void send_whole(std::size_t t);
  void add_rows();
  void mark_sum(Table& table);
  void submit(std::shared_ptr<const Plan> plan, void* data, DType dtype, int channel);

  RowRequest request_;
  StrategyContext context_;
  Staging& staging_;
  int first_channel_;
  std::vector<Table> tables_;
  std::vector<ArenaRange> ranges_;
  std::vector<std::shared_ptr<const Event>> fetched_;
  std::vector<std::int64_t> counts_;  // by rank, then table
  std::shared_ptr<const Plan> counts_plan_;
  std::vector<std::uint32_t> ids_;  // rows of all ranks, in each rank's block by table
  std::vector<std::byte> values_;   // the values of these rows
  std::vector<Ticket> tickets_;
  double formula_bytes_ = 0;
  std::int64_t steps_ = 0;
};

}  // namespace echelon::inline exchange
