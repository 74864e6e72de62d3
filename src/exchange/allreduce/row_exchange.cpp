// SPDX-License-Identifier: Apache-2.0
#include "exchange/allreduce/row_exchange.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <numeric>

#include "base/check.hpp"
#include "base/text.hpp"

namespace echelon::inline exchange {
namespace {

constexpr int kCountsChannel = 0, kIdsChannel = 1, kValuesChannel = 2, kFirstTableChannel = 3;

// to[i] += from[i]
void add(DType dtype, std::byte* to, const std::byte* from, std::int64_t n) {
  with_float(dtype, [&]<class T>(T) {
    auto* sum = reinterpret_cast<T*>(to);
    const auto* term = reinterpret_cast<const T*>(from);
    for (std::int64_t i = 0; i < n; ++i) sum[i] += term[i];
  });
}

}  // namespace

RowExchange::RowExchange(RowRequest request, const StrategyContext& context, Staging& staging, int first_channel)
    : request_(std::move(request)), context_(context), staging_(staging), first_channel_(first_channel) {
  Arenas& arenas = context_.arenas;
  if (!arenas.tracks_rows()) return;
  for (int i = 0; i < arenas.parameters().size(); ++i) {
    const Parameter& p = arenas.parameters()[i];
    if (!p.sparse) continue;
    Table table;
    table.parameter = i;
    table.gradient = ReadyCount({p.begin, p.end()});
    table.marks = arenas.row_marks(i);
    if (!arenas.device().on_host())
      table.host_words = arenas.device().allocate_host(static_cast<std::size_t>(row_words(p.shape[0])) * 4);
    table.words = arenas.device().on_host() ? table.marks.words : static_cast<std::uint32_t*>(table.host_words.data());
    table.most_rows = densest_rows(request_, p) * static_cast<double>(ranks()) * static_cast<double>(p.shape[0]);
    table.row_bytes = rows_bytes(request_, p, 1);
    table.whole_bytes = whole_bytes(request_, p);
    AllreduceRequest whole = request_.allreduce;
    whole.elems = p.elems();
    table.table_plan = make_allreduce(request_.algorithm, whole);
    whole.elems = p.shape[0];
    if (request_.lazy) {
      table.marks_plan = make_allreduce(request_.algorithm, whole);
      table.column.resize(static_cast<std::size_t>(p.shape[0]) * elem_bytes());
    }
    ranges_.push_back({p.begin, p.end()});
    tables_.push_back(std::move(table));
  }
  counts_.resize(tables_.size() * static_cast<std::size_t>(ranks()));
  counts_plan_ = make_allgather(rank(), ranks(), static_cast<std::int64_t>(tables_.size() * sizeof(std::int64_t)));
}

void RowExchange::begin_step() {
  for (Table& table : tables_) table.gradient.reset();
  fetched_.clear();
}

void RowExchange::ready(ArenaRange done, std::int64_t step) {
  for (std::size_t t = 0; t < tables_.size(); ++t) {
    Table& table = tables_[t];
    if (!table.gradient.add(done, step) || ranks() == 1 || !table.host_words.data()) continue;
    context_.arenas.device().to_host_async(table.words, table.marks.words, table.host_words.bytes());
    fetched_.push_back(staging_.fetch(ranges_[t]));
  }
}

bool RowExchange::holds(ArenaRange range) const {
  return std::any_of(ranges_.begin(), ranges_.end(),
                     [&](ArenaRange table) { return table.begin < range.end && range.begin < table.end; });
}

bool RowExchange::all_ready() const {
  return std::all_of(tables_.begin(), tables_.end(), [](const Table& table) { return table.gradient.complete(); });
}

void RowExchange::launch() {
  if (empty() || ranks() == 1) return;
  tickets_.clear();
  list_rows();
  gather_counts();
  choose_ways();
  send_rows();
  for (std::size_t t = 0; t < tables_.size(); ++t)
    if (tables_[t].whole) send_whole(t);
  ++steps_;
}

std::int64_t RowExchange::count(int of_rank, std::size_t table) const {
  return counts_[static_cast<std::size_t>(of_rank) * tables_.size() + table];
}

void RowExchange::list_rows() {
  for (const auto& event : fetched_) event->wait();
  for (std::size_t t = 0; t < tables_.size(); ++t) {
    Table& table = tables_[t];
    table.rows.clear();
    for_each_run(table.words, table.marks.rows, [&](std::int64_t first, std::int64_t n) {
      for (std::int64_t row = first; row < first + n; ++row) table.rows.push_back(static_cast<std::uint32_t>(row));
    });
    counts_[static_cast<std::size_t>(rank()) * tables_.size() + t] = static_cast<std::int64_t>(table.rows.size());
  }
}

void RowExchange::gather_counts() {
  submit(counts_plan_, counts_.data(), DType::u8, kCountsChannel);
  tickets_.back().wait();
  const auto block = static_cast<std::int64_t>(tables_.size() * sizeof(std::int64_t));
  formula_bytes_ += static_cast<double>(price_allgather(ranks(), block).payload_elems);
}

// All ranks have the same numbers, so that all choose the same way.
void RowExchange::choose_ways() {
  for (std::size_t t = 0; t < tables_.size(); ++t) {
    std::int64_t rows = 0;
    for (int r = 0; r < ranks(); ++r) rows += count(r, t);
    Table& table = tables_[t];
    table.whole = static_cast<double>(rows) > table.most_rows;
    formula_bytes_ += table.whole ? table.whole_bytes : static_cast<double>(rows) * table.row_bytes;
  }
}

void RowExchange::submit(std::shared_ptr<const Plan> plan, void* data, DType dtype, int channel) {
  Job job;
  job.plan = std::move(plan);
  job.data = data;
  job.dtype = dtype;
  job.channel = first_channel_ + channel;
  tickets_.push_back(context_.engine.submit(std::move(job)));  // priority 0: the next forward begins with tables
}

// Sends the rows of all tables that are not sent whole. The buffer has one block per rank; the own block is filled in.
void RowExchange::send_rows() {
  std::vector<std::int64_t> ids(static_cast<std::size_t>(ranks())), values(ids.size());
  for (int r = 0; r < ranks(); ++r)
    for (std::size_t t = 0; t < tables_.size(); ++t) {
      if (tables_[t].whole) continue;
      ids[static_cast<std::size_t>(r)] += count(r, t);
      values[static_cast<std::size_t>(r)] += count(r, t) * tables_[t].marks.width;
    }
  const auto own = ids.begin() + rank();
  const auto own_values = values.begin() + rank();
  ids_.resize(static_cast<std::size_t>(std::accumulate(ids.begin(), ids.end(), std::int64_t{0})));
  values_.resize(static_cast<std::size_t>(std::accumulate(values.begin(), values.end(), std::int64_t{0})) *
                 elem_bytes());
  std::uint32_t* id = ids_.data() + std::accumulate(ids.begin(), own, std::int64_t{0});
  std::byte* value =
      values_.data() +
      static_cast<std::size_t>(std::accumulate(values.begin(), own_values, std::int64_t{0})) * elem_bytes();
  for (std::size_t t = 0; t < tables_.size(); ++t) {
    const Table& table = tables_[t];
    if (table.whole) continue;
    const std::size_t row_bytes = static_cast<std::size_t>(table.marks.width) * elem_bytes();
    const auto* gradient = static_cast<const std::byte*>(staging_.at(ranges_[t].begin));
    for (const std::uint32_t row : table.rows) {
      *id++ = row;
      std::memcpy(value, gradient + row * row_bytes, row_bytes);
      value += row_bytes;
    }
  }
  submit(make_allgather_blocks(rank(), ids), ids_.data(), DType::i32, kIdsChannel);
  submit(make_allgather_blocks(rank(), values), values_.data(), request_.dtype, kValuesChannel);
}

void RowExchange::send_whole(std::size_t t) {
  Table& table = tables_[t];
  const int channel = kFirstTableChannel + 2 * static_cast<int>(t);
  submit(table.table_plan, staging_.at(ranges_[t].begin), request_.dtype, channel);
  if (!request_.lazy) return;
  std::fill(table.column.begin(), table.column.end(), std::byte{0});
  with_float(request_.dtype, [&]<class T>(T) {
    for (const std::uint32_t row : table.rows) reinterpret_cast<T*>(table.column.data())[row] = 1;
  });
  submit(table.marks_plan, table.column.data(), request_.dtype, channel + 1);
}

void RowExchange::settle(const std::function<void(const Ticket&)>& done) {
  if (empty() || ranks() == 1) return;
  for (const Ticket& ticket : tickets_) {
    ticket.wait();
    done(ticket);
  }
  add_rows();
  for (std::size_t t = 0; t < tables_.size(); ++t) {
    if (tables_[t].whole) mark_sum(tables_[t]);
    staging_.store(ranges_[t]);
    if (tables_[t].host_words.data())
      context_.arenas.device().to_device(tables_[t].marks.words, tables_[t].words, tables_[t].host_words.bytes());
  }
}

// Own rows are zeroed and added again in their turn, so that every rank adds in the same order.
void RowExchange::add_rows() {
  for (std::size_t t = 0; t < tables_.size(); ++t) {
    if (tables_[t].whole) continue;
    const std::size_t row_bytes = static_cast<std::size_t>(tables_[t].marks.width) * elem_bytes();
    auto* gradient = static_cast<std::byte*>(staging_.at(ranges_[t].begin));
    for (const std::uint32_t row : tables_[t].rows) std::memset(gradient + row * row_bytes, 0, row_bytes);
  }
  const std::uint32_t* id = ids_.data();
  const std::byte* value = values_.data();
  for (int r = 0; r < ranks(); ++r)
    for (std::size_t t = 0; t < tables_.size(); ++t) {
      const Table& table = tables_[t];
      if (table.whole) continue;
      const std::size_t row_bytes = static_cast<std::size_t>(table.marks.width) * elem_bytes();
      auto* gradient = static_cast<std::byte*>(staging_.at(ranges_[t].begin));
      for (std::int64_t i = 0; i < count(r, t); ++i, ++id, value += row_bytes) {
        ECHELON_CHECK_LT(static_cast<std::int64_t>(*id), table.marks.rows, "a row of rank {}", r);
        add(request_.dtype, gradient + *id * row_bytes, value, table.marks.width);
        mark_row(table.words, *id);
      }
    }
}

// Marks the rows of a table that was summed whole: with a lazy optimiser the rows that any rank touched, else all.
void RowExchange::mark_sum(Table& table) {
  const auto words = static_cast<std::size_t>(row_words(table.marks.rows));
  std::fill_n(table.words, words, request_.lazy ? 0U : ~0U);
  if (!request_.lazy) return;
  with_float(request_.dtype, [&]<class T>(T) {
    const auto* ranks_of_row = reinterpret_cast<const T*>(table.column.data());
    for (std::int64_t row = 0; row < table.marks.rows; ++row)
      if (ranks_of_row[row] > 0) mark_row(table.words, row);
  });
}

double RowExchange::formula_bytes_per_step() const {
  return steps_ == 0 ? 0 : formula_bytes_ / static_cast<double>(steps_);
}

std::string RowExchange::describe() const {
  double bytes = 0;
  std::string limits;
  for (std::size_t t = 0; t < tables_.size(); ++t) {
    bytes += static_cast<double>(ranges_[t].elems()) * static_cast<double>(elem_bytes());
    limits += fmt::format("{}{:.0f}", t == 0 ? "" : ", ", 100 * densest_rows(request_, parameter(tables_[t])));
  }
  return fmt::format("touched rows of {} table{} ({}), whole above {} % of rows", tables_.size(),
                     tables_.size() == 1 ? "" : "s", bytes_text(bytes), limits);
}

}  // namespace echelon::inline exchange
