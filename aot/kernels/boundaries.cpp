#include "aot/kernels/boundaries.hpp"

#include <algorithm>
#include <functional>
#include <set>

#include "aot/kernels/traits.hpp"
#include "ir/ops/all.hpp"

namespace kiln {
namespace {

double estimated_bytes(const shape& type) {
  return estimated_elements(type) * static_cast<double>(storage_bits(type.type)) / 8;
}

bool is_anchor(const instruction& at) { return role_of(at.op()) == kernel_role::anchor; }

// Calls `each` with every value in memory that the kernel of `member` reads, directly or through inlined operations and
// aliases.
void each_source(const partition& parts, const instruction& member, const std::function<void(value)>& each) {
  std::set<const instruction*> seen;
  std::function<void(value)> follow = [&](value v) {
    const bool inlined = role_of(v.producer->op()) == kernel_role::inlinable && !parts.owner.contains(v.producer);
    if (!inlined) return each(v);
    if (seen.insert(v.producer).second) std::ranges::for_each(v.producer->inputs(), follow);
  };
  std::ranges::for_each(member.inputs(), follow);
}

std::string_view reason_of(const module& m, value v, const instruction& reader, const instruction& anchor_or_first) {
  const instruction& writer = *v.producer;
  if (is_anchor(reader)) {
    for (std::size_t k = 0; k < reader.inputs().size(); ++k)
      if (reads_channels(reader, k) && reader.inputs()[k].producer->inputs()[0] == v)
        return "a kernel has one anchor; the reader reads some channels where they are, without a copy";
    if (is_anchor(anchor_or_first)) return "each of them is the anchor of a kernel, which has one";
    for (std::size_t k = 0; k < reader.inputs().size(); ++k)
      if (reader.inputs()[k] == v && operand_reads(reader.op(), k) == 0)
        return "the reader loads this operand from memory many times";
    if (is_contraction(reader.op()) && is_irregular(writer.op()))
      return "the inner loops of a contraction cannot read through concat, gather, pad or a transposed innermost axis";
    return "computing it again for each read would cost more than memory";
  }
  if (std::ranges::find(m.outputs(), v) != m.outputs().end()) return "the value is an output of the model";
  if (is_anchor(anchor_or_first)) {
    if (!takes_epilogue(anchor_or_first.op())) return "the writer's kernel takes no epilogue";
    if (!keeps_indices(reader.op())) return "an epilogue consists of elementwise operations";
    if (reader.outputs()[0].dims != anchor_or_first.outputs()[0].dims)
      return "an epilogue has the dims of its anchor's result";
    return "the reader has another anchor, its kernel is full, or the kernels would wait for each other";
  }
  return "several kernels read it, and computing it in each would cost more than memory";
}

}  // namespace

std::vector<kernel_boundary> find_boundaries(const module& m, const partition& parts) {
  std::vector<kernel_boundary> found;
  std::set<std::pair<value, std::size_t>> seen;
  for (std::size_t number = 0; number < parts.fusions.size(); ++number)
    for (const instruction* reader : parts.fusions[number].members)
      each_source(parts, *reader, [&](value v) {
        const auto owner = parts.owner.find(v.producer);
        if (owner == parts.owner.end() || owner->second == number || !seen.emplace(v, number).second) return;
        const instruction& first = *parts.fusions[owner->second].members.front();
        found.push_back({std::string(v.producer->op().name()), std::string(reader->op().name()), v.producer->origin(),
                         reader->origin(), reason_of(m, v, *reader, first), estimated_bytes(v.type())});
      });
  return found;
}

}  // namespace kiln
