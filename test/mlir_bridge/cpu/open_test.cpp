// Open kernels are compiled once and must be correct for all sizes. Outputs and scratch are filled with NaN bytes
// before each run.
#include <gtest/gtest.h>

#include "ir/ops/cache_update.hpp"
#include "ir/ops/segment_sum.hpp"
#include "open_case.hpp"

namespace kiln::test {
namespace {

TEST(open_kernels, pointwise) {
  check_open(
      {f32({batch, seq, 24}), f32({24}), f32({batch, 1, 1})},
      [](module& m, const arguments& in) {
        value bias = m.add(broadcast{{batch, seq, 24}}, {in[1]}), mask = m.add(broadcast{{batch, seq, 24}}, {in[2]});
        return arguments{m.add(elementwise{scalar_function::tanh}, {add(m, add(m, in[0], bias), mask)})};
      },
      sizes_of_two());
}

TEST(open_kernels, an_open_last_axis) {
  check_open(
      {f32({batch, 5, seq}), f32({seq}), typed(element_type::f16, {batch, 5, 1})},
      [](module& m, const arguments& in) {
        value half = m.add(broadcast{{batch, 5, seq}}, {m.add(convert{element_type::f32}, {in[2]})});
        return arguments{add(m, add(m, in[0], m.add(broadcast{{batch, 5, seq}}, {in[1]})), half), in[0]};
      },
      sizes_of_two(), 1, tolerance{1e-5, 1e-5});
}

TEST(open_kernels, transposes_and_reshapes) {
  check_open(
      {f32({batch, seq, 12})},
      [](module& m, const arguments& in) {
        value heads = m.add(transpose{{0, 2, 1, 3}}, {m.add(reshape{{batch, seq, 3, 4}}, {in[0]})});
        value flat = m.add(reshape{{batch * 3, seq, 4}}, {heads});
        return arguments{m.add(elementwise{scalar_function::neg}, {flat})};
      },
      sizes_of_two());
  check_open(
      {f32({batch, seq, 20})},
      [](module& m, const arguments& in) { return arguments{m.add(transpose{{0, 2, 1}}, {in[0]})}; }, sizes_of_two());
  check_open(
      {f32({batch * seq, 6})},
      [](module& m, const arguments& in) {
        return arguments{m.add(transpose{{1, 2, 0}}, {m.add(reshape{{batch, seq, 6}}, {in[0]})})};
      },
      sizes_of_two());
}

TEST(open_kernels, slices_pads_and_joins) {
  std::vector<dim_bindings> sizes;
  for (std::int64_t p : {1, 5, 32})
    for (std::int64_t s : {2, 9, 64}) sizes.push_back({{"past", p}, {"seq", s}});
  for (std::int64_t axis : {0, 1}) {
    const bool last = axis == 1;
    auto dims = [&](dim d) { return last ? std::vector<dim>{3, d} : std::vector<dim>{d, 8}; };
    check_open(
        {f32(dims(past)), f32(dims(seq))},
        [&](module& m, const arguments& in) { return arguments{m.add(concat{axis}, {in[0], in[1]})}; }, sizes);
    for (pad_mode mode : {pad_mode::constant_, pad_mode::edge, pad_mode::wrap, pad_mode::reflect})
      check_open(
          {f32(dims(seq))},
          [&](module& m, const arguments& in) {
            std::vector<std::int64_t> before(2), after(2);
            before[static_cast<std::size_t>(axis)] = 1, after[static_cast<std::size_t>(axis)] = 1;
            return arguments{m.add(pad{before, after, mode, 0.5}, {in[0]})};
          },
          sizes);
    check_open(
        {f32(dims(seq))},
        [&](module& m, const arguments& in) {
          std::vector<std::int64_t> starts(2);
          starts[static_cast<std::size_t>(axis)] = 1;
          return arguments{m.add(slice{starts, dims(seq - 1), {1, 1}}, {in[0]})};
        },
        sizes);
  }
}

TEST(open_kernels, lookups_and_counters) {
  check_open(
      {f32({seq, 7}), typed(element_type::i64, {batch, past})},
      [](module& m, const arguments& in) {
        value counted = m.add(iota{element_type::f32, {batch, past, 7}, 1}, {});
        return arguments{add(m, m.add(gather{0}, {in[0], in[1]}), counted)};
      },
      {{{"batch", 1}, {"seq", 1}, {"past", 3}}, {{"batch", 4}, {"seq", 30}, {"past", 19}}}, 0.09);
}

TEST(open_kernels, reductions) {
  for (reduction_kind kind : {reduction_kind::sum, reduction_kind::mean, reduction_kind::max, reduction_kind::product})
    for (std::vector<std::int64_t> axes : {std::vector<std::int64_t>{2}, {1}, {0, 2}, {1, 2}, {0, 1}})
      for (bool open_last : {true, false}) {
        const dim middle = open_last ? dim(6) : seq, last = open_last ? seq : dim(6);
        check_open(
            {f32({batch, middle, last})},
            [&](module& m, const arguments& in) {
              value scaled = m.add(elementwise{scalar_function::tanh}, {in[0]});
              return arguments{m.add(reduce{kind, axes, axes[0] == 1}, {scaled})};
            },
            {{{"batch", 2}, {"seq", 1}}, {{"batch", 1}, {"seq", 17}}, {{"batch", 3}, {"seq", 200}}}, 0.5,
            tolerance{1e-4, 1e-4});
      }
  check_open(
      {typed(element_type::i32, {batch, seq})},
      [](module& m, const arguments& in) { return arguments{m.add(reduce{reduction_kind::mean, {1}}, {in[0]})}; },
      sizes_of_two());
}

// The last axes are read as one. Their elements are few or many, and do not fill the lanes.
TEST(open_kernels, reductions_of_whole_tensors) {
  for (element_type type : {element_type::f32, element_type::f16, element_type::i32})
    for (std::vector<std::int64_t> axes : {std::vector<std::int64_t>{0, 1, 2, 3}, {1, 2, 3}, {0, 2, 3}})
      for (bool keep_dims : {false, true})
        check_open(
            {typed(type, {batch, seq, past, 3})},
            [&](module& m, const arguments& in) {
              return arguments{m.add(reduce{reduction_kind::max, axes, keep_dims}, {in[0]})};
            },
            {{{"batch", 2}, {"seq", 1}, {"past", 1}},
             {{"batch", 1}, {"seq", 5}, {"past", 19}},
             {{"batch", 3}, {"seq", 13}, {"past", 64}}},
            0.5);
}

TEST(open_kernels, positions_of_extremes) {
  for (std::int64_t axis : {1, 2})
    for (bool last : {true, false})
      check_open(
          {typed(element_type::i32, {batch, 5, seq})},
          [&](module& m, const arguments& in) {
            return arguments{m.add(arg_reduce{true, axis, false, last}, {in[0]})};
          },
          sizes_of_two(), 0.3);
}

TEST(open_kernels, softmax_and_normalization) {
  for (std::int64_t axis : {1, 2})
    for (bool logarithm : {true, false})
      check_open(
          {f32({batch, 9, seq})},
          [&](module& m, const arguments& in) {
            value twice = add(m, in[0], in[0]);
            return arguments{m.add(elementwise{scalar_function::neg}, {m.add(softmax{axis, logarithm}, {twice})})};
          },
          sizes_of_two(), 1, tolerance{1e-4, 1e-5});
  check_open(
      {f32({2, seq})}, [](module& m, const arguments& in) { return arguments{m.add(softmax{1}, {in[0]})}; },
      {{{"seq", 8192}}, {{"seq", 8193}}, {{"seq", 20011}}}, 1, tolerance{1e-4, 1e-6});
  for (std::vector<std::int64_t> axes : {std::vector<std::int64_t>{2}, {1}, {1, 2}})
    for (bool centered : {true, false})
      check_open(
          {f32({batch, 9, seq})},
          [&](module& m, const arguments& in) { return arguments{m.add(normalize{axes, 1e-3, centered}, {in[0]})}; },
          sizes_of_two(), 1, tolerance{1e-4, 1e-4});
}

TEST(open_kernels, products) {
  std::vector<dim_bindings> sizes;
  for (std::int64_t s : {1, 7, 40, 65})
    for (std::int64_t p : {1, 16, 33, 97}) sizes.push_back({{"batch", 1 + s % 3}, {"seq", s}, {"past", p}});
  for (bool transposed_a : {false, true})
    for (bool transposed_b : {false, true})
      for (element_type type : {element_type::f32, element_type::f16}) {
        if (transposed_a != transposed_b && type == element_type::f16) continue;
        check_open(
            {typed(type, transposed_a ? std::vector<dim>{batch, 2, past, seq} : std::vector<dim>{batch, 2, seq, past}),
             typed(type, transposed_b ? std::vector<dim>{batch, 2, 19, past} : std::vector<dim>{batch, 2, past, 19})},
            [&](module& m, const arguments& in) {
              value product = m.add(dot{transposed_a, transposed_b, type}, {in[0], in[1]});
              return arguments{m.add(elementwise{scalar_function::tanh}, {product}), product};
            },
            sizes, 0.2);
      }
  check_open(
      {f32({batch, seq, 8}), f32({batch, 8, past})},
      [](module& m, const arguments& in) {
        value twice = add(m, in[1], in[1]);
        return arguments{m.add(dot{}, {in[0], twice})};
      },
      sizes, 0.5);
  // Right matrices that are read as they are, and one of many columns.
  for (std::int64_t columns : {16, 64, 512})
    check_open(
        {f32({batch, seq, past}), f32({batch, past, columns})},
        [](module& m, const arguments& in) { return arguments{m.add(dot{}, {in[0], in[1]})}; }, sizes, 0.2);
  check_open(
      {typed(element_type::i8, {seq, past}), typed(element_type::i8, {past, 40})},
      [](module& m, const arguments& in) {
        return arguments{m.add(dot{false, false, element_type::i32}, {in[0], in[1]})};
      },
      sizes);
}

TEST(open_kernels, attention) {
  std::vector<dim_bindings> sizes;
  for (std::int64_t s : {1, 3, 4, 5, 33, 70})
    for (std::int64_t p : {s, std::int64_t{40}, std::int64_t{129}})
      if (p >= s) sizes.push_back({{"batch", 1 + s % 2}, {"seq", s}, {"past", p}});
  for (bool causal : {false, true})
    for (head_layout layout : {head_layout::heads_first, head_layout::sequence_first}) {
      auto tensor = [&](dim heads, dim length, dim depth) {
        return layout == head_layout::heads_first ? f32({batch, heads, length, depth})
                                                  : f32({batch, length, heads, depth});
      };
      check_open(
          {tensor(4, seq, 12), tensor(2, past, 12), tensor(2, past, 20)},
          [&](module& m, const arguments& in) {
            return arguments{m.add(attention{0.3, causal, layout, layout, layout, layout}, in)};
          },
          sizes, 1, tolerance{1e-4, 1e-5});
    }
  for (const shape& mask :
       {f32({batch, 1, seq, past}), f32({seq, 1}), typed(element_type::boolean, {batch, 1, 1, past})})
    check_open(
        {f32({batch, 3, seq, 16}), f32({batch, 3, past, 16}), f32({batch, 3, past, 32}), mask},
        [&](module& m, const arguments& in) { return arguments{m.add(attention{0.3}, in)}; }, sizes, 1,
        tolerance{1e-4, 1e-5});
  // An odd depth, keys that are computed, and a known number of queries.
  check_open(
      {f32({batch, 2, seq, 7}), f32({batch, past, 2, 7}), f32({batch, 2, past, 9})},
      [&](module& m, const arguments& in) {
        const value keys = m.add(elementwise{scalar_function::exp}, {m.add(transpose{{0, 2, 1, 3}}, {in[1]})});
        return arguments{m.add(attention{0.3}, {in[0], keys, in[2]})};
      },
      sizes, 1, tolerance{1e-4, 1e-5});
  for (std::int64_t queries : {1, 6})
    check_open(
        {f32({batch, 2, queries, 8}), f32({batch, 2, past, 8}), f32({batch, 2, past, 24})},
        [&](module& m, const arguments& in) { return arguments{m.add(attention{0.3}, in)}; }, sizes, 1,
        tolerance{1e-4, 1e-5});
  check_open(
      {typed(element_type::f16, {batch, 2, seq, 64}), typed(element_type::f16, {batch, 2, past, 64}),
       typed(element_type::f16, {batch, 2, past, 160})},
      [&](module& m, const arguments& in) { return arguments{m.add(attention{0.3}, in)}; }, sizes, 1,
      tolerance{1e-2, 1e-2});
}

TEST(open_kernels, cache_updates) {
  std::vector<dim_bindings> sizes;
  for (std::int64_t s : {1, 2, 9})
    for (std::int64_t room : {9, 40}) sizes.push_back({{"batch", 1 + s % 2}, {"seq", s}, {"past", room}});
  for (const dim& places : {dim(1), batch})
    check_open(
        {f32({batch, 3, past, 20}), f32({batch, seq, 3, 20}), typed(element_type::i64, {places})},
        [](module& m, const arguments& in) {
          return arguments{m.add(cache_update{2}, {in[0], m.add(transpose{{0, 2, 1, 3}}, {in[1]}), in[2]})};
        },
        sizes);
}

TEST(open_kernels, scattered_elements) {
  check_open(
      {f32({batch, seq, 5}), typed(element_type::i64, {batch, past, 5}), f32({batch, past, 5})},
      [](module& m, const arguments& in) {
        value result = m.add(scatter_elements{1, scatter_reduction::add}, in);
        return arguments{m.add(elementwise{scalar_function::tanh}, {result})};
      },
      {{{"batch", 1}, {"seq", 1}, {"past", 1}}, {{"batch", 3}, {"seq", 9}, {"past", 4}}}, 0.09);
  for (scatter_reduction reduction : {scatter_reduction::none, scatter_reduction::max})
    check_open(
        {f32({seq, batch, 24}), typed(element_type::i64, {past, 1}), f32({past, batch, 24})},
        [&](module& m, const arguments& in) { return arguments{m.add(scatter_nd{reduction}, in)}; },
        {{{"batch", 1}, {"seq", 1}, {"past", 1}}, {{"batch", 3}, {"seq", 9}, {"past", 4}}}, 0.09);
}

TEST(open_kernels, running_sums) {
  for (std::int64_t axis : {0, 1, 2})
    for (bool exclusive : {false, true})
      check_open(
          {f32({batch, seq, 5})},
          [&](module& m, const arguments& in) {
            value sums = m.add(cumulative_sum{axis, exclusive, !exclusive}, {in[0]});
            return arguments{m.add(elementwise{scalar_function::neg}, {sums})};
          },
          sizes_of_two(), 1, tolerance{1e-4, 1e-4});
  check_open(
      {typed(element_type::i64, {seq, batch})},
      [](module& m, const arguments& in) { return arguments{m.add(cumulative_sum{1, false, true}, in)}; },
      sizes_of_two(), 0.09);
}

TEST(open_kernels, the_largest_of_a_row) {
  std::vector<dim_bindings> sizes;
  for (std::int64_t b : {1, 3})
    for (std::int64_t s : {5, 7, 16, 33, 1000}) sizes.push_back({{"batch", b}, {"seq", s}});
  for (std::int64_t axis : {0, 1})
    for (bool largest : {false, true})
      check_open(
          axis ? std::vector<shape>{f32({batch, seq, 3})} : std::vector<shape>{f32({seq, batch})},
          [&](module& m, const arguments& in) {
            value best = m.add(top_k{5, axis, largest}, {in[0]});
            return arguments{best, value{best.producer, 1}};
          },
          sizes);
}

TEST(open_kernels, recurrent_layers) {
  struct row {
    recurrent_cell cell;
    std::int64_t gates;
  };
  for (row r : {row{recurrent_cell::rnn, 1}, row{recurrent_cell::gru, 3}, row{recurrent_cell::lstm, 4}})
    for (bool reverse : {false, true})
      for (bool linear : {false, true}) {
        if (linear && r.cell != recurrent_cell::gru) continue;
        const std::int64_t hidden = 19, g = r.gates * hidden;
        std::vector<shape> inputs{f32({seq, batch, g}), f32({g, hidden}), f32({g}), f32({batch, hidden})};
        if (r.cell == recurrent_cell::lstm) inputs.push_back(f32({batch, hidden}));
        check_open(
            inputs,
            [&](module& m, const arguments& in) {
              value y = m.add(recurrent{r.cell, reverse, linear}, in);
              arguments outputs{y, value{y.producer, 1}};
              if (r.cell == recurrent_cell::lstm) outputs.push_back(value{y.producer, 2});
              return outputs;
            },
            {{{"batch", 1}, {"seq", 1}}, {{"batch", 3}, {"seq", 7}}, {{"batch", 2}, {"seq", 40}}}, 0.4,
            tolerance{1e-4, 1e-5});
      }
}

TEST(open_kernels, sums_of_segments) {
  const auto sums = [](const std::vector<dim>& rest) {
    std::vector<dim> dims{seq};
    dims.insert(dims.end(), rest.begin(), rest.end());
    check_open(
        {f32(dims)},
        [](module& m, const arguments& in) {
          // Ids ascend, some are beyond the last segment.
          value thirds =
              m.add(elementwise{scalar_function::mul},
                    {m.add(iota{element_type::f32, {seq}, 0}, {}),
                     m.add(broadcast{{seq}}, {m.add(constant{literal::from_doubles(f32({}), {{0.35}})}, {})})});
          value ids = m.add(convert{element_type::i64}, {thirds});
          value total = m.add(segment_sum{9}, {in[0], ids});
          return arguments{m.add(elementwise{scalar_function::neg}, {total})};
        },
        sizes_of_two(), 1, tolerance{1e-4, 1e-4});
  };
  sums({});
  sums({batch});
  sums({batch, 24});
}

}  // namespace
}  // namespace kiln::test
