// Open kernels are compiled once and must be correct for all sizes. Outputs and scratch are filled with NaN bytes
// before each run.
#include <gtest/gtest.h>

#include <algorithm>

#include "harness.hpp"
#include "ir/ops/cache_update.hpp"
#include "ir/ops/segment_sum.hpp"
#include "mlir_bridge/codegen/open_checks.hpp"
#include "mlir_bridge/kinds/kind.hpp"

namespace kiln::test {
namespace {

const dim batch = dim::symbol("batch"), seq = dim::symbol("seq"), past = dim::symbol("past");

using arguments = std::vector<value>;

std::vector<dim_bindings> sizes_of_two() {
  std::vector<dim_bindings> result;
  for (std::int64_t b : {1, 3})
    for (std::int64_t s : {1, 2, 7, 8, 16, 33, 130, 1000}) result.push_back({{"batch", b}, {"seq", s}});
  return result;
}

value add(module& m, value a, value b) { return m.add(elementwise{scalar_function::add}, {a, b}); }

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

TEST(open_kernels, convolutions) {
  const dim height = dim::symbol("height"), width = dim::symbol("width");
  struct form {
    std::int64_t channels, features, groups, window, stride, dilation, pad;
  };
  for (const form& f :
       {form{3, 40, 1, 3, 2, 1, 1}, {16, 24, 1, 1, 1, 1, 0}, {20, 20, 20, 3, 1, 1, 1}, {8, 12, 2, 2, 1, 2, 0}}) {
    check_open(
        {f32({batch, height, width, f.channels}), f32({f.window, f.window, f.channels / f.groups, f.features}),
         f32({f.features})},
        [&](module& m, const arguments& in) {
          const convolution op{
              {f.stride, f.stride},        {f.dilation, f.dilation}, {f.pad, f.pad}, {f.pad, f.pad}, f.groups,
              tensor_layout::channels_last};
          value made = m.add(op, {in[0], in[1]});
          return arguments{add(m, made, m.add(broadcast{made.type().dims}, {in[2]}))};
        },
        {{{"batch", 1}, {"height", 3}, {"width", 3}},
         {{"batch", 2}, {"height", 7}, {"width", 19}},
         {{"batch", 1}, {"height", 16}, {"width", 33}}},
        0.5, tolerance{1e-4, 1e-5});
  }
}

TEST(open_kernels, channels_of_a_larger_image) {
  const dim height = dim::symbol("height"), width = dim::symbol("width");
  const std::vector<dim_bindings> sizes{{{"batch", 1}, {"height", 3}, {"width", 3}},
                                        {{"batch", 2}, {"height", 7}, {"width", 19}}};
  const auto part = [&](module& m, value image) {
    return m.add(slice{{0, 0, 0, 8}, {batch, height, width, 20}, {1, 1, 1, 1}}, {image});
  };
  for (std::int64_t groups : {1, 2, 20})
    check_open(
        {f32({batch, height, width, 40}), f32({3, 3, 20 / groups, 40})},
        [&](module& m, const arguments& in) {
          const convolution op{{1, 2}, {1, 1}, {1, 1}, {1, 1}, groups, tensor_layout::channels_last};
          return arguments{m.add(op, {part(m, in[0]), in[1]})};
        },
        sizes, 0.5, tolerance{1e-4, 1e-5});
  const pooling op{pooling_kind::max,           {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}, false, false,
                   tensor_layout::channels_last};
  check_open(
      {f32({batch, height, width, 40})},
      [&](module& m, const arguments& in) { return arguments{m.add(op, {part(m, in[0])})}; }, sizes);
}

TEST(open_kernels, pooling) {
  const dim height = dim::symbol("height"), width = dim::symbol("width");
  for (pooling_kind kind : {pooling_kind::max, pooling_kind::average})
    for (bool counts : {false, true}) {
      const pooling op{kind, {3, 2}, {2, 1}, {1, 2}, {1, 1}, {1, 0}, counts, false, tensor_layout::channels_last};
      check_open({f32({batch, height, width, 21})},
                 [&](module& m, const arguments& in) { return arguments{m.add(op, {in[0]})}; },
                 {{{"batch", 1}, {"height", 3}, {"width", 4}}, {{"batch", 2}, {"height", 9}, {"width", 14}}});
    }
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

// Conditions that shape rules cannot decide while dims are open, and a file may state anything.
TEST(open_kernels, sizes_that_do_not_fit_are_not_served) {
  auto serves = [](const std::vector<shape>& inputs, const std::function<arguments(module&, const arguments&)>& build,
                   const dim_bindings& sizes) {
    const auto f = fusion(inputs, build);
    return std::ranges::all_of(codegen::open_checks(*f), [&](const dim& check) {
      const std::int64_t value = check.substitute(sizes).value();
      EXPECT_TRUE(value == 0 || value <= -(std::int64_t{1} << 31)) << check.str();
      return value == 0;
    });
  };
  const shape ids = typed(element_type::i64, {past});
  struct row {
    const char* what;
    std::vector<shape> inputs;
    std::function<arguments(module&, const arguments&)> build;
    dim_bindings good, bad;
  };
  const std::vector<row> rows{
      {"a slice that is longer than its operand",
       {f32({seq}), f32({past})},
       [](module& m, const arguments& in) { return arguments{add(m, m.add(slice{{1}, {past}, {1}}, {in[0]}), in[1])}; },
       {{"seq", 5}, {"past", 4}},
       {{"seq", 5}, {"past", 5}}},
      {"a slice that ends before its operand",
       {f32({seq}), f32({past})},
       [](module& m, const arguments& in) {
         return arguments{add(m, m.add(slice{{6}, {past}, {-2}}, {in[0]}), in[1])};
       },
       {{"seq", 7}, {"past", 4}},
       {{"seq", 7}, {"past", 5}}},
      {"a slice that begins after its operand",
       {f32({seq}), f32({past})},
       [](module& m, const arguments& in) {
         return arguments{add(m, m.add(slice{{6}, {past}, {-2}}, {in[0]}), in[1])};
       },
       {{"seq", 6}, {"past", 0}},
       {{"seq", 6}, {"past", 1}}},
      {"a reshape to more elements",
       {f32({seq}), f32({past})},
       [](module& m, const arguments& in) { return arguments{add(m, m.add(reshape{{past}}, {in[0]}), in[1])}; },
       {{"seq", 5}, {"past", 5}},
       {{"seq", 5}, {"past", 500000}}},
      {"a size below zero",
       {f32({seq}), f32({past})},
       [](module& m, const arguments& in) {
         return arguments{m.add(concat{0}, {m.add(slice{{0}, {seq - 4}, {1}}, {in[0]}), in[1]})};
       },
       {{"seq", 4}, {"past", 9}},
       {{"seq", 3}, {"past", 9}}},
      {"rows of nothing",
       {f32({seq, 4}), ids},
       [](module& m, const arguments& in) { return arguments{m.add(gather{0}, {in[0], in[1]})}; },
       {{"seq", 1}, {"past", 5}},
       {{"seq", 0}, {"past", 5}}},
      {"an edge of nothing",
       {f32({seq})},
       [](module& m, const arguments& in) { return arguments{m.add(pad{{1}, {0}, pad_mode::edge, 0}, {in[0]})}; },
       {{"seq", 1}},
       {{"seq", 0}}},
      {"more indices than lines",
       {f32({seq, 4}), typed(element_type::i64, {past, 4})},
       [](module& m, const arguments& in) { return arguments{m.add(gather_elements{1}, {in[0], in[1]})}; },
       {{"seq", 5}, {"past", 5}},
       {{"seq", 5}, {"past", 6}}},
      {"more updates than lines",
       {f32({seq, 4}), typed(element_type::i64, {past, 4}), f32({past, 4})},
       [](module& m, const arguments& in) { return arguments{m.add(scatter_elements{1}, {in[0], in[1], in[2]})}; },
       {{"seq", 5}, {"past", 5}},
       {{"seq", 5}, {"past", 6}}},
      {"more rows than the cache holds",
       {f32({2, seq, 4}), f32({2, past, 4}), typed(element_type::i64, {1})},
       [](module& m, const arguments& in) { return arguments{m.add(cache_update{1}, {in[0], in[1], in[2]})}; },
       {{"seq", 5}, {"past", 5}},
       {{"seq", 5}, {"past", 6}}},
      {"more than there are to choose from",
       {f32({seq})},
       [](module& m, const arguments& in) { return arguments{m.add(top_k{3, 0, true}, {in[0]})}; },
       {{"seq", 3}},
       {{"seq", 2}}},
  };
  for (const row& r : rows) {
    EXPECT_TRUE(serves(r.inputs, r.build, r.good)) << r.what;
    EXPECT_FALSE(serves(r.inputs, r.build, r.bad)) << r.what;
  }
  // What holds for all sizes needs no condition.
  const auto sound = fusion({f32({batch, seq, 12})}, [](module& m, const arguments& in) {
    value later = m.add(slice{{0, 1, 0}, {batch, seq, 12}, {1, 1, 1}},
                        {m.add(concat{1}, {in[0], m.add(slice{{0, 0, 0}, {batch, 1, 12}, {1, 1, 1}}, {in[0]})})});
    return arguments{m.add(reshape{{batch, seq, 3, 4}}, {later})};
  });
  const auto checks = codegen::open_checks(*sound);
  ASSERT_EQ(checks.size(), 1u) << "the first of seq must be there";
  EXPECT_EQ(checks[0].substitute({{"seq", 1}, {"batch", 1}}).value(), 0);
}

// The generated kernel has the conditions.
TEST(open_kernels, conditions_travel_with_the_kernel) {
  const auto f = fusion({f32({seq}), f32({past})}, [](module& m, const arguments& in) {
    return arguments{add(m, m.add(reshape{{past}}, {in[0]}), in[1])};
  });
  const loaded_kernel kernel(*f, runnable_targets().front());
  EXPECT_TRUE(serves(kernel.native(), {{"seq", 5}, {"past", 5}}));
  EXPECT_FALSE(serves(kernel.native(), {{"seq", 5}, {"past", 6}}));
}

// `past` is a size of the result that has nothing to do with `seq`.
TEST(open_kernels, resizes) {
  std::vector<dim_bindings> sizes;
  for (std::int64_t s : {1, 5, 49, 130})
    for (std::int64_t p : {1, 49, 100}) sizes.push_back({{"batch", 1 + s % 2}, {"seq", s}, {"past", p}});
  struct form {
    dim size;
    double scale;
  };
  for (resize_mode mode : {resize_mode::nearest, resize_mode::linear, resize_mode::cubic})
    for (resize_coordinates coordinates :
         {resize_coordinates::half_pixel, resize_coordinates::pytorch_half_pixel, resize_coordinates::align_corners,
          resize_coordinates::asymmetric, resize_coordinates::half_pixel_symmetric})
      for (const form& f : {form{past, 0}, {seq * 2, 2}, {seq * 49 / 10, 4.9}})
        for (bool last : {false, true}) {
          // Coordinates and modes do not depend on each other; neither do sizes and axes.
          const bool usual = coordinates == resize_coordinates::half_pixel;
          if ((mode == resize_mode::cubic || last) && !usual) continue;
          SCOPED_TRACE(f.size.str() + (last ? " last" : "") + " mode " + std::to_string(static_cast<int>(mode)) +
                       " coordinates " + std::to_string(static_cast<int>(coordinates)));
          auto dims = [&](const dim& d) {
            return last ? std::vector<dim>{batch, 3, d} : std::vector<dim>{batch, d, 20};
          };
          resize op;
          op.dims = dims(f.size);
          op.scales = last ? std::vector<double>{1, 1, f.scale} : std::vector<double>{1, f.scale, 1};
          op.mode = mode, op.coordinates = coordinates;
          op.exclude_outside = mode == resize_mode::cubic && last;
          check_open(
              {f32(dims(seq)), f32(op.dims)},
              [&](module& m, const arguments& in) { return arguments{add(m, m.add(op, {in[0]}), in[1])}; }, sizes, 1,
              tolerance{1e-4, 1e-5});
        }
}

TEST(open_kernels, nearest_neighbours_of_every_rule) {
  for (resize_nearest rule : {resize_nearest::round_prefer_floor, resize_nearest::round_prefer_ceil,
                              resize_nearest::floor, resize_nearest::ceil}) {
    resize op;
    op.dims = {past, 3}, op.scales = {0, 1};
    op.coordinates = resize_coordinates::asymmetric, op.nearest = rule;
    check_open({typed(element_type::i32, {seq, 3}), typed(element_type::i32, {past, 3})},
               [&](module& m, const arguments& in) { return arguments{add(m, m.add(op, {in[0]}), in[1])}; },
               {{{"seq", 7}, {"past", 49}}, {{"seq", 100}, {"past", 33}}, {{"seq", 64}, {"past", 64}}});
    op.dims = {seq / 49, 3}, op.scales = {1.0 / 49, 1};
    check_open({typed(element_type::i32, {seq, 3})},
               [&](module& m, const arguments& in) { return arguments{m.add(op, {in[0]})}; },
               {{{"seq", 49}}, {{"seq", 4900}}});
  }
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

TEST(open_kernels, transposed_convolutions) {
  const dim height = dim::symbol("height"), width = dim::symbol("width");
  struct form {
    std::vector<std::int64_t> window, strides, dilations, begin, end, more;
    std::int64_t channels, features, groups;
  };
  for (const form& f : {form{{2, 2}, {2, 2}, {1, 1}, {0, 0}, {0, 0}, {0, 0}, 16, 40, 1},
                        {{4, 4}, {2, 2}, {1, 1}, {1, 1}, {1, 1}, {0, 0}, 5, 3, 1},
                        {{3, 3}, {1, 1}, {2, 2}, {2, 2}, {2, 2}, {0, 0}, 12, 10, 1},
                        {{3, 2}, {2, 4}, {3, 2}, {1, 0}, {2, 1}, {1, 0}, 12, 10, 2},
                        {{3, 3}, {4, 6}, {6, 4}, {0, 3}, {1, 0}, {0, 0}, 8, 8, 1},
                        {{2, 2}, {3, 4}, {1, 1}, {0, 0}, {0, 0}, {1, 2}, 8, 5, 1},
                        {{4, 4}, {2, 2}, {1, 1}, {1, 1}, {1, 1}, {0, 0}, 10, 10, 10}})
    for (bool heavy : {false, true})
      check_open(
          {f32({batch, height, width, f.channels}), f32({f.window[0], f.window[1], f.features / f.groups, f.channels}),
           f32({f.features})},
          [&](module& m, const arguments& in) {
            value made = m.add(transposed_convolution{f.strides, f.dilations, f.begin, f.end, f.more, f.groups,
                                                      tensor_layout::channels_last},
                               {in[0], in[1]});
            value sum = add(m, made, m.add(broadcast{made.type().dims}, {in[2]}));
            return arguments{heavy ? m.add(elementwise{scalar_function::sigmoid}, {sum}) : sum};
          },
          {{{"batch", 1}, {"height", 3}, {"width", 3}},
           {{"batch", 2}, {"height", 7}, {"width", 19}},
           {{"batch", 1}, {"height", 16}, {"width", 33}}},
          0.5, tolerance{1e-4, 1e-5});
}

TEST(open_kernels, operations_without_one_are_named) {
  std::string missing;
  const auto open_channels = fusion({f32({1, 8, 8, seq}), f32({3, 3, seq, 8})}, [](module& m, const arguments& in) {
    return arguments{m.add(convolution{{1, 1}, {1, 1}, {0, 0}, {0, 0}, 1, tensor_layout::channels_last}, in)};
  });
  EXPECT_FALSE(has_open_form(*open_channels, processor::cpu, &missing));
  EXPECT_EQ(missing, "convolution");
}

}  // namespace
}  // namespace kiln::test
