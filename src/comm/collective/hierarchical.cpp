// SPDX-License-Identifier: Apache-2.0
#include "comm/collective/hierarchical.hpp"

#include <algorithm>

#include "base/check.hpp"
#include "base/error.hpp"
#include "base/nearest.hpp"
#include "comm/collective/halves.hpp"

namespace echelon::inline comm {
namespace {

struct Node {
  std::vector<int> ranks;
  Parts parts;  // by index in `ranks`
};

struct Layout {
  const Halves& inner;
  std::vector<Node> nodes;
  int owners = 1;
};

Layout layout_of(const AllreduceRequest& request) {
  Layout layout{.inner = halves_of(request.inner), .nodes = {}};
  for (int r = 0; r < request.ranks; ++r) {
    const auto host = static_cast<std::size_t>(request.hosts.empty() ? r : request.hosts[static_cast<std::size_t>(r)]);
    if (layout.nodes.size() <= host) layout.nodes.resize(host + 1);
    layout.nodes[host].ranks.push_back(r);
  }
  std::erase_if(layout.nodes, [](const Node& node) { return node.ranks.empty(); });
  layout.owners = request.ranks;
  for (const Node& node : layout.nodes)
    layout.owners = std::min(layout.owners, layout.inner.most_owners(static_cast<int>(node.ranks.size())));
  for (Node& node : layout.nodes)
    node.parts = layout.inner.parts(request.elems, static_cast<int>(node.ranks.size()), layout.owners);
  return layout;
}

int index_among(const std::vector<int>& ranks, int rank) {
  const auto at = std::find(ranks.begin(), ranks.end(), rank);
  return at == ranks.end() ? -1 : static_cast<int>(at - ranks.begin());
}

// The owners of a part, one on each host.
std::vector<int> owners_of(const Layout& layout, ElemRange part) {
  std::vector<int> ranks;
  for (const Node& node : layout.nodes) {
    const auto at = std::find(node.parts.begin(), node.parts.end(), part);
    ECHELON_CHECK(at != node.parts.end(), "a part without an owner");
    ranks.push_back(node.ranks[static_cast<std::size_t>(at - node.parts.begin())]);
  }
  return ranks;
}

AllreduceRequest across(const AllreduceRequest& request, const Layout& layout, ElemRange part) {
  return {.rank = 0,
          .ranks = static_cast<int>(layout.nodes.size()),
          .elems = part.elems(),
          .segment_elems = request.segment_elems,
          .hosts = {}};
}

void check_outer(const std::string& outer) {
  const std::vector<std::string> names = outer_names();
  if (std::find(names.begin(), names.end(), outer) == names.end())
    throw ConfigError(unknown_name("all-reduce between hosts", outer, names));
}

}  // namespace

std::vector<std::string> outer_names() {
  return names_where(kAlgorithms, [](const AlgorithmTraits& a) { return a.plain_plan(); });
}

std::shared_ptr<const Plan> make_hierarchical_allreduce(const AllreduceRequest& request) {
  check_outer(request.outer);
  PlanBuilder plan(request.segment_elems);
  const Layout layout = layout_of(request);
  const Node& here = *std::find_if(layout.nodes.begin(), layout.nodes.end(),
                                   [&](const Node& node) { return index_among(node.ranks, request.rank) >= 0; });
  if (request.elems == 0) return plan.finish("hierarchical");

  const Team inside{here.ranks, index_among(here.ranks, request.rank)};
  layout.inner.reduce(plan, inside, here.parts);
  const ElemRange mine = here.parts[static_cast<std::size_t>(inside.me)];
  if (!mine.empty()) {
    const std::vector<int> owners = owners_of(layout, mine);
    const Team between{owners, index_among(owners, request.rank)};
    AllreduceRequest outer = across(request, layout, mine);
    outer.rank = between.me;
    plan.embed(*make_allreduce(request.outer, outer), between, mine.begin);
  }
  layout.inner.gather(plan, inside, here.parts);
  return plan.finish("hierarchical");
}

// The sum of the parts' prices. Its steps are those of the longest reduce, all-reduce and gather, an upper bound for
// hosts of different sizes.
Price price_hierarchical(const AllreduceRequest& request) {
  check_outer(request.outer);
  const Layout layout = layout_of(request);
  Price price;
  int inside_steps = 0, outer_steps = 0;
  for (const Node& node : layout.nodes) {
    const auto ranks = static_cast<int>(node.ranks.size());
    price.messages += 2 * layout.inner.messages(node.parts, request.segment_elems);
    if (layout.inner.sends) price.payload_elems += 2 * (ranks - 1) * request.elems;
    inside_steps = std::max(inside_steps, layout.inner.steps(ranks));
  }
  for (const ElemRange part : layout.nodes.front().parts) {
    const Price outer = price_allreduce(request.outer, across(request, layout, part));
    price.messages += outer.messages;
    price.payload_elems += outer.payload_elems;
    outer_steps = std::max(outer_steps, outer.steps);
  }
  price.steps = 2 * inside_steps + outer_steps;
  return price;
}

}  // namespace echelon::inline comm
