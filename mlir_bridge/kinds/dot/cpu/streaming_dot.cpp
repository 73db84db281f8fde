#include "mlir_bridge/kinds/dot/cpu/streaming_dot.hpp"

#include <algorithm>
#include <functional>
#include <numeric>

#include "mlir_bridge/cpu/contraction/blocking.hpp"
#include "mlir_bridge/cpu/contraction/tile_writer.hpp"

namespace kiln::cpu {

namespace {

// Lines of the right matrix that are added at a time, for all rows of the left one.
constexpr std::int64_t lines_at_once = 8;
// KiB of sums that stay in the first-level cache.
constexpr std::int64_t sums_kb = 16;

}  // namespace

void emit_streaming_dot(kernel_emitter& e, const dot_sizes& sizes, bool transpose_a) {
  code_builder& code = e.code;
  const std::int64_t m = sizes.m, n = sizes.n, k = sizes.k;
  const buffer left = e.materialize(e.anchor()->inputs()[0]), right = e.materialize(e.anchor()->inputs()[1]);
  const element_type accumulation = accumulation_type(left.type);
  const std::int64_t lanes = register_lanes(e, accumulation),
                     batches =
                         std::accumulate(sizes.batch.begin(), sizes.batch.end(), std::int64_t{1}, std::multiplies<>());
  const std::int64_t lines = std::max<std::int64_t>(1, choose(e.configuration, "lines", lines_at_once) / m),
                     width = 4 * lanes;
  const std::int64_t sums_room = std::clamp<std::int64_t>(choose(e.configuration, "sums_kb", sums_kb), 1, 64) << 10;
  const std::int64_t chunk =
      std::min(std::max<std::int64_t>(1, sums_room / (m * 4 * width)) * width, (n + width - 1) / width * width);
  // With one matrix, an item is a few columns, and a call computes the columns of all its items together. With several
  // matrices, an item is a chunk of one of them.
  const bool single = batches == 1;
  const std::int64_t parts = single ? (n + width - 1) / width : (n + chunk - 1) / chunk;

  e.begin_stage("streaming_dot", batches * parts);
  Value a = e.pointer(left), b = e.pointer(right);
  Value sums = code.stack(accumulation, m * chunk);
  tile_writer vectors(e, {1, 1, lanes}, accumulation), scalars(e, {1, 1, 1}, accumulation);

  // Computes columns [first, first + count) of a batch. Only the last columns of the matrix may not fill a vector.
  auto columns = [&](Value batch, Value first, Value count) {
    Value even = code.mul(code.div(count, lanes), lanes);
    auto each = [&](const std::function<void(Value, std::int64_t)>& body) {
      code.loop(code.constant(0), even, lanes, [&](Value j) { body(j, lanes); });
      if (n % lanes) code.loop(even, count, 1, [&](Value j) { body(j, 1); });
    };
    each([&](Value j, std::int64_t some) {
      for (std::int64_t r = 0; r < m; ++r)
        code.store(sums, code.add(j, r * chunk), accumulation, code.number(code.type(accumulation, some), 0));
    });
    Value a_batch = code.mul(batch, m * k), b_first = code.add(code.mul(batch, k * n), first);
    auto add_lines = [&](Value line, std::int64_t here) {
      values factors;
      for (std::int64_t i = 0; i < here; ++i)
        for (std::int64_t r = 0; r < m; ++r) {
          Value at = transpose_a ? code.add(code.mul(code.add(line, i), m), r) : code.add(code.add(line, i), r * k);
          factors.push_back(widen(code, code.load(a, code.add(a_batch, at), left.type, 1), left.type, accumulation));
        }
      each([&](Value j, std::int64_t some) {
        values sum;
        for (std::int64_t r = 0; r < m; ++r) sum.push_back(code.load(sums, code.add(j, r * chunk), accumulation, some));
        for (std::int64_t i = 0; i < here; ++i) {
          Value elements = widen(
              code, code.load(b, code.add(code.add(b_first, code.mul(code.add(line, i), n)), j), right.type, some),
              right.type, accumulation);
          for (std::int64_t r = 0; r < m; ++r) {
            Value factor = code.splat(factors[static_cast<std::size_t>(i * m + r)], some);
            Value& s = sum[static_cast<std::size_t>(r)];
            s = is_float(accumulation) ? code.fma(factor, elements, s) : code.add(code.mul(factor, elements), s);
          }
        }
        for (std::int64_t r = 0; r < m; ++r)
          code.store(sums, code.add(j, r * chunk), accumulation, sum[static_cast<std::size_t>(r)]);
      });
    };
    code.loop(0, k / lines * lines, lines, [&](Value line) { add_lines(line, lines); });
    if (k % lines) add_lines(code.constant(k / lines * lines), k % lines);
    for (std::int64_t r = 0; r < m; ++r)
      each([&](Value j, std::int64_t some) {
        tile_place place;
        place.valid_rows = code.constant(1);
        place.rows_always_full = true;
        place.column = code.add(first, j);
        place.locate = [&](Value) {
          values where = code.delinearize(batch, sizes.batch);
          where.push_back(code.constant(r));
          return where;
        };
        (some == 1 ? scalars : vectors).write({code.load(sums, code.add(j, r * chunk), accumulation, some)}, place);
      });
  };

  if (single) {
    Value last = code.min(code.mul(e.end(), width), n);
    code.loop(code.mul(e.begin(), width), last, chunk,
              [&](Value first) { columns(code.constant(0), first, code.min(code.sub(last, first), chunk)); });
  } else {
    code.loop(e.begin(), e.end(), 1, [&](Value item) {
      values digits = code.delinearize(item, std::vector<std::int64_t>{batches, parts});
      Value first = code.mul(digits[1], chunk);
      columns(digits[0], first, code.min(code.sub(code.constant(n), first), chunk));
    });
  }
  e.end_stage();
}

}  // namespace kiln::cpu
