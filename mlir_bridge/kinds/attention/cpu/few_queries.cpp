// Attention of few queries, as in the steps of a decoder: nothing is packed, since each key and value is read once. A
// work item is one query of one head. Sums of a score run along the depth, for several keys at a time.
#include "mlir_bridge/codegen/open_sizes.hpp"
#include "mlir_bridge/codegen/scalar_functions.hpp"
#include "mlir_bridge/cpu/contraction/open_panels.hpp"
#include "mlir_bridge/kinds/attention/cpu/attention_rows.hpp"

namespace kiln::cpu {

namespace {

namespace arith = mlir::arith;

constexpr std::int64_t keys_at_once = 4;
// Vectors of a result that stay in registers while all values are read.
constexpr std::int64_t most_vectors = 8;

class few_queries {
 public:
  explicit few_queries(attention_rows& of) : rows(of), e(of.e), code(of.code) {}

  void emit() {
    query_at = e.materialize(rows.query);
    std::vector<dim> items = rows.batch;
    items.insert(items.end(), {rows.heads, rows.queries * is_few(rows.queries)});
    std::vector<dim> room = items;
    room.push_back(rows.padded_keys);
    rows.scores = e.add_open_scratch(rows.sum_type, room);
    e.parallel_open("few_queries", items, usual_size(rows.keys) * (rows.depth.value() + rows.value_depth.value()) / 4,
                    [&](std::span<const Value> at) {
                      rows.begin(at.first(at.size() - 1), at.back(), code.constant(1), offset_in(e, rows.scores, at));
                      rows.sums_at = code.stack(rows.sum_type, 1);
                      make_scores();
                      rows.make_weights(code.constant(0));
                      write_result();
                    });
  }

 private:
  // Returns the number of lanes of vectors that divide a depth evenly.
  std::int64_t lanes_of(const dim& depth) const {
    const std::int64_t d = depth.value();
    return std::min(e.lanes_for(rows.sum_type, d), d & -d);
  }

  Value zero(std::int64_t lanes) { return code.number(code.type(rows.sum_type, lanes), 0); }

  // Returns `lanes` elements of a key or value, in the type of the sums.
  Value read(value from, Value position, Value depth, head_layout layout, std::int64_t lanes) {
    evaluator ev(e);
    const Value x = ev.at(from, ev.along(rows.in_layout(rows.group, position, depth, layout), lanes), lanes);
    return convert_element(code, x, compute_type(from.type().type), rows.sum_type);
  }

  void make_scores() {
    const std::int64_t lanes = lanes_of(rows.depth);
    const Value pointer = e.pointer(rows.scores);
    const auto some = [&](Value first, std::int64_t count) {
      const values sums =
          code.loop(0, rows.depth.value(), lanes, values(static_cast<std::size_t>(count), zero(lanes)),
                    [&](Value d, std::span<const Value> so_far) {
                      values all(so_far.begin(), so_far.end());
                      const Value q = read_query(d, lanes);
                      for (std::int64_t k = 0; k < count; ++k) {
                        Value& sum = all[static_cast<std::size_t>(k)];
                        sum = code.fma(q, read(rows.key, code.add(first, k), d, rows.op.key_layout, lanes), sum);
                      }
                      return all;
                    });
      for (std::int64_t k = 0; k < count; ++k) {
        Value sum = sums[static_cast<std::size_t>(k)];
        if (lanes > 1) sum = code.horizontal(mlir::vector::CombiningKind::ADD, sum);
        sum = code.make<arith::MulFOp>(sum, code.number(code.type(rows.sum_type, 1), rows.op.scale));
        code.store(pointer, rows.score_offset(code.constant(0), code.add(first, k)), rows.sum_type, sum);
      }
    };
    const Value even = code.mul(code.div(rows.seen, keys_at_once), keys_at_once);
    code.loop(code.constant(0), even, keys_at_once, [&](Value j) { some(j, keys_at_once); });
    code.loop(even, rows.seen, 1, [&](Value j) { some(j, 1); });
  }

  Value read_query(Value d, std::int64_t lanes) {
    const values at = rows.in_layout(rows.head, rows.first_row, d, rows.op.query_layout);
    const Value x = code.load(e.pointer(query_at), offset_in(e, query_at, at), query_at.type, lanes);
    return convert_element(code, x, compute_type(query_at.type), rows.sum_type);
  }

  void write_result() {
    const std::int64_t lanes = lanes_of(rows.value_depth), depth = rows.value_depth.value();
    const Value pointer = e.pointer(rows.scores);
    for (std::int64_t begin = 0; begin < depth; begin += most_vectors * lanes) {
      const std::int64_t vectors = std::min(most_vectors, (depth - begin) / lanes);
      const values sums = code.loop(
          code.constant(0), rows.seen, 1, values(static_cast<std::size_t>(vectors), zero(lanes)),
          [&](Value j, std::span<const Value> so_far) {
            values all(so_far.begin(), so_far.end());
            const Value weight =
                code.splat(code.load(pointer, rows.score_offset(code.constant(0), j), rows.sum_type, 1), lanes);
            for (std::int64_t v = 0; v < vectors; ++v) {
              Value& sum = all[static_cast<std::size_t>(v)];
              sum = code.fma(weight,
                             read(rows.value_, j, code.constant(begin + v * lanes), rows.op.value_layout, lanes), sum);
            }
            return all;
          });
      for (std::int64_t v = 0; v < vectors; ++v)
        rows.store_result(code.constant(0), code.constant(begin + v * lanes), sums[static_cast<std::size_t>(v)], lanes);
    }
  }

  attention_rows& rows;
  kernel_emitter& e;
  code_builder& code;
  buffer query_at;
};

bool is_prepared(const kernel_emitter& e, value v) { return v.type().is_static() && e.only_parameters(v); }

}  // namespace

bool reads_keys_directly(const attention_rows& rows) {
  return rows.depth.is_static() && rows.value_depth.is_static() && rows.depth.value() > 0 &&
         rows.value_depth.value() > 0 && !is_prepared(rows.e, rows.key) && !is_prepared(rows.e, rows.value_);
}

void emit_few_queries(attention_rows& rows) { few_queries(rows).emit(); }

}  // namespace kiln::cpu
