#include "mlir_bridge/kinds/cache_update/updated_cache.hpp"

#include <algorithm>

#include "ir/ops/cache_update.hpp"
#include "mlir_bridge/codegen/scalar_functions.hpp"

namespace kiln {

using namespace codegen;

namespace {

Value loaded(kernel_emitter& e, const buffer& from, Value index, const dim& most) {
  const Value stored = e.code.load(e.pointer(from), index, from.type, 1);
  return e.min(e.code.max(convert_element(e.code, stored, from.type, e.code.index_element()), 0), most);
}

}  // namespace

Value updated_cache::place(kernel_emitter& e, Value batch) const {
  return loaded(e, places, one_place ? e.code.constant(0) : batch, last_place);
}

Value updated_cache::layer_number(kernel_emitter& e) const { return loaded(e, *layer, e.code.constant(0), layers - 1); }

updated_cache begin_update(kernel_emitter& e, const instruction& at, copy_function copy) {
  const auto& op = *at.op().get_if<cache_update>();
  const value result{const_cast<instruction*>(&at), 0}, cache = at.inputs()[0], positions = at.inputs()[2];
  const auto number = static_cast<std::size_t>(std::ranges::find(e.outputs(), result) - e.outputs().begin());
  updated_cache made;
  made.rows = at.inputs()[1];
  made.axis = static_cast<std::size_t>(op.axis);
  made.memory = e.output(number);
  const buffer source = e.materialize(cache);
  made.places = e.materialize(positions);
  const std::size_t before = e.launches().size();
  copy(e, cache, made.memory, false);
  if (source.kind == buffer_kind::input && e.launches().size() > before)
    e.last_stage_copies(source.index, made.memory.index);
  const std::vector<dim>&all = kernel_emitter::sizes(cache), &rows = kernel_emitter::sizes(made.rows);
  made.last_place = all[made.axis] - rows[made.axis];
  made.one_place = kernel_emitter::sizes(positions)[0] == dim(1);
  if (at.inputs().size() == 4) made.layer = e.materialize(at.inputs()[3]);
  made.rows_of_layer = rows[0];
  for (std::size_t i = 1; i <= made.axis; ++i) made.rows_of_layer = made.rows_of_layer * all[i];
  made.layers = made.layer ? all[0] / rows[0] : dim(1);
  return made;
}

}  // namespace kiln
