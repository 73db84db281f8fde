#include "ir/ops/attention.hpp"

#include <fmt/format.h>

#include "ir/ops/check.hpp"

namespace kiln {

std::vector<shape> attention::infer(std::span<const shape> inputs) const {
  detail::input_check check(name(), inputs);
  check.that(inputs.size() == 3 || inputs.size() == 4, "takes query, key, value and optionally a mask");
  const shape &query = inputs[0], &key = inputs[1], &value = inputs[2];
  std::size_t rank = query.rank(), batch = rank - 3;
  check.that(rank >= 3 && key.rank() == rank && value.rank() == rank,
             "query, key and value need the same rank, at least 3");
  check.floating(query);
  check.that(key.type == query.type && value.type == query.type, "query, key and value differ in element type");
  for (std::size_t i = 0; i < batch; ++i) {
    check.equal(query.dims[i], key.dims[i], "batch dimensions differ");
    check.equal(query.dims[i], value.dims[i], "batch dimensions differ");
  }
  head_axes of_query(query_layout, rank), of_key(key_layout, rank), of_value(value_layout, rank);
  const dim &heads = query.dims[of_query.head], &key_heads = key.dims[of_key.head], &keys = key.dims[of_key.position];
  check.equal(key_heads, value.dims[of_value.head], "key and value differ in heads");
  check.equal(keys, value.dims[of_value.position], "key and value differ in length");
  check.equal(query.dims.back(), key.dims.back(), "query and key differ in depth");
  bool grouped = heads.is_static() && key_heads.is_static()
                     ? key_heads.value() > 0 && heads.value() % key_heads.value() == 0
                     : heads == key_heads;
  if (!grouped)
    check.reject(fmt::format("{} heads do not share {} heads of keys evenly", heads.str(), key_heads.str()));

  std::vector<dim> scores(query.dims.begin(), query.dims.begin() + static_cast<std::ptrdiff_t>(batch));
  scores.insert(scores.end(), {heads, query.dims[of_query.position], keys});
  if (inputs.size() == 4) {
    check.that(inputs[3].type == element_type::boolean || is_float(inputs[3].type), "a mask is boolean or floating");
    check.that(inputs[3].rank() <= rank && broadcast_dims(inputs[3].dims, scores) == scores,
               "the mask does not broadcast to [batch..., heads, queries, keys]");
  }
  shape out{query.type, scores};
  head_axes of_output(output_layout, rank);
  out.dims[of_output.head] = heads;
  out.dims[of_output.position] = query.dims[of_query.position];
  out.dims.back() = value.dims.back();
  return {out};
}

attention_extents::attention_extents(const attention& op, const shape& query, const shape& key, const shape& value) {
  std::size_t rank = query.rank();
  head_axes of_query(op.query_layout, rank), of_key(op.key_layout, rank);
  batch = 1;
  for (std::size_t i = 0; i + 3 < rank; ++i) batch *= query.dims[i].value();
  heads = query.dims[of_query.head].value();
  key_heads = key.dims[of_key.head].value();
  queries = query.dims[of_query.position].value();
  keys = key.dims[of_key.position].value();
  depth = query.dims.back().value();
  value_depth = value.dims.back().value();
}

}  // namespace kiln
