#include "test/mlir_bridge/kernel/sample_fusions.hpp"

#include "ir/ops/all.hpp"
#include "ir/ops/cache_update.hpp"
#include "ir/ops/segment_sum.hpp"

namespace kiln::test {
namespace {

using enum element_type;

shape f(std::vector<dim> dims) { return {f32, std::move(dims)}; }
shape i(std::vector<dim> dims) { return {i64, std::move(dims)}; }

std::vector<sample> movement_samples() {
  return {
      {convert{f16}, {f({3, 5})}},
      {convert{boolean}, {f({7})}},
      {convert{f8e4m3}, {{bf16, {2, 3}}}},
      {convert{f8e5m2}, {{f64, {2, 3}}}},
      {convert{i4}, {{i8, {5}}}},
      {convert{u4}, {{u8, {5}}}},
      {bit_cast{i32}, {f({3, 5})}},
      {bit_cast{f8e4m3fnuz}, {{u8, {7}}}},
      {bit_cast{f8e8m0}, {{f8e5m2fnuz, {7}}}},
      {bit_cast{u2}, {{i2, {7}}}},
      {bit_cast{f4e2m1}, {{u4, {7}}}},
      {broadcast{{4, 3, 5}}, {f({3, 1})}},
      {reshape{{5, 3}}, {f({3, 5})}},
      {transpose{{2, 0, 1}}, {f({2, 3, 5})}},
      {slice{{6, 1}, {3, 2}, {-2, 1}}, {f({7, 3})}},
      {pad{{1, 0}, {2, 3}, pad_mode::constant_, -2.5}, {f({3, 5})}},
      {pad{{1, 2}, {2, 1}, pad_mode::reflect, 0}, {f({3, 5})}},
      {concat{1}, {f({3, 2}), f({3, 5}), f({3, 1})}},
      {gather{1}, {f({3, 5}), i({2, 4})}},
      {gather_elements{0}, {f({3, 5}), i({2, 5})}},
      {gather_nd{1}, {f({2, 3, 5}), i({2, 4, 1})}},
      {scatter_elements{1, scatter_reduction::add}, {f({3, 5}), i({3, 2}), f({3, 2})}},
      {scatter_nd{scatter_reduction::max}, {f({3, 5}), i({2, 1}), f({2, 5})}},
      {iota{i32, {3, 5}, 1}, {}},
      {resize{{1, 2, 6, 7},
              {1, 1, 2, 7.0 / 5},
              resize_mode::cubic,
              resize_coordinates::align_corners,
              resize_nearest::ceil,
              -0.5,
              true},
       {f({1, 2, 3, 5})}},
  };
}

std::vector<sample> anchor_samples() {
  constexpr auto last = tensor_layout::channels_last;
  constexpr auto sequence = head_layout::sequence_first;
  return {
      {dot{false, true, f32}, {f({2, 3, 5}), f({2, 7, 5})}},
      {dot{true, false, f32}, {{f16, {5, 3}}, {f16, {5, 7}}}},
      {dot{false, false, i32}, {{u8, {3, 5}}, {i8, {5, 7}}}},
      {dot{false, true, f32, 8}, {f({2, 3, 5}), f({2, 7, 5})}},
      {dot{true, false, f32, 16}, {{f16, {5, 3}}, {f16, {5, 7}}}},
      {dot{false, false, f32}, {{f8e4m3, {3, 5}}, {f8e4m3, {5, 7}}}},
      {dot{false, true, f32}, {{f8e5m2, {3, 5}}, {f8e5m2, {7, 5}}}},
      {convolution{{2, 1}, {1, 2}, {1, 0}, {0, 2}, 2, last}, {f({1, 7, 9, 4}), f({3, 3, 2, 6})}},
      {convolution{{1}, {1}, {1}, {1}, 1, tensor_layout::channels_first}, {f({2, 3, 9}), f({5, 3, 3})}},
      {transposed_convolution{{2, 2}, {1, 1}, {1, 0}, {0, 1}, {1, 0}, 1, last}, {f({1, 4, 5, 3}), f({3, 2, 6, 3})}},
      {pooling{pooling_kind::average, {3, 2}, {2, 1}, {1, 1}, {1, 0}, {1, 0}, true, true, last}, {f({1, 7, 5, 3})}},
      {attention{0.5, true}, {f({2, 4, 3, 5}), f({2, 2, 7, 5}), f({2, 2, 7, 3})}},
      {attention{0.25, false, sequence, {}, sequence, sequence},
       {{f16, {3, 2, 5}}, {f16, {2, 7, 5}}, {f16, {7, 2, 5}}, {boolean, {3, 7}}}},
      {reduce{reduction_kind::mean, {0, 2}, true}, {f({3, 5, 7})}},
      {reduce{reduction_kind::product, {1}, false}, {f({3, 5})}},
      {arg_reduce{false, 1, true, true}, {f({3, 5})}},
      {softmax{1, true}, {f({3, 5})}},
      {normalize{{1}, 1e-5, false}, {f({3, 7})}},
      {cumulative_sum{0, true, true}, {f({5, 3})}},
      {cache_update{2}, {f({2, 3, 6, 4}), f({2, 3, 2, 4}), i({2})}},
      {cache_update{1}, {{f16, {2, 5, 3}}, {f16, {2, 1, 3}}, {i32, {1}}}},
      {cache_update{2}, {f({6, 3, 5, 4}), f({2, 3, 1, 4}), i({1}), i({1})}},
      {cache_update{1}, {{f16, {4, 5, 3}}, {f16, {2, 2, 3}}, {i32, {2}}, {i32, {1}}}},
      {segment_sum{2}, {f({5, 3}), i({5})}},
      {segment_sum{4}, {{f16, {7}}, {i32, {7}}}},
      {top_k{3, 1, false}, {f({2, 7})}},
      {recurrent{recurrent_cell::lstm, true, false}, {f({5, 2, 12}), f({12, 3}), f({12}), f({2, 3}), f({2, 3})}},
      {recurrent{recurrent_cell::gru, false, true}, {f({4, 2, 9}), f({9, 3}), f({9}), f({2, 3})}},
  };
}

}  // namespace

std::vector<sample> operator_samples() {
  std::vector<sample> all = movement_samples();
  for (sample& s : anchor_samples()) all.push_back(std::move(s));
  return all;
}

std::vector<sample> elementwise_samples() {
  std::vector<sample> all;
  for (const scalar_function_row& row : scalar_function_table) {
    elementwise op;
    parse_enum(row.name, op.function);
    bool bits = row.name.starts_with("bit_") || row.name.starts_with("shift_");
    element_type type = row.result == scalar_result::logical ? boolean : bits ? u16 : row.name == "mod" ? i32 : f32;
    std::vector<shape> inputs(static_cast<std::size_t>(row.arity), shape{type, {3, 5}});
    if (row.name == "where") inputs[0].type = boolean;
    all.push_back({op, inputs});
  }
  return all;
}

std::unique_ptr<module> fusion_of(const sample& s) {
  auto m = std::make_unique<module>("sample");
  std::vector<value> inputs;
  for (const shape& type : s.inputs) inputs.push_back(m->add_parameter("input" + std::to_string(inputs.size()), type));
  value first = m->add(s.op, inputs);
  std::vector<value> outputs;
  std::vector<std::string> names;
  for (std::uint32_t k = 0; k < first.producer->outputs().size(); ++k) {
    outputs.push_back({first.producer, k});
    names.push_back("output" + std::to_string(k));
  }
  m->set_outputs(outputs, names);
  return m;
}

std::unique_ptr<module> symbolic_dot_fusion() {
  dim batch = dim::symbol("batch");
  auto m = std::make_unique<module>("sample");
  value x = m->add_parameter("input0", f({batch, 5}));
  value w = m->add_parameter("input1", f({7, 5}));
  value bias = m->add_parameter("input2", f({7}));
  value product = m->add(dot{false, true, f32}, {x, w});
  value sum = m->add(elementwise{scalar_function::add}, {product, m->add(broadcast{{batch, 7}}, {bias})});
  value half = m->add(broadcast{{batch, 7}}, {m->add(constant{literal::scalar(f32, 0.5)}, {})});
  value positive = m->add(elementwise{scalar_function::relu}, {m->add(elementwise{scalar_function::mul}, {sum, half})});
  m->set_outputs({positive, sum}, {"output0", "output1"});
  return m;
}

std::vector<literal> sample_inputs(const module& fusion) {
  std::vector<literal> inputs;
  for (value p : fusion.parameters()) {
    auto n = static_cast<std::size_t>(p.type().element_count());
    std::vector<double> values(n);
    for (std::size_t k = 0; k < n; ++k) {
      double spread = static_cast<double>((k * 7 + inputs.size() * 3) % 31) / 10 - 1.5;
      values[k] = is_float(p.type().type) ? spread
                  : p.type().type == i64  ? static_cast<double>(2 * k / n)
                                          : static_cast<double>((k * 5 + 1) % 7);
    }
    inputs.push_back(literal::from_doubles(p.type(), values));
  }
  return inputs;
}

}  // namespace kiln::test
