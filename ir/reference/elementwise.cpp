#include "ir/ops/elementwise.hpp"

#include "ir/reference/parallel.hpp"
#include "ir/reference/scalar_rules.hpp"
#include "ir/reference/tensor.hpp"

namespace kiln {
namespace {

using namespace reference;

using loop_function = void (*)(element_type type, std::span<const literal> inputs, std::vector<std::byte>& out);

// One function over whole tensors, for every element type it accepts; `type` is that of the operands.
template <scalar_function Function>
void run(element_type type, std::span<const literal> inputs, std::vector<std::byte>& out) {
  using rule = scalar_rule<Function>;
  constexpr const scalar_function_row& signature = row(Function);
  visit_type(type, [&](auto format) {
    using Format = decltype(format);
    if constexpr (accepts(rule::domain, Format::type)) {
      using storage = typename Format::storage;
      using result = std::conditional_t<signature.result == scalar_result::same, Format, boolean_format>;
      auto* to = data<typename result::storage>(out);
      auto count = inputs[0].type().element_count();
      auto operand = [&](std::size_t i) { return inputs[i].as<storage>().data(); };
      auto each = [&](auto apply) {
        parallel_for(count, 16, [&](std::int64_t begin, std::int64_t end) {
          for (std::int64_t i = begin; i < end; ++i) to[i] = result::store(apply(i));
        });
      };
      if constexpr (Function == scalar_function::where) {
        const std::uint8_t* condition = inputs[0].as<std::uint8_t>().data();
        each([=, a = operand(1), b = operand(2)](std::int64_t i) { return rule::apply(condition[i] != 0, Format::load(a[i]), Format::load(b[i])); });
      } else if constexpr (signature.arity == 1) {
        each([a = operand(0)](std::int64_t i) { return rule::apply(Format::load(a[i])); });
      } else if constexpr (signature.arity == 2) {
        each([a = operand(0), b = operand(1)](std::int64_t i) { return rule::apply(Format::load(a[i]), Format::load(b[i])); });
      } else {
        each([a = operand(0), b = operand(1), c = operand(2)](std::int64_t i) {
          return rule::apply(Format::load(a[i]), Format::load(b[i]), Format::load(c[i]));
        });
      }
    }
  });
}

constexpr auto loops = std::to_array<loop_function>({
#define KILN_SCALAR(name, arity, result) &run<scalar_function::name>,
    KILN_SCALAR_FUNCTIONS(KILN_SCALAR)
#undef KILN_SCALAR
});

}  // namespace

std::vector<literal> elementwise::evaluate(std::span<const literal> inputs) const {
  shape out = output_shapes(*this, inputs)[0];
  std::vector<std::byte> bytes(out.bytes());
  loops[static_cast<std::size_t>(function)](inputs.back().type().type, inputs, bytes);
  return {literal(std::move(out), std::move(bytes))};
}

std::vector<literal> convert::evaluate(std::span<const literal> inputs) const {
  shape out = output_shapes(*this, inputs)[0];
  literal from = unpacked(inputs[0]);
  shape wide = out.with_type(unpacked_type(type));
  std::vector<std::byte> bytes(wide.bytes());
  visit_type(from.type().type, [&](auto source) {
    visit_type(wide.type, [&](auto target) {
      using Source = decltype(source);
      using Target = decltype(target);
      const auto* values = from.as<typename Source::storage>().data();
      auto* to = data<typename Target::storage>(bytes);
      parallel_for(wide.element_count(), 16, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) to[i] = Target::store(cast<typename Target::compute>(Source::load(values[i])));
      });
    });
  });
  return {packed(type, literal(std::move(wide), std::move(bytes)))};
}

}  // namespace kiln
