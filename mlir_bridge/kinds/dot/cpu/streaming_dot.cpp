#include "mlir_bridge/kinds/dot/cpu/streaming_dot.hpp"

#include <algorithm>
#include <functional>
#include <numeric>
#include <optional>

#include "mlir_bridge/cpu/contraction/blocking.hpp"
#include "mlir_bridge/cpu/contraction/tile_writer.hpp"

namespace kiln::cpu {

namespace {

// Lines of the right matrix that are added at a time, for all rows of the left one.
constexpr std::int64_t lines_at_once = 8;
// KiB of sums that stay in the first-level cache.
constexpr std::int64_t sums_kb = 16;
// Distance in lines from the line that is added to the one that is prefetched meanwhile. Hardware prefetchers stop at
// the end of each page.
constexpr std::int64_t lines_ahead = 16;
// Smaller matrices stay in the caches from run to run.
constexpr std::int64_t requested_bytes = 256 << 10;
// A matrix of narrow lines is divided by lines instead of columns, into so many parts, so that each thread reads whole
// pages.
constexpr std::int64_t narrow_line_bytes = 8 << 10, narrow_matrix_bytes = 2 << 20, parts_of_lines = 16;

std::int64_t product(const std::vector<std::int64_t>& dims) {
  return std::accumulate(dims.begin(), dims.end(), std::int64_t{1}, std::multiplies<>());
}

class streaming_dot {
 public:
  streaming_dot(kernel_emitter& emitter, const dot_sizes& sizes, bool transpose_a)
      : e(emitter),
        code(emitter.code),
        m(sizes.m),
        n(sizes.n),
        k(sizes.k),
        batch_dims_(sizes.batch),
        batches_(product(sizes.batch)),
        transpose_a_(transpose_a),
        left_(emitter.materialize(emitter.anchor()->inputs()[0])),
        right_(emitter.materialize(emitter.anchor()->inputs()[1])),
        accumulation_(accumulation_type(left_.type)),
        lanes_(register_lanes(emitter, accumulation_)),
        width_(4 * lanes_),
        lines_(std::max<std::int64_t>(1, choose(emitter.configuration, "lines", lines_at_once) / m)),
        chunk_(columns_at_once()),
        ahead_(choose(emitter.configuration, "prefetch", matrix_bytes() >= requested_bytes ? lines_ahead : 0)) {}

  void emit() {
    const bool is_narrow = n * element_bytes() <= narrow_line_bytes && matrix_bytes() >= narrow_matrix_bytes;
    const std::int64_t parts = choose(e.configuration, "splits", is_narrow ? parts_of_lines : 1);
    if (batches_ == 1 && parts > 1 && k >= parts * lines_) return by_lines(parts);
    by_columns();
  }

 private:
  std::int64_t element_bytes() const { return static_cast<std::int64_t>(storage_bytes(right_.type, 1)); }
  std::int64_t matrix_bytes() const { return k * n * element_bytes(); }

  std::int64_t columns_at_once() const {
    const std::int64_t room = std::clamp<std::int64_t>(choose(e.configuration, "sums_kb", sums_kb), 1, 64) << 10;
    return std::min(std::max<std::int64_t>(1, room / (m * 4 * width_)) * width_, (n + width_ - 1) / width_ * width_);
  }

