// Products of open sizes. The right matrices are packed in panels as wide as a tile; then every work item multiplies a
// few tiles of rows by all panels.
#include <functional>
#include <optional>

#include "ir/ops/contraction.hpp"
#include "mlir_bridge/cpu/contraction/open_panels.hpp"
#include "mlir_bridge/cpu/contraction/tile_writer.hpp"
#include "mlir_bridge/cpu/contraction/wide_factor.hpp"
#include "mlir_bridge/kinds/dot/generators.hpp"

namespace kiln::cpu {

namespace {

constexpr std::int64_t tiles_per_item = 4;
// Right matrices of at most so many panels are read as they are: their rows lie close together.
constexpr std::int64_t most_panels_in_place = 4;

class open_dot {
 public:
  explicit open_dot(kernel_emitter& emitter)
      : e(emitter),
        code(emitter.code),
        op(*e.anchor()->op().get_if<dot>()),
        left_source(e.anchor()->inputs()[0]),
        result(e.anchor_result().type()),
        accumulation(accumulation_type(left_source.type().type)) {
    const auto& sizes = result.dims;
    const std::size_t rank = sizes.size();
    batch.assign(sizes.begin(), sizes.end() - 2);
    m = sizes[rank - 2], n = sizes[rank - 1];
    known_columns = n.is_static() ? n.value() : 0;
    tile = known_columns ? open_tile(e, accumulation, known_columns) : open_tile(e, accumulation);
    k = left_source.type().dims[op.transpose_a ? rank - 2 : rank - 1];
  }

  void emit() {
    left = materialize_wide(e, left_source);
    if (const auto whole = right_in_place()) return multiply(*whole);
    const open_panels right(e,
                            {e.anchor()->inputs()[1], batch, n, k, batch.size() + (op.transpose_b ? 0 : 1),
                             [this](std::span<const Value> of_batch, Value step, Value column) {
                               return op.transpose_b ? joined(of_batch, {column, step})
                                                     : joined(of_batch, {step, column});
                             }},
                            tile);
    multiply({right.count(), right.whole(),
              [&](std::span<const Value> of_batch, Value panel) { return right.panel(of_batch, panel); }});
  }

 private:
  // Panels of the right matrices.
  struct panels {
    dim count;
    bool whole;  // all are full
    std::function<open_right(std::span<const Value> of_batch, Value panel)> find;
  };

  // Returns the panels of right matrices that need no packing; nullopt if there are none.
  std::optional<panels> right_in_place() {
    const std::optional<buffer> memory = e.in_memory(e.anchor()->inputs()[1]);
    if (!memory || op.transpose_b || !known_columns || known_columns % tile.columns() ||
        known_columns > most_panels_in_place * tile.columns() || storage_bits(memory->type) < 8)
      return std::nullopt;
    return panels{known_columns / tile.columns(), true, [this, memory](std::span<const Value> of_batch, Value panel) {
                    const Value first = code.mul(panel, tile.columns());
                    return open_right{e.pointer(*memory), memory->type,
                                      offset_in(e, *memory, joined(of_batch, {code.constant(0), first})),
                                      code.constant(known_columns)};
                  }};
  }

  void multiply(const panels& right) {
    std::vector<dim> items = batch;
    items.push_back((m + tile.rows * tiles_per_item - 1) / (tile.rows * tiles_per_item));
    e.parallel_open("dot", items, tile.rows * tiles_per_item * usual_size(n) * usual_size(k) / tile.lanes,
                    [&](std::span<const Value> at) { emit_block(right, at.first(at.size() - 1), at.back()); });
  }

  // Multiplies tiles of rows of one matrix by all panels.
  void emit_block(const panels& right, std::span<const Value> of_batch, Value block) {
    const Value first_tile = code.mul(block, tiles_per_item),
                last_tile = e.min(code.add(first_tile, tiles_per_item), (m + tile.rows - 1) / tile.rows);
    const open_tile_store store(e, tile, accumulation, known_columns);
    code.loop(code.constant(0), e.size(right.count), 1, [&](Value panel) {
      code.loop(first_tile, last_tile, 1,
                [&](Value t) { emit_tile(right, of_batch, code.mul(t, tile.rows), panel, store); });
    });
  }

  void emit_tile(const panels& right, std::span<const Value> of_batch, Value first_row, Value panel,
                 const open_tile_store& store) {
    open_left from{left.type, {}, op.transpose_a ? e.size(m) : code.constant(1)};
    for (std::int64_t r = 0; r < tile.rows; ++r) {
      const Value row = e.min(code.add(first_row, r), m - 1), zero = code.constant(0);
      const values at = op.transpose_a ? joined(of_batch, {zero, row}) : joined(of_batch, {row, zero});
      from.rows.push_back(code.address(e.pointer(left), offset_in(e, left, at), left.type));
    }
    const values sums = open_sums(code, tile, from, right.find(of_batch, panel), e.size(k), accumulation,
                                  zero_tile(code, tile, accumulation));
    const Value first_column = code.mul(panel, tile.columns());
    const Value rows = code.min(code.sub(e.size(m), first_row), tile.rows),
                columns = code.min(code.sub(e.size(n), first_column), tile.columns());
    store.write(sums, rows, columns, right.whole, [&](Value row, const span_part& part, Value computed) {
      evaluator ev(e);
      ev.bind(e.anchor_result(), to_result(code, computed, accumulation, result.type));
      ev.store_outputs(joined(of_batch, {code.add(first_row, row), code.add(first_column, part.first)}), part.lanes);
    });
  }

  kernel_emitter& e;
  code_builder& code;
  const dot& op;
  value left_source;
  shape result;
  element_type accumulation;
  tile_shape tile;
  std::vector<dim> batch;
  dim m, n, k;
  std::int64_t known_columns = 0;  // 0 if their number is open
  buffer left;
};

}  // namespace

void emit_open_dot(kernel_emitter& e) { open_dot(e).emit(); }

}  // namespace kiln::cpu
