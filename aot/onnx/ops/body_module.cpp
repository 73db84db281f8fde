#include "aot/onnx/ops/body_module.hpp"

#include <algorithm>

namespace kiln::onnx_import {

void capture(node& n, const ::onnx::GraphProto& body, captures& into) {
  for (const auto& name : outer_names(body)) {
    value v = n.owner.find(name);
    const compound* c = v ? find_compound(n.owner.state(), v) : nullptr;
    const bool is_sequence = c && (c->stacked || c->joined);
    const std::optional<compound> sequence = is_sequence ? std::optional(*c) : std::nullopt;
    if (is_sequence) v = sequence->stacked ? sequence->stacked : sequence->joined;
    // Skip unknown names; the node that uses the name reports the error.
    if (!v || (module::constant(v) && !is_sequence) || std::ranges::find(into.names, name) != into.names.end())
      continue;
    into.names.push_back(name);
    into.values.push_back(v);
    into.sequences.push_back(sequence);
  }
}

value with_rank_of(builder& b, value v, const shape& wanted) {
  const auto is_single = [](const shape& type) {
    return std::ranges::all_of(type.dims, [](const dim& size) { return size == dim(1); });
  };
  const shape& type = v.type();
  const bool differs = type.type == wanted.type && type.rank() != wanted.rank() && is_single(type) && is_single(wanted);
  return differs ? b.with_dims(v, wanted.dims) : v;
}

std::vector<std::string> numbered(std::size_t count) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < count; ++i) names.push_back(std::to_string(i));
  return names;
}

std::vector<value> all_outputs(value first, std::size_t count) {
  std::vector<value> results;
  for (std::size_t i = 0; i < count; ++i) results.push_back(builder::output(first, static_cast<std::uint32_t>(i)));
  return results;
}

}  // namespace kiln::onnx_import
