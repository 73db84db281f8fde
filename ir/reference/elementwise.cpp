// Runs elementwise functions in chunks: widen the operands to one of five compute types, apply the function, narrow the
// result. So each function is compiled five times instead of once per element type. For integers, narrowing the wide
// result wraps exactly like narrow arithmetic.
#include "ir/ops/elementwise.hpp"

#include <array>

#include "ir/reference/parallel.hpp"
#include "ir/reference/scalar_rules.hpp"
#include "ir/reference/tensor.hpp"

namespace kiln {
namespace {

using namespace reference;

constexpr std::int64_t chunk = 512;
enum class computing : std::uint8_t { f64, f32, i64, u64, boolean };
constexpr std::size_t computing_count = 5;
template <std::size_t Which>
using computing_type = std::tuple_element_t<Which, std::tuple<double, float, std::int64_t, std::uint64_t, bool>>;

computing computing_of(element_type type) {
  if (type == element_type::f64) return computing::f64;
  if (is_float(type)) return computing::f32;
  if (is_signed_integer(type)) return computing::i64;
  return type == element_type::boolean ? computing::boolean : computing::u64;
}

// Whether elements of Format are computed in T.
template <class T, class Format>
constexpr bool computed_in() {
  using C = typename Format::compute;
  if constexpr (std::is_same_v<T, bool> || std::is_same_v<C, bool> || std::is_floating_point_v<T>)
    return std::is_same_v<T, C>;
  else return std::is_integral_v<C> && std::is_signed_v<T> == std::is_signed_v<C>;
}

template <class T>
void widen(element_type type, const std::byte* from, std::int64_t begin, std::int64_t count, T* to) {
  visit_type(type, [&](auto format) {
    using Format = decltype(format);
    if constexpr (computed_in<T, Format>()) {
      const auto* source = reinterpret_cast<const typename Format::storage*>(from) + begin;
      for (std::int64_t i = 0; i < count; ++i) to[i] = static_cast<T>(Format::load(source[i]));
    }
  });
}

template <class T>
void narrow(element_type type, const T* from, std::int64_t begin, std::int64_t count, std::byte* to) {
  visit_type(type, [&](auto format) {
    using Format = decltype(format);
    if constexpr (computed_in<T, Format>()) {
      auto* target = reinterpret_cast<typename Format::storage*>(to) + begin;
      for (std::int64_t i = 0; i < count; ++i)
        target[i] = Format::store(static_cast<typename Format::compute>(from[i]));
    }
  });
}

// Applies the function to `count` elements. Operands and `out` are arrays of the compute type; `out` is bool for
// comparisons.
using chunk_function = void (*)(const void* const* operands, std::int64_t count, void* out);

template <scalar_function Function, class T>
void apply(const void* const* operands, std::int64_t count, void* out) {
  using rule = scalar_rule<Function>;
  constexpr const scalar_function_row& signature = row(Function);
  using result = std::conditional_t<signature.result == scalar_result::same, T, bool>;
  auto* to = static_cast<result*>(out);
  auto operand = [&](std::size_t i) { return static_cast<const T*>(operands[i]); };
  if constexpr (Function == scalar_function::where) {
    const auto* condition = static_cast<const bool*>(operands[0]);
    for (std::int64_t i = 0; i < count; ++i) to[i] = condition[i] ? operand(1)[i] : operand(2)[i];
  } else if constexpr (signature.arity == 1) {
    for (std::int64_t i = 0; i < count; ++i) to[i] = rule::apply(operand(0)[i]);
  } else if constexpr (signature.arity == 2) {
    for (std::int64_t i = 0; i < count; ++i) to[i] = rule::apply(operand(0)[i], operand(1)[i]);
  } else {
    for (std::int64_t i = 0; i < count; ++i) to[i] = rule::apply(operand(0)[i], operand(1)[i], operand(2)[i]);
  }
}

constexpr std::array<element_type, computing_count> representative{
    element_type::f64, element_type::f32, element_type::i64, element_type::u64, element_type::boolean};

template <scalar_function Function, std::size_t... Which>
constexpr std::array<chunk_function, computing_count> variants(std::index_sequence<Which...>) {
  auto one = []<std::size_t W>(std::integral_constant<std::size_t, W>) -> chunk_function {
    if constexpr (accepts(scalar_rule<Function>::domain, representative[W])) return &apply<Function, computing_type<W>>;
    else return nullptr;
  };
  return {one(std::integral_constant<std::size_t, Which>{})...};
}

constexpr auto functions = std::to_array<std::array<chunk_function, computing_count>>({
#define KILN_SCALAR(name, arity, result) variants<scalar_function::name>(std::make_index_sequence<computing_count>{}),
    KILN_SCALAR_FUNCTIONS(KILN_SCALAR)
#undef KILN_SCALAR
});

// Processes the tensors chunk by chunk: widens the operands, applies the function, narrows the result.
template <class T>
void run(scalar_function function, chunk_function f, std::span<const literal> inputs, const shape& type,
         std::vector<std::byte>& out) {
  parallel_for(type.element_count(), 16, [&](std::int64_t begin, std::int64_t end) {
    std::array<std::array<T, chunk>, 3> wide;
    std::array<bool, chunk> condition, logical;
    std::array<T, chunk> result;
    for (std::int64_t at = begin; at < end; at += chunk) {
      std::int64_t count = std::min(chunk, end - at);
      std::array<const void*, 3> operands{};
      for (std::size_t i = 0; i < inputs.size(); ++i) {
        bool is_condition = function == scalar_function::where && i == 0;
        operands[i] = is_condition ? static_cast<const void*>(condition.data()) : wide[i].data();
        if (is_condition) widen(element_type::boolean, inputs[i].bytes().data(), at, count, condition.data());
        else widen(inputs[i].type().type, inputs[i].bytes().data(), at, count, wide[i].data());
      }
      if (row(function).result == scalar_result::same) {
        f(operands.data(), count, result.data());
        narrow(type.type, result.data(), at, count, out.data());
      } else {
        f(operands.data(), count, logical.data());
        narrow(element_type::boolean, logical.data(), at, count, out.data());
      }
    }
  });
}

}  // namespace

std::vector<literal> elementwise::evaluate(std::span<const literal> inputs) const {
  shape out = output_shapes(*this, inputs)[0];
  element_type operands = inputs.back().type().type;
  computing in = computing_of(operands);
  chunk_function f = functions[static_cast<std::size_t>(function)][static_cast<std::size_t>(in)];
  if (!f || storage_bits(operands) < 8)
    throw error(error_kind::unsupported, std::string(name()) + " of " + std::string(kiln::name(operands)) +
                                             " cannot be computed; convert it first");
  std::vector<std::byte> bytes(out.bytes());
  switch (in) {
    case computing::f64: run<double>(function, f, inputs, out, bytes); break;
    case computing::f32: run<float>(function, f, inputs, out, bytes); break;
    case computing::i64: run<std::int64_t>(function, f, inputs, out, bytes); break;
    case computing::u64: run<std::uint64_t>(function, f, inputs, out, bytes); break;
    case computing::boolean: run<bool>(function, f, inputs, out, bytes); break;
  }
  return {literal(std::move(out), std::move(bytes))};
}

std::vector<literal> convert::evaluate(std::span<const literal> inputs) const {
  shape out = output_shapes(*this, inputs)[0];
  literal from = unpacked(inputs[0]);
  // Rounds directly to f4e2m1. By way of its unpacked type, values would be rounded twice.
  shape wide = out.with_type(type == element_type::f4e2m1 ? element_type::f32 : unpacked_type(type));
  std::vector<std::byte> bytes(wide.bytes());
  visit_type(from.type().type, [&](auto source) {
    visit_type(wide.type, [&](auto target) {
      using Source = decltype(source);
      using Target = decltype(target);
      const auto* values = from.as<typename Source::storage>().data();
      auto* to = data<typename Target::storage>(bytes);
      for (std::int64_t i = 0, n = wide.element_count(); i < n; ++i)
        to[i] = Target::store(cast<typename Target::compute>(Source::load(values[i])));
    });
  });
  return {packed(type, literal(std::move(wide), std::move(bytes)))};
}

std::vector<literal> bit_cast::evaluate(std::span<const literal> inputs) const {
  shape out = output_shapes(*this, inputs)[0];
  std::vector<std::byte> bytes(inputs[0].bytes().begin(), inputs[0].bytes().end());
  if (type == element_type::boolean)
    for (std::byte& b : bytes) b = static_cast<std::byte>(b != std::byte{0});
  return {literal(std::move(out), std::move(bytes))};
}

}  // namespace kiln
