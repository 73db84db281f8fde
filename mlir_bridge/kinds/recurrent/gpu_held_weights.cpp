#include "mlir_bridge/kinds/recurrent/gpu_held_weights.hpp"

#include <algorithm>
#include <array>

#include "mlir_bridge/gpu/contraction/chunk.hpp"
#include "mlir_bridge/gpu/wgmma/hopper_code.hpp"

namespace kiln::gpu {

namespace {

constexpr std::int64_t most_parts = 8;
// Registers of a thread besides the words, and the most words: they are multiplied by code without a loop.
constexpr std::int64_t other_registers = 40, most_words = 96;
// Elements of the state that a thread reads at once, each with a sum of its own.
constexpr std::int64_t abreast = 4;

}  // namespace

std::int64_t threads_of(const held_plan& plan, std::int64_t wave) {
  return (plan.gates * plan.parts + wave - 1) / wave * wave;
}

std::optional<held_plan> plan_held_weights(const target_row& target, std::int64_t hidden, std::int64_t gates,
                                           element_type type) {
  const gpu_row& row = target.gpu;
  if (target.family != target_family::nvidia || gates > row.max_threads || hidden % abreast) return std::nullopt;
  if (type != element_type::f16 && type != element_type::bf16 && type != element_type::f32) return std::nullopt;
  held_plan plan{hidden, gates, type};
  auto room = [&] {
    const std::int64_t registers = std::min<std::int64_t>(255, row.register_file / threads_of(plan, row.wave) / 8 * 8);
    return std::clamp<std::int64_t>(registers - other_registers, 0, most_words);
  };
  // More threads hide more latency.
  for (plan.parts = most_parts; plan.parts > 1; plan.parts /= 2)
    if (hidden % (plan.parts * abreast) == 0 && threads_of(plan, row.wave) <= row.max_threads && plan.words() <= room())
      break;
  const std::int64_t words_abreast = abreast / plan.per_word();
  plan.in_registers = std::min(plan.words(), room()) / words_abreast * words_abreast;
  // The state, its sums and the cell's state lie in shared memory, too.
  const std::int64_t free = row.lds_bytes - (3 * hidden + gates * plan.parts) * 4;
  plan.in_shared = std::clamp<std::int64_t>(free / (gates * plan.parts * 4), 0, plan.words() - plan.in_registers) /
                   words_abreast * words_abreast;
  return plan;
}

held_weights::held_weights(kernel_emitter& e, const held_plan& plan, const buffer& weights, bool constant)
    : e_(e), code_(e.code), plan_(plan) {
  const std::int64_t per_word = plan.per_word();
  packed_ = e.add_scratch(plan.type, {plan.hidden / per_word, plan.gates, per_word}, constant);
  e.parallel(
      "pack_weights", {plan.hidden / per_word, plan.gates, per_word}, 1,
      [&](std::span<const Value> at) {
        Value k = code_.add(code_.mul(at[0], per_word), at[2]);
        Value x = code_.load(e_.pointer(weights), code_.add(code_.mul(at[1], plan_.hidden), k), plan_.type, 1);
        code_.store(e_.pointer(packed_), code_.linearize(at, packed_.dims()), plan_.type, x);
      },
      constant);
}

// Loads word number `word` of this thread's column of the weights, or of its part of the column.
Value held_weights::word_at(Value from, Value word) {
  Value index = code_.add(code_.mul(code_.add(word, code_.mul(part_, plan_.words())), plan_.gates), column_);
  return code_.make<mlir::LLVM::LoadOp>(code_.builder.getI32Type(), byte_address(code_, from, code_.mul(index, 4)), 4u);
}

values held_weights::load(workgroup& group) {
  // Threads without a column do what the last ones do, but store nothing.
  Value thread = code_.min(group.thread(), plan_.gates * plan_.parts - 1);
  column_ = code_.rem(thread, plan_.gates), part_ = code_.div(thread, plan_.gates);
  values words;
  for (std::int64_t w = 0; w < plan_.in_registers; ++w)
    words.push_back(word_at(e_.pointer(packed_), code_.constant(w)));
  if (plan_.in_shared > 0) {
    shared_ = group.lds(plan_.in_shared * plan_.gates * plan_.parts * 4);
    code_.loop(0, plan_.in_shared, 1, [&](Value w) {
      Value word = word_at(e_.pointer(packed_), code_.add(w, plan_.in_registers));
      Value index = code_.add(code_.mul(w, plan_.gates * plan_.parts), thread);
      code_.make<mlir::LLVM::StoreOp>(word, byte_address(code_, shared_, code_.mul(index, 4)), 4u);
    });
  }
  group.barrier();
  return words;
}

values held_weights::opaque(std::span<const Value> words) {
  if (plan_.per_word() == 1) return {words.begin(), words.end()};
  hopper_code hopper(code_, false);
  values result;
  for (Value word : words) result.push_back(hopper.assembly("", "=r,0", {word}, {word.getType()})[0]);
  return result;
}

// Adds the products of a word's elements with the lanes of `state` from `first` on.
void held_weights::add_word(Value word, Value state, std::int64_t first, values& totals) {
  const std::int64_t lanes = plan_.per_word();
  Value elements = code_.to_compute(
      reinterpret(code_, word, code_builder::with_lanes(code_.storage_type(plan_.type), lanes)), plan_.type);
  for (std::int64_t i = 0; i < lanes; ++i) {
    Value element = lanes == 1 ? elements : code_.lane(elements, i);
    Value& total = totals[static_cast<std::size_t>(first + i)];
    total = code_.fma(code_.lane(state, first + i), element, total);
  }
}

void held_weights::product(workgroup& group, std::span<const Value> words, Value state, Value sums, std::int64_t from,
                           std::int64_t to) {
  const std::int64_t per_word = plan_.per_word(), words_abreast = abreast / per_word;
  auto product_of_columns = [&] {
    // Words [first, first + count) of this thread.
    auto add = [&](Value first, values totals, const std::function<Value(std::int64_t)>& word) {
      Value k = code_.mul(code_.add(first, code_.mul(part_, plan_.words())), per_word);
      Value lanes = code_.load(state, k, element_type::f32, abreast, abreast);
      for (std::int64_t w = 0; w < words_abreast; ++w) add_word(word(w), lanes, w * per_word, totals);
      return totals;
    };
    values totals(abreast, code_.number(code_.builder.getF32Type(), 0));
    for (std::int64_t first = 0; first < plan_.in_registers; first += words_abreast)
      totals = add(code_.constant(first), totals,
                   [&](std::int64_t w) { return words[static_cast<std::size_t>(first + w)]; });
    const std::int64_t held = plan_.in_registers + plan_.in_shared;
    if (plan_.in_shared > 0) {
      Value thread = code_.add(code_.mul(part_, plan_.gates), column_);
      totals =
          code_.loop(plan_.in_registers, held, words_abreast, totals, [&](Value first, std::span<const Value> now) {
            return add(first, {now.begin(), now.end()}, [&](std::int64_t w) {
              Value row = code_.sub(code_.add(first, w), plan_.in_registers);
              Value index = code_.add(code_.mul(row, plan_.gates * plan_.parts), thread);
              return code_
                  .make<mlir::LLVM::LoadOp>(code_.builder.getI32Type(),
                                            byte_address(code_, shared_, code_.mul(index, 4)), 4u)
                  .getResult();
            });
          });
    }
    if (held < plan_.words())
      totals = code_.loop(held, plan_.words(), words_abreast, totals, [&](Value first, std::span<const Value> now) {
        return add(first, {now.begin(), now.end()},
                   [&](std::int64_t w) { return word_at(e_.pointer(packed_), code_.add(first, w)); });
      });
    auto plus = [&](Value a, Value b) { return code_.make<mlir::arith::AddFOp>(a, b).getResult(); };
    code_.store(sums, code_.add(code_.mul(part_, plan_.gates), column_), element_type::f32,
                plus(plus(totals[0], totals[1]), plus(totals[2], totals[3])));
  };
  Value inside;
  auto require = [&](Value condition) {
    inside = inside ? code_.make<mlir::arith::AndIOp>(inside, condition).getResult() : condition;
  };
  if (plan_.gates * plan_.parts < group.threads())
    require(code_.less(group.thread(), code_.constant(plan_.gates * plan_.parts)));
  if (from > 0) require(code_.less(code_.constant(from - 1), column_));
  if (to < plan_.gates) require(code_.less(column_, code_.constant(to)));
  if (inside) code_.when(inside, product_of_columns);
  else product_of_columns();
  group.barrier();
}

Value held_weights::sum(Value sums, Value column) {
  Value total;
  for (std::int64_t part = 0; part < plan_.parts; ++part) {
    Value of_part = code_.load(sums, code_.add(column, part * plan_.gates), element_type::f32, 1);
    total = total ? code_.make<mlir::arith::AddFOp>(total, of_part).getResult() : of_part;
  }
  return total;
}

}  // namespace kiln::gpu