  // With one matrix, an item is a few columns, and a call computes the columns of all its items together. With several
  // matrices, an item is a chunk of one of them.
  void by_columns() {
    const bool single = batches_ == 1;
    const std::int64_t parts = single ? (n + width_ - 1) / width_ : (n + chunk_ - 1) / chunk_;
    e.begin_stage("streaming_dot", batches_ * parts);
    make_writers();
    const Value sums = code.stack(accumulation_, m * chunk_), all = code.constant(k);
    const auto columns = [&](Value batch, Value first, Value count) {
      const place_of_sums at{sums, code.constant(0), chunk_};
      add(batch, first, count, {code.constant(0), all}, at);
      for_columns(count, [&](Value j, std::int64_t some) {
        for (std::int64_t r = 0; r < m; ++r) write(batch, r, code.add(first, j), load_sums(at, r, j, some), some);
      });
    };
    if (single) {
      const Value last = code.min(code.mul(e.end(), width_), n);
      code.loop(code.mul(e.begin(), width_), last, chunk_,
                [&](Value first) { columns(code.constant(0), first, code.min(code.sub(last, first), chunk_)); });
    } else {
      code.loop(e.begin(), e.end(), 1, [&](Value item) {
        const values digits = code.delinearize(item, std::vector<std::int64_t>{batches_, parts});
        const Value first = code.mul(digits[1], chunk_);
        columns(digits[0], first, code.min(code.sub(code.constant(n), first), chunk_));
      });
    }
    e.end_stage();
  }

  // An item is a part of the lines, with sums of its own, which a second stage adds.
  void by_lines(std::int64_t parts) {
    const std::int64_t span = (k + parts * lines_ - 1) / (parts * lines_) * lines_;
    const buffer partial = e.add_scratch(accumulation_, {parts, m, n});
    e.begin_stage("streaming_dot", parts);
    code.loop(e.begin(), e.end(), 1, [&](Value part) {
      const Value begin = code.min(code.mul(part, span), k), end = code.min(code.add(begin, span), k);
      for (std::int64_t first = 0; first < n; first += chunk_)
        add(code.constant(0), code.constant(first), code.constant(std::min(chunk_, n - first)), {begin, end},
            {e.pointer(partial), code.add(code.mul(part, m * n), first), n});
    });
    e.end_stage();
    e.begin_stage("add_parts", (n + width_ - 1) / width_);
    make_writers();
    const Value first = code.mul(e.begin(), width_), last = code.min(code.mul(e.end(), width_), n);
    for_columns(code.sub(last, first), [&](Value j, std::int64_t some) {
      const Value column = code.add(first, j);
      for (std::int64_t r = 0; r < m; ++r) {
        Value sum;
        for (std::int64_t part = 0; part < parts; ++part) {
          const Value more = load_sums({e.pointer(partial), code.constant(part * m * n), n}, r, column, some);
          sum = sum ? plus(sum, more) : more;
        }
        write(code.constant(0), r, column, sum, some);
      }
    });
    e.end_stage();
  }

  // Sums of row r are `stride` elements after those of row r - 1.
  struct place_of_sums {
    Value pointer, offset;
    std::int64_t stride;
  };
  struct line_range {
    Value begin, end;
  };

  // body(column, how many at once) for `count` columns from 0 on. Only the last columns of the matrix may not fill a
  // vector.
  void for_columns(Value count, const std::function<void(Value, std::int64_t)>& body) {
    const Value even = code.mul(code.div(count, lanes_), lanes_);
    code.loop(code.constant(0), even, lanes_, [&](Value j) { body(j, lanes_); });
    if (n % lanes_) code.loop(even, count, 1, [&](Value j) { body(j, 1); });
  }

  Value load_sums(const place_of_sums& at, std::int64_t row, Value j, std::int64_t some) {
    return code.load(at.pointer, code.add(at.offset, code.add(j, row * at.stride)), accumulation_, some);
  }

  void store_sums(const place_of_sums& at, std::int64_t row, Value j, Value sums) {
    code.store(at.pointer, code.add(at.offset, code.add(j, row * at.stride)), accumulation_, sums);
  }

  Value plus(Value a, Value b) {
    return is_float(accumulation_) ? code.make<mlir::arith::AddFOp>(a, b).getResult() : code.add(a, b);
  }

