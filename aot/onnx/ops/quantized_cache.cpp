#include "aot/onnx/ops/quantized_cache.hpp"

#include "aot/onnx/ops/text_choice.hpp"
#include "aot/onnx/ops/window.hpp"

namespace kiln::onnx_import {
namespace {

using fn = scalar_function;

element_type stored_type(node& n, std::size_t cache, std::int64_t bits) {
  const element_type type = n.type(cache).type;
  if (bits == 4 ? type == element_type::u8 : type == element_type::i8 || type == element_type::f8e4m3) return type;
  invalid("a cache of " + std::to_string(bits) + " bits does not fit input " + std::to_string(cache) + ", which is " +
          n.type(cache).str());
}

}  // namespace

std::optional<cache_format> cache_format_of(node& n, std::size_t cache, std::size_t scale, std::string_view kind,
                                            std::int64_t heads) {
  builder& b = n.b;
  const std::string each = one_of(n, kind, "NONE", {"NONE", "PER_TENSOR", "PER_CHANNEL"});
  if (each == "NONE") {
    if (n.has(scale))
      invalid("input " + std::to_string(scale) + " holds scales, but " + std::string(kind) + " is NONE");
    return std::nullopt;
  }
  if (!n.has(scale) || !n.has(cache))
    invalid(std::string(kind) + "=" + each + " needs inputs " + std::to_string(cache) + " and " +
            std::to_string(scale));
  const std::int64_t bits = n.integer("kv_cache_bit_width", 0) ? n.integer("kv_cache_bit_width", 0) : 8;
  if (bits != 4 && bits != 8) invalid("kv_cache_bit_width is " + std::to_string(bits) + ", not 4 or 8");
  cache_format format{stored_type(n, cache, bits), bits == 4, b.to_type(n.in(scale), element_type::f32)};
  if (each == "PER_TENSOR") {
    format.scale = b.with_dims(format.scale, {});
  } else {
    const dim width = n.dims(cache).at(3);
    format.scale = b.with_dims(format.scale, {1, heads, 1, format.packed ? width * dim(2) : width});
  }
  return format;
}

value stored(builder& b, value rows, const cache_format& format) {
  value levels = b.binary(fn::div, b.to_type(rows, element_type::f32), format.scale);
  if (is_float(format.type)) return saturated_f8(b, levels, format.type);
  if (!format.packed) return quantized(b, levels, b.scalar(format.type, 0));
  levels =
      b.add(elementwise{fn::clamp}, b.broadcast_together({b.unary(fn::round, levels), b.scalar(element_type::f32, -8),
                                                          b.scalar(element_type::f32, 7)}));
  levels = b.to_type(b.binary(fn::add, levels, 8.0), element_type::i32);
  auto dims = levels.type().dims;
  if (!dims.at(3).is_static()) refuse("the depth of a head must be known");
  const dim bytes(dims[3].value() / 2);
  value pairs = b.with_dims(levels, {dims[0], dims[1], dims[2], bytes, 2});
  const auto half = [&](std::int64_t i) {
    return b.with_dims(b.slice_axis(pairs, 4, i, 1), {dims[0], dims[1], dims[2], bytes});
  };
  return b.to_type(b.binary(fn::add, half(0), b.binary(fn::mul, half(1), 16.0)), format.type);
}

value loaded(builder& b, value cache, const cache_format& format, element_type type) {
  value levels = cache;
  if (format.packed) {
    auto dims = cache.type().dims;
    value bytes = b.with_dims(b.to_type(cache, element_type::i32), {dims[0], dims[1], dims[2], dims[3], 1});
    value pairs = b.add(concat{4}, {b.binary(fn::mod, bytes, 16.0), b.binary(fn::div, bytes, 16.0)});
    dims[3] = dims[3] * dim(2);
    levels = b.binary(fn::sub, b.with_dims(pairs, dims), 8.0);
  }
  return b.to_type(b.binary(fn::mul, b.to_type(levels, element_type::f32), format.scale), type);
}

}  // namespace kiln::onnx_import
