// How sparse gradients travel: the rows that each replica touched, not whole tables.
//
// Once the gradients of all sparse parameters are there, `launch`
//   1. gathers the number of touched rows, by table and rank (an all-gather of 8 bytes each);
//   2. for each table decides from these numbers, which all ranks know: rows or whole
//   (exchange/allreduce/row_price.hpp);
//   3. rows: gathers row numbers (u32) and rows of all ranks, two all-gathers of unequal blocks for all such tables
//      together; whole: an all-reduce of the whole table.
// `settle` waits, and adds the rows of all ranks in the order of ranks to a table that was zeroed, so that every rank
// ends with the same bits. Marks are then those of all replicas' rows.
//
// Devices out of the host's reach stage whole tables: the copy over PCIe is dense, the wire is not.
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
  // Channels from `first_channel` on. Without sparse parameters whose rows are tracked there is nothing to do
  // (`empty`); one rank sends nothing.
  RowExchange(RowRequest request, const StrategyContext& context, Staging& staging, int first_channel);

  bool empty() const { return tables_.empty(); }
  void begin_step();
  // The part of a range of finished gradients that belongs to sparse parameters is noted, and fetched from the device.
  void ready(ArenaRange done, std::int64_t step);
  bool all_ready() const;
  // Whether a sparse parameter lies in the range.
  bool holds(ArenaRange range) const;
  // Blocks until all ranks have announced their numbers of rows.
  void launch();
  // Blocks until the rows are there; the gradients of the tables are then sums over ranks. `done` is called with every
  // ticket that was waited for.
  void settle(const std::function<void(const Ticket&)>& done);
  const std::vector<ArenaRange>& ranges() const { return ranges_; }

  // Mean over the steps so far.
  double formula_bytes_per_step() const;
  // "touched rows of 2 tables (6.87 MiB), whole above 40 % of rows"
  std::string describe() const;

 private:
  struct Table {
    int parameter = 0;
    RowMarks marks;                  // on the device
    std::uint32_t* words = nullptr;  // the same on the host
    Memory host_words;               // empty where the device's are within reach
    ReadyCount gradient;
    std::vector<std::uint32_t> rows;                     // of this rank in this step
    bool whole = false;                                  // in this step it travels whole
    double most_rows = 0;                                // of all ranks together; beyond, whole
    double row_bytes = 0, whole_bytes = 0;               // over all ranks by formula
    std::shared_ptr<const Plan> table_plan, marks_plan;  // whole
    std::vector<std::byte> column;                       // marks as numbers of the gradient's dtype, summed beside it
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
  std::vector<std::uint32_t> ids_;  // of all ranks, each rank's tables in order
  std::vector<std::byte> values_;   // likewise
  std::vector<Ticket> tickets_;
  double formula_bytes_ = 0;
  std::int64_t steps_ = 0;
};

}  // namespace echelon::inline exchange