  // sums = the left rows times the lines of the range, for columns [first, first + count). The range begins with a
  // multiple of `lines_`; it ends with one or with the last line.
  void add(Value batch, Value first, Value count, line_range range, const place_of_sums& sums) {
    for_columns(count, [&](Value j, std::int64_t some) {
      for (std::int64_t r = 0; r < m; ++r) store_sums(sums, r, j, code.number(code.type(accumulation_, some), 0));
    });
    const std::int64_t even = k / lines_ * lines_;
    code.loop(range.begin, code.min(range.end, even), lines_,
              [&](Value line) { add_lines(batch, first, count, line, lines_, sums); });
    if (k % lines_)
      code.when(code.equal(range.end, code.constant(k)),
                [&] { add_lines(batch, first, count, code.constant(even), k % lines_, sums); });
  }

  // Adds `here` lines to the sums.
  void add_lines(Value batch, Value first, Value count, Value line, std::int64_t here, const place_of_sums& sums) {
    const Value a = e.pointer(left_), b = e.pointer(right_), a_batch = code.mul(batch, m * k),
                b_first = code.add(code.mul(batch, k * n), first);
    values factors, lines, requested;
    for (std::int64_t i = 0; i < here; ++i) {
      const Value at = code.add(line, i);
      for (std::int64_t r = 0; r < m; ++r) {
        const Value element = transpose_a_ ? code.add(code.mul(at, m), r) : code.add(at, r * k);
        factors.push_back(
            widen(code, code.load(a, code.add(a_batch, element), left_.type, 1), left_.type, accumulation_));
      }
      lines.push_back(code.add(b_first, code.mul(at, n)));
      if (ahead_) requested.push_back(code.add(b_first, code.mul(code.min(code.add(at, ahead_), k - 1), n)));
    }
    for_columns(count, [&](Value j, std::int64_t some) {
      values sum;
      for (std::int64_t r = 0; r < m; ++r) sum.push_back(load_sums(sums, r, j, some));
      for (std::size_t i = 0; i < lines.size(); ++i) {
        if (ahead_ && some > 1) code.prefetch(b, code.add(requested[i], j), right_.type, 2);
        const Value elements =
            widen(code, code.load(b, code.add(lines[i], j), right_.type, some), right_.type, accumulation_);
        for (std::int64_t r = 0; r < m; ++r) {
          const Value factor = code.splat(factors[i * static_cast<std::size_t>(m) + static_cast<std::size_t>(r)], some);
          Value& s = sum[static_cast<std::size_t>(r)];
          s = is_float(accumulation_) ? code.fma(factor, elements, s) : code.add(code.mul(factor, elements), s);
        }
      }
      for (std::int64_t r = 0; r < m; ++r) store_sums(sums, r, j, sum[static_cast<std::size_t>(r)]);
    });
  }

  void write(Value batch, std::int64_t row, Value column, Value sum, std::int64_t some) {
    tile_place place;
    place.valid_rows = code.constant(1);
    place.rows_always_full = true;
    place.column = column;
    place.locate = [&](Value) {
      values where = code.delinearize(batch, batch_dims_);
      where.push_back(code.constant(row));
      return where;
    };
    (some == 1 ? scalars_ : vectors_)->write({sum}, place);
  }

  void make_writers() {
    vectors_.emplace(e, tile_shape{1, 1, lanes_}, accumulation_);
    scalars_.emplace(e, tile_shape{1, 1, 1}, accumulation_);
  }

  kernel_emitter& e;
  code_builder& code;
  const std::int64_t m, n, k;
  const std::vector<std::int64_t> batch_dims_;
  const std::int64_t batches_;
  const bool transpose_a_;
  const buffer left_, right_;
  const element_type accumulation_;
  const std::int64_t lanes_, width_, lines_, chunk_, ahead_;
  std::optional<tile_writer> vectors_, scalars_;  // of the open stage
};

}  // namespace

void emit_streaming_dot(kernel_emitter& e, const dot_sizes& sizes, bool transpose_a) {
  streaming_dot(e, sizes, transpose_a).emit();
}

}  // namespace kiln::cpu
