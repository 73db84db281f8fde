#include "mlir_bridge/kinds/attention/gpu/wgmma_rows.hpp"

#include <fmt/format.h>

#include <limits>
#include <numbers>

#include "mlir_bridge/gpu/contraction/chunk.hpp"
#include "mlir_bridge/gpu/intrinsics.hpp"

namespace kiln::gpu {

namespace {

namespace arith = mlir::arith;

constexpr double lowest = -std::numeric_limits<double>::infinity();
// Descriptors count in units of 16 bytes.
constexpr std::int64_t unit = 16;
// Eight swizzled rows of 128 bytes.
constexpr std::int64_t pattern_bytes = 1024;
// Elements that one instruction sums.
constexpr std::int64_t step = 16;

std::string_view name_of(element_type type) { return type == element_type::bf16 ? "bf16" : "f16"; }

// `leading` is the distance in bytes between groups of 64 columns if rows in memory are steps of the product; otherwise
// it is unused.
Value descriptor(code_builder& code, Value address, std::int64_t leading) {
  const std::int64_t fixed = ((leading / unit) << 16) | ((pattern_bytes / unit) << 32) | (std::int64_t{1} << 62);
  mlir::Type i64 = code.builder.getI64Type();
  Value start = code.make<arith::ExtUIOp>(i64, code.div(address, unit));
  return code.make<arith::OrIOp>(start, code.integer(i64, fixed));
}

std::string registers(std::int64_t first, std::int64_t count) {
  std::string list;
  for (std::int64_t i = 0; i < count; ++i) list += fmt::format("{}${}", i ? "," : "", first + i);
  return "{" + list + "}";
}

std::string repeated(std::string_view constraint, std::int64_t count) {
  std::string list;
  for (std::int64_t i = 0; i < count; ++i) list += std::string(constraint) + ",";
  return list;
}

std::string tied(std::int64_t count) {
  std::string list;
  for (std::int64_t i = 0; i < count; ++i) list += fmt::format("{},", i);
  return list;
}

}  // namespace

softmax_state wgmma_rows::initial_state() {
  Value none = code_.number(code_.builder.getF32Type(), lowest), zero = code_.number(code_.builder.getF32Type(), 0);
  return {{none, none}, {zero, zero}};
}

values wgmma_rows::zeros() {
  return values(static_cast<std::size_t>(t_.depth / 2), code_.number(code_.builder.getF32Type(), 0));
}

values wgmma_rows::begin_scores(Value queries, Value keys) {
  const std::int64_t count = t_.keys / 2, row = wgmma_attention_tile::column_bytes;
  std::string text = fmt::format(
      "{{\n.reg .pred first, other;\n.reg .b64 a, b;\nsetp.ne.b64 first, ${}, ${};\nsetp.eq.b64 other, ${}, "
      "${};\nwgmma.fence.sync.aligned;\n",
      count, count, count, count);
  for (std::int64_t k = 0; k < t_.depth; k += step) {
    const std::int64_t column = k / 64, inner = k % 64 * 2;
    text += fmt::format("add.s64 a, ${}, {};\nadd.s64 b, ${}, {};\n", count,
                        (column * wgmma_attention_tile::group_rows * row + inner) / unit, count + 1,
                        (column * t_.keys * row + inner) / unit);
    text += fmt::format("wgmma.mma_async.sync.aligned.m64n{}k16.f32.{}.{} {}, a, b, {}, 1, 1, 0, 0;\n", t_.keys,
                        name_of(type_), name_of(type_), registers(0, count), k ? "other" : "first");
  }
  text += "wgmma.commit_group.sync.aligned;\n}";
  return hopper_.assembly(text, repeated("=f", count) + "l,l,~{memory}",
                          {descriptor(code_, queries, unit), descriptor(code_, keys, unit)},
                          std::vector<mlir::Type>(static_cast<std::size_t>(count), code_.builder.getF32Type()));
}

values wgmma_rows::finish_scores(const values& scores) {
  const auto count = static_cast<std::int64_t>(scores.size());
  return hopper_.assembly("wgmma.wait_group.sync.aligned 1;", repeated("=f", count) + tied(count) + "~{memory}", scores,
                          std::vector<mlir::Type>(scores.size(), code_.builder.getF32Type()));
}

values wgmma_rows::begin_result(const values& weights, Value block, const values& result) {
  const std::int64_t count = t_.depth / 2, first = 2 * count, row = wgmma_attention_tile::column_bytes;
  const auto words = static_cast<std::int64_t>(weights.size());
  const std::string from = fmt::format("${}", first + words);
  std::string text = fmt::format(
      "{{\n.reg .pred yes;\n.reg .b64 b;\nsetp.eq.b64 yes, {}, {};\nwgmma.fence.sync.aligned;\n", from, from);
  for (std::int64_t k = 0; k < t_.keys; k += step) {
    text += fmt::format("add.s64 b, {}, {};\n", from, k * row / unit);
    text += fmt::format("wgmma.mma_async.sync.aligned.m64n{}k16.f32.{}.{} {}, {}, b, yes, 1, 1, 1;\n", t_.depth,
                        name_of(type_), name_of(type_), registers(0, count), registers(first + k / step * 4, 4));
  }
  text += "wgmma.commit_group.sync.aligned;\n}";
  values operands = result;
  operands.insert(operands.end(), weights.begin(), weights.end());
  operands.push_back(descriptor(code_, block, t_.keys * row));
  return hopper_.assembly(text, repeated("=f", count) + tied(count) + repeated("r", words) + "l,~{memory}", operands,
                          std::vector<mlir::Type>(result.size(), code_.builder.getF32Type()));
}

// --- softmax

// Combines in pairs: only one warp runs on a quarter of the compute unit, so nothing hides the latency of a dependent
// chain.
Value wgmma_rows::combined(values all, const std::function<Value(Value, Value)>& combine) {
  constexpr std::size_t chains = 4;
  for (std::size_t i = chains; i < all.size(); ++i) all[i % chains] = combine(all[i % chains], all[i]);
  return combine(combine(all[0], all[1]), combine(all[2], all[3]));
}

softmax_change wgmma_rows::soften(values& scores, softmax_state& state, const std::array<Value, 2>& limits,
                                  bool first) {
  mlir::Type f32 = code_.builder.getF32Type();
  const double factor = p_.op.scale * std::numbers::log2e;
  auto larger = [&](Value a, Value b) -> Value { return code_.make<arith::MaxNumFOp>(a, b); };
  auto sum = [&](Value a, Value b) -> Value { return code_.make<arith::AddFOp>(a, b); };
  const Value scale = code_.number(f32, factor), none = code_.number(f32, lowest);
  auto column = [](std::size_t i) { return static_cast<std::int64_t>(i / 4 * 8 + i % 2); };
  std::array<Value, 2> own_top;
  for (std::size_t half = 0; half < 2; ++half) {
    values own;
    for (std::size_t i = 2 * half; i < scores.size(); i += i % 2 ? 3 : 1) {
      if (limits[half]) scores[i] = code_.select(code_.less(hopper_.number(column(i)), limits[half]), scores[i], none);
      own.push_back(scores[i]);
    }
    own_top[half] = combined(own, larger);
  }
  // The largest product so far, by which weights are divided, or 0 if no key has been seen: -inf - (-inf) is NaN.
  const auto shift_of = [&](Value top, std::size_t half) -> Value {
    if (limits[half])
      top = code_.select(code_.make<arith::CmpFOp>(arith::CmpFPredicate::OEQ, top, none), code_.number(f32, 0), top);
    return code_.make<arith::MulFOp>(top, code_.number(f32, -factor));
  };
  // Returns the new largest products, and what sums so far are to be multiplied with.
  const auto rescaled = [&] {
    values result(4);
    for (std::size_t half = 0; half < 2; ++half) {
      Value top = larger(state.top[half], own_top[half]);
      for (std::int64_t mask : {1, 2}) top = larger(top, group_.shuffle_xor(top, mask));
      result[half] = top;
      result[2 + half] = power_of_two(code_, code_.fma(state.top[half], scale, shift_of(top, half)));
    }
    return result;
  };
  softmax_change change;
  values now;
  if (first) {
    now = rescaled();
  } else {
    // Weights relative to an older product are at most 2^8, which 16 bits hold as exactly as 1.
    constexpr double most_power = 8;
    Value grows;
    for (std::size_t half = 0; half < 2; ++half) {
      const Value limit = code_.make<arith::AddFOp>(state.top[half], code_.number(f32, most_power / factor));
      const Value beyond = code_.make<arith::CmpFOp>(arith::CmpFPredicate::OGT, own_top[half], limit);
      grows = grows ? code_.make<arith::OrIOp>(grows, beyond).getResult() : beyond;
    }
    change.rescales = hopper_.any_of_warp(grows);
    now = code_.branch(change.rescales, rescaled, [&] {
      const Value one = code_.number(f32, 1);
      return values{state.top[0], state.top[1], one, one};
    });
  }
  std::array<Value, 2> shifts;
  for (std::size_t half = 0; half < 2; ++half) {
    state.top[half] = now[half], change.factors[half] = now[2 + half];
    shifts[half] = shift_of(now[half], half);
  }
  for (std::size_t half = 0; half < 2; ++half) {
    values own;
    for (std::size_t i = 2 * half; i < scores.size(); i += i % 2 ? 3 : 1) {
      scores[i] = power_of_two(code_, code_.fma(scores[i], scale, shifts[half]));
      own.push_back(scores[i]);
    }
    state.sum[half] = code_.fma(state.sum[half], change.factors[half], combined(own, sum));
  }
  return change;
}

void wgmma_rows::arrive_after(const softmax_state& state, Value barrier, Value thread) {
  // Sums of weights are never negative, which the assembler cannot deduce.
  hopper_.assembly(
      "{\n.reg .pred p;\nsetp.eq.u32 p, $1, 0;\nsetp.geu.and.f32 p, $2, 0f00000000, p;\nsetp.geu.and.f32 p, $3, "
      "0f00000000, p;\n@p mbarrier.arrive.shared::cta.b64 _, [$0];\n}",
      "r,r,f,f,~{memory}", {barrier, thread, state.sum[0], state.sum[1]});
}

void wgmma_rows::scale(values& result, const softmax_change& change) {
  const auto scaled = [&] {
    values all;
    for (std::size_t i = 0; i < result.size(); ++i)
      all.push_back(code_.make<arith::MulFOp>(result[i], change.factors[i / 2 % 2]));
    return all;
  };
  result = change.rescales ? code_.branch(change.rescales, scaled, [&] { return result; }) : scaled();
}

Value wgmma_rows::pair(Value low, Value high) {
  const bool brain = type_ == element_type::bf16;
  mlir::Type half = brain ? mlir::Type(code_.builder.getBF16Type()) : mlir::Type(code_.builder.getF16Type());
  Value both = call_intrinsic(code_, brain ? "llvm.nvvm.ff2bf16x2.rn" : "llvm.nvvm.ff2f16x2.rn",
                              mlir::VectorType::get({2}, half), {high, low});
  return code_.make<mlir::LLVM::BitcastOp>(code_.builder.getI32Type(), both);
}

values wgmma_rows::pack(const values& weights) {
  values words;
  for (std::size_t i = 0; i < weights.size(); i += 2) words.push_back(pair(weights[i], weights[i + 1]));
  return words;
}

// --- the result

void wgmma_rows::exchange(std::span<Value> words, Value lane) {
  for (std::int64_t mask : {1, 2}) {
    Value upper = code_.equal(code_.rem(code_.div(lane, mask), 2), hopper_.number(1));
    for (std::int64_t i = 0; i < 4; ++i) {
      if (i & mask) continue;
      Value &low = words[static_cast<std::size_t>(i)], &high = words[static_cast<std::size_t>(i | mask)];
      Value received = group_.shuffle_xor(code_.select(upper, low, high), mask);
      low = code_.select(upper, received, low);
      high = code_.select(upper, high, received);
    }
  }
}

void wgmma_rows::write(const attention_problem::place& place, Value row, Value row_of_group, const values& result,
                       const softmax_state& state) {
  Value lane = hopper_.narrow(group_.lane()), in_four = code_.rem(lane, 4);
  // Columns that a thread stores: 16 bytes of 16-bit elements.
  constexpr std::int64_t columns = 8;
  for (std::size_t half = 0; half < 2; ++half) {
    Value sum = whole_sum(state.sum[half]);
    Value inverse = call_intrinsic(code_, "llvm.nvvm.rcp.approx.ftz.f", sum.getType(), {sum});
    values words;
    for (std::size_t i = 2 * half; i < result.size(); i += 4)
      words.push_back(
          pair(code_.make<arith::MulFOp>(result[i], inverse), code_.make<arith::MulFOp>(result[i + 1], inverse)));
    for (std::size_t i = 0; i < words.size(); i += 4) exchange(std::span(words).subspan(i, 4), lane);
    const auto below = static_cast<std::int64_t>(8 * half);
    auto store = [&] {
      for (std::size_t i = 0; i < words.size(); i += 4) {
        Value stored = reinterpret(code_, code_.from_lanes(std::span(words).subspan(i, 4)),
                                   code_.with_lanes(code_.storage_type(type_), columns));
        Value depth = code_.to_index(code_.add(code_.mul(in_four, columns), static_cast<std::int64_t>(i) * columns));
        evaluator ev(e_);
        ev.bind(e_.anchor_result(), code_.to_compute(stored, type_));
        ev.store_outputs(
            p_.of_output(code_, place, code_.to_index(code_.add(row_of_group, below)), depth, columns, columns),
            columns);
      }
    };
    when_row_exists(code_.add(row, below), store);
  }
}

Value wgmma_rows::whole_sum(Value sum) {
  for (std::int64_t mask : {1, 2}) sum = code_.make<arith::AddFOp>(sum, group_.shuffle_xor(sum, mask));
  return sum;
}

void wgmma_rows::when_row_exists(Value row, const std::function<void()>& then) {
  if (t_.covers(p_.n.queries)) then();
  else code_.when(code_.less(row, hopper_.number(p_.n.queries)), then);
}

void wgmma_rows::write_part(split_keys& split, split_keys::place place, Value row, Value row_of_group,
                            const values& result, const softmax_state& state) {
  Value lane = hopper_.narrow(group_.lane()), in_four = code_.rem(lane, 4);
  Value scale = code_.number(code_.builder.getF32Type(), p_.op.scale * std::numbers::log2e);
  constexpr std::int64_t columns = 8;
  for (std::size_t half = 0; half < 2; ++half) {
    const Value sum = whole_sum(state.sum[half]), top = code_.make<arith::MulFOp>(state.top[half], scale);
    // Of eight columns beside each other, each of four lanes has two. After the exchange one lane has all eight, the
    // even ones in words[0] and the odd ones in words[1].
    std::array<values, 2> words;
    for (std::size_t i = 2 * half; i < result.size(); i += 4)
      for (std::size_t odd : {0, 1}) words[odd].push_back(result[i + odd]);
    for (values& all : words)
      for (std::size_t i = 0; i < all.size(); i += 4) exchange(std::span(all).subspan(i, 4), lane);
    const auto below = static_cast<std::int64_t>(8 * half);
    when_row_exists(code_.add(row, below), [&] {
      place.row = code_.to_index(code_.add(row_of_group, below));
      code_.when(code_.equal(in_four, hopper_.number(0)), [&] { split.store_state(place, top, sum); });
      for (std::size_t i = 0; i < words[0].size(); i += 4) {
        values elements;
        for (std::size_t j = i; j < i + 4; ++j) elements.insert(elements.end(), {words[0][j], words[1][j]});
        Value depth = code_.to_index(code_.add(code_.mul(in_four, columns), static_cast<std::int64_t>(i) * columns));
        split.store_result(place, depth, elements);
      }
    });
  }
}

}  // namespace kiln::gpu
