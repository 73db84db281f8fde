// Every anchor but the contractions: axes, odd extents, element types, prologues and epilogues.
#include "harness.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "ir/ops/cache_update.hpp"

namespace kiln::test {
namespace {

using in = const std::vector<value>&;

value neg(module& m, value v) { return m.add(elementwise{scalar_function::neg}, {v}); }
value add(module& m, value a, value b) { return m.add(elementwise{scalar_function::add}, {a, b}); }

TEST(anchor, reduces_any_axes) {
  const std::vector<std::vector<std::int64_t>> all_axes{{2}, {0}, {1}, {0, 1}, {1, 2}, {0, 2}, {0, 1, 2}};
  for (auto kind :
       {reduction_kind::sum, reduction_kind::mean, reduction_kind::max, reduction_kind::min, reduction_kind::product})
    for (const auto& axes : all_axes)
      for (bool keep : {false, true}) {
        SCOPED_TRACE(std::string(enum_name(kind)));
        auto m = fusion({f32({3, 5, 75})},
                        [&](module& m, in p) { return std::vector<value>{m.add(reduce{kind, axes, keep}, {p[0]})}; });
        check(*m, 2, 1, tolerance{1e-4, 1e-5});
        if (kind != reduction_kind::sum) break;
      }
}

TEST(anchor, reduces_every_type) {
  for (auto type : {element_type::f64, element_type::f16, element_type::bf16, element_type::i64, element_type::i32,
                    element_type::i8, element_type::u8})
    for (auto kind : {reduction_kind::sum, reduction_kind::mean, reduction_kind::max, reduction_kind::min})
      for (std::vector<std::int64_t> axes : {std::vector<std::int64_t>{1}, std::vector<std::int64_t>{0}}) {
        SCOPED_TRACE(std::string(name(type)) + std::string(enum_name(kind)));
        check(*fusion({typed(type, {13, 37})},
                      [&](module& m, in p) { return std::vector<value>{m.add(reduce{kind, axes, false}, {p[0]})}; }));
      }
}

TEST(anchor, reduces_small_and_large) {
  for (std::int64_t n : {1, 2, 7, 15, 16, 17, 63, 64, 65, 1000, 40000}) {
    SCOPED_TRACE(n);
    check(*fusion({f32({2, n})},
                  [&](module& m, in p) {
                    return std::vector<value>{m.add(reduce{reduction_kind::sum, {1}, false}, {p[0]})};
                  }),
          1, 1, tolerance{1e-4, 1e-3});
    check(*fusion({f32({3, n})}, [&](module& m, in p) {
      return std::vector<value>{m.add(reduce{reduction_kind::max, {0}, false}, {p[0]})};
    }));
  }
}

TEST(anchor, reduce_takes_prologue_and_epilogue) {
  auto m = fusion({f32({6, 50}), f32({50}), f32({6})}, [&](module& m, in p) {
    value x = m.add(elementwise{scalar_function::mul}, {p[0], m.add(broadcast{{6, 50}}, {p[1]})});
    value s = m.add(reduce{reduction_kind::sum, {1}, false}, {x});
    value y = add(m, s, p[2]);
    return std::vector<value>{y, neg(m, y)};
  });
  check(*m, 1, 1, tolerance{1e-4, 1e-5});
}

// A loop over the operands of a concat that are alike, and code of its own for every other one.
TEST(anchor, reduces_a_concat) {
  const std::vector<std::vector<std::int64_t>> all_widths{
      {64, 32, 32, 32, 32, 32}, {32, 32, 32, 32}, {16, 48, 16}, {48, 48, 48, 48, 16}, {5, 32, 32, 32, 32}};
  for (const auto& widths : all_widths)
    for (bool keep : {false, true}) {
      SCOPED_TRACE(widths.size());
      std::vector<shape> inputs;
      std::int64_t total = 0;
      for (std::int64_t width : widths) inputs.push_back(f32({2, 3, 3, width})), total += width;
      inputs.push_back(f32({total}));
      check(*fusion(inputs,
                    [&](module& m, in p) {
                      value all = m.add(concat{3}, {p.begin(), p.end() - 1});
                      value scaled = m.add(elementwise{scalar_function::mul},
                                           {all, m.add(broadcast{{2, 3, 3, total}}, {p.back()})});
                      return std::vector<value>{m.add(reduce{reduction_kind::mean, {1, 2}, keep}, {scaled})};
                    }),
            2, 1, tolerance{1e-4, 1e-5});
    }
}

TEST(anchor, extremes_keep_nan) {
  std::vector<double> numbers(2 * 40, 1.0);
  numbers[25] = std::numeric_limits<double>::quiet_NaN();
  numbers[45] = -std::numeric_limits<double>::infinity();
  auto data = literal::from_doubles(f32({2, 40}), numbers);
  for (std::int64_t axis : {0, 1})
    for (auto kind : {reduction_kind::max, reduction_kind::min})
      check(*fusion({f32({2, 40})},
                    [&](module& m, in p) { return std::vector<value>{m.add(reduce{kind, {axis}, false}, {p[0]})}; }),
            std::span(&data, 1));
  for (std::int64_t axis : {0, 1})
    for (bool last : {false, true})
      check(*fusion({f32({2, 40})},
                    [&](module& m, in p) {
                      return std::vector<value>{m.add(arg_reduce{true, axis, false, last}, {p[0]})};
                    }),
            std::span(&data, 1));
}

TEST(anchor, arg_reduces) {
  for (auto type : {element_type::f32, element_type::i8, element_type::i64, element_type::f16})
    for (std::int64_t axis : {0, 1, 2})
      for (bool largest : {false, true})
        for (bool last : {false, true})
          check(*fusion({typed(type, {3, 5, 51})},
                        [&](module& m, in p) {
                          return std::vector<value>{m.add(arg_reduce{largest, axis, axis == 1, last}, {p[0]})};
                        }),
                3, 0.5);
}

TEST(anchor, softmax) {
  for (auto type : {element_type::f32, element_type::f16, element_type::f64})
    for (std::int64_t axis : {0, 1, 2})
      for (bool logarithm : {false, true}) {
        SCOPED_TRACE(std::string(name(type)) + " axis " + std::to_string(axis));
        check(*fusion({typed(type, {3, 5, 53})},
                      [&](module& m, in p) { return std::vector<value>{m.add(softmax{axis, logarithm}, {p[0]})}; }),
              1, 3);
      }
  for (std::int64_t n : {1, 3, 16, 31, 9000})
    check(*fusion({f32({3, n})}, [&](module& m, in p) { return std::vector<value>{m.add(softmax{1, false}, {p[0]})}; }),
          1, 3);
}

TEST(anchor, softmax_with_prologue_and_mask) {
  for (std::int64_t n : {53, 9001}) {
    auto m = fusion({f32({2, 4, n}), f32({n})}, [&](module& m, in p) {
      value masked = add(m, p[0], m.add(broadcast{{2, 4, n}}, {p[1]}));
      return std::vector<value>{m.add(convert{element_type::f16}, {m.add(softmax{2, false}, {masked})})};
    });
    check(*m, 1, 2);
  }
}

TEST(anchor, normalize_over_any_axes) {
  const std::vector<std::vector<std::int64_t>> all_axes{{2}, {1}, {1, 2}, {0, 1}};
  for (const auto& axes : all_axes)
    for (bool centered : {true, false}) {
      check(
          *fusion({f32({3, 5, 77})},
                  [&](module& m, in p) { return std::vector<value>{m.add(normalize{axes, 1e-5, centered}, {p[0]})}; }),
          1, 2, tolerance{1e-4, 1e-5});
      auto m = fusion({f32({3, 5, 77}), f32({77}), f32({77})}, [&](module& m, in p) {
        value n = m.add(normalize{axes, 1e-5, centered}, {add(m, p[0], p[0])});
        value scaled = m.add(elementwise{scalar_function::mul}, {n, m.add(broadcast{{3, 5, 77}}, {p[1]})});
        return std::vector<value>{add(m, scaled, m.add(broadcast{{3, 5, 77}}, {p[2]}))};
      });
      check(*m, 1, 2, tolerance{1e-4, 1e-5});
    }
  check(*fusion({typed(element_type::f16, {4, 96})},
                [&](module& m, in p) { return std::vector<value>{m.add(normalize{{1}, 1e-5, true}, {p[0]})}; }));
  check(*fusion({f32({2, 7, 6, 33})},
                [&](module& m, in p) { return std::vector<value>{m.add(normalize{{1, 2}, 1e-5, true}, {p[0]})}; }),
        1, 1, tolerance{1e-4, 1e-5});
}

// Each row is divided among work items, in a launch for statistics and one for the result.
TEST(anchor, normalize_divides_few_long_rows) {
  struct row {
    std::vector<dim> dims;
    std::vector<std::int64_t> axes;
  };
  for (const row& r :
       {row{{1, 19, 43, 64}, {1, 2, 3}}, row{{2, 33, 32, 33}, {1, 2, 3}}, row{{1, 37, 31, 2, 33}, {1, 2, 4}}})
    for (element_type type : {element_type::f32, element_type::f16})
      for (bool centered : {true, false}) {
        const auto m = fusion({typed(type, r.dims), f32({r.dims.back()})}, [&](module& m, in p) {
          value wide = m.add(convert{element_type::f32}, {p[0]});
          value n = m.add(normalize{r.axes, 1e-5, centered}, {add(m, wide, m.add(broadcast{r.dims}, {p[1]}))});
          return std::vector<value>{m.add(convert{type}, {n})};
        });
        check(*m, 1, 2, type == element_type::f16 ? tolerance{2e-3, 2e-3} : tolerance{1e-4, 1e-5});
        const loaded_kernel kernel(*m, runnable_targets().front());
        EXPECT_EQ(std::ranges::count_if(kernel.native().launches,
                                        [](const launch& l) { return l.symbol.ends_with("statistics"); }),
                  1);
      }
}

TEST(anchor, pools_channels_last) {
  for (auto kind : {pooling_kind::max, pooling_kind::average})
    for (std::int64_t channels : {3, 16, 37, 64})
      for (bool count_padding : {false, true})
        for (bool ceil_mode : {false, true}) {
          pooling op{
              kind, {3, 2}, {2, 2}, {1, 1}, {1, 0}, {1, 1}, count_padding, ceil_mode, tensor_layout::channels_last};
          check(*fusion({f32({2, 9, 8, channels})},
                        [&](module& m, in p) { return std::vector<value>{neg(m, m.add(op, {p[0]}))}; }));
        }
  pooling dilated{pooling_kind::max, {3}, {1}, {2}, {2}, {2}, false, false, tensor_layout::channels_last};
  check(
      *fusion({f32({1, 11, 20})}, [&](module& m, in p) { return std::vector<value>{m.add(dilated, {neg(m, p[0])})}; }));
  check(*fusion({f32({1, 11, 37})}, [&](module& m, in p) {
    return std::vector<value>{m.add(dilated, {m.add(slice{{0, 0, 16}, {1, 11, 20}, {1, 1, 1}}, {p[0]})})};
  }));
  pooling bytes{pooling_kind::max, {2, 2}, {2, 2}, {1, 1}, {0, 0}, {0, 0}, false, false, tensor_layout::channels_last};
  check(*fusion({typed(element_type::u8, {1, 6, 6, 20})},
                [&](module& m, in p) { return std::vector<value>{m.add(bytes, {p[0]})}; }));
}

TEST(anchor, sums_cumulatively) {
  for (auto type : {element_type::f32, element_type::i64, element_type::f16})
    for (std::int64_t axis : {0, 1, 2})
      for (bool exclusive : {false, true})
        for (bool reverse : {false, true})
          check(*fusion({typed(type, {3, 5, 29})},
                        [&](module& m, in p) {
                          return std::vector<value>{m.add(cumulative_sum{axis, exclusive, reverse}, {p[0]})};
                        }),
                1, 0.5);
}

TEST(anchor, top_k) {
  for (auto type : {element_type::f32, element_type::i8, element_type::f16})
    for (std::int64_t axis : {0, 1, 2})
      for (bool largest : {false, true})
        for (std::int64_t k : {1, 2, 6})
          check(*fusion({typed(type, {7, 6, 45})},
                        [&](module& m, in p) {
                          value v = m.add(top_k{k, axis, largest}, {p[0]});
                          return std::vector<value>{v, value{v.producer, 1}};
                        }),
                1, 0.4);
  check(*fusion({f32({1, 5000})}, [&](module& m, in p) {
    value v = m.add(top_k{300, 1, true}, {p[0]});
    return std::vector<value>{value{v.producer, 1}};
  }));
  // What is ranked is computed by the same kernel, and flattened. Rounded to f16, many sums are equal.
  for (auto type : {element_type::f32, element_type::f16})
    check(*fusion({typed(type, {5, 6, 45}), typed(type, {45})},
                  [&](module& m, in p) {
                    value sums = add(m, neg(m, p[0]), m.add(broadcast{{5, 6, 45}}, {p[1]}));
                    value v = m.add(top_k{40, 1, true}, {m.add(reshape{{5, 270}}, {sums})});
                    return std::vector<value>{v, value{v.producer, 1}};
                  }),
          1, 0.4);
}

// The rows that are normalized are results as well.
TEST(anchor, normalize_writes_its_rows) {
  for (bool centered : {false, true})
    for (auto type : {element_type::f32, element_type::f16})
      for (std::int64_t n : {1, 7, 96, 1000}) {
        auto m = fusion({typed(type, {19, n}), typed(element_type::i64, {5}), typed(type, {n})}, [&](module& m, in p) {
          value rows = m.add(gather{0}, {p[0], p[1]});
          value wide = m.add(convert{element_type::f32}, {rows});
          value result = m.add(convert{type}, {m.add(normalize{{1}, 1e-5, centered}, {wide})});
          return std::vector<value>{
              rows, m.add(elementwise{scalar_function::mul}, {result, m.add(broadcast{{5, n}}, {p[2]})})};
        });
        check(*m, 1, 1, tolerance{2e-3, 2e-3});
      }
}

TEST(anchor, scatters_elements) {
  for (auto reduction : {scatter_reduction::none, scatter_reduction::add, scatter_reduction::mul,
                         scatter_reduction::min, scatter_reduction::max})
    for (std::int64_t axis : {0, 1})
      for (bool epilogue : {false, true})
        check(*fusion({f32({12, 15}), typed(element_type::i64, {6, 9}), f32({6, 9})}, [&](module& m, in p) {
          value v = m.add(scatter_elements{axis, reduction}, p);
          return std::vector<value>{epilogue ? neg(m, v) : v};
        }));
}

TEST(anchor, scatters_nd) {
  for (auto reduction : {scatter_reduction::none, scatter_reduction::add}) {
    check(*fusion({f32({12, 11, 18}), typed(element_type::i64, {7, 2}), f32({7, 18})}, [&](module& m, in p) {
      return std::vector<value>{m.add(scatter_nd{reduction}, {p[0], p[1], neg(m, p[2])})};
    }));
    check(*fusion({f32({12, 11}), typed(element_type::i64, {3, 4, 2}), f32({3, 4})},
                  [&](module& m, in p) { return std::vector<value>{neg(m, m.add(scatter_nd{reduction}, p))}; }));
  }
}

TEST(anchor, recurrent_cells) {
  struct row {
    recurrent_cell cell;
    std::int64_t gates;
  };
  for (row r : {row{recurrent_cell::rnn, 1}, row{recurrent_cell::gru, 3}, row{recurrent_cell::lstm, 4}})
    for (bool reverse : {false, true})
      for (bool linear : {false, true})
        for (std::int64_t hidden : {5, 32}) {
          if (linear && r.cell != recurrent_cell::gru) continue;
          std::int64_t g = r.gates * hidden;
          std::vector<shape> shapes{f32({4, 3, g}), f32({g, hidden}), f32({g}), f32({3, hidden})};
          if (r.cell == recurrent_cell::lstm) shapes.push_back(f32({3, hidden}));
          check(*fusion(shapes,
                        [&](module& m, in p) {
                          value y = m.add(recurrent{r.cell, reverse, linear}, p);
                          std::vector<value> outputs{y, value{y.producer, 1}};
                          if (r.cell == recurrent_cell::lstm) outputs.push_back(value{y.producer, 2});
                          return outputs;
                        }),
                1, 0.4, tolerance{1e-4, 1e-5});
        }
}

TEST(anchor, updates_caches) {
  for (std::int64_t places : {1, 2})
    for (std::int64_t axis : {1, 2, 3}) {
      SCOPED_TRACE(axis);
      std::vector<dim> rows{2, 3, 7, 20};
      rows[static_cast<std::size_t>(axis)] = 2;
      check(*fusion({f32({2, 3, 7, 20}), f32(rows), typed(element_type::i64, {places})},
                    [&](module& m, in p) {
                      return std::vector<value>{m.add(cache_update{axis}, {p[0], neg(m, p[1]), p[2]})};
                    }),
            3);
    }
  // The rows are moved on their way, fill the cache, or come in other types.
  check(*fusion({f32({1, 4, 9, 8}), f32({1, 3, 4, 8}), typed(element_type::i32, {1})}, [&](module& m, in p) {
    return std::vector<value>{m.add(cache_update{2}, {p[0], m.add(transpose{{0, 2, 1, 3}}, {p[1]}), p[2]})};
  }));
  check(*fusion({f32({2, 5, 3}), f32({2, 5, 3}), typed(element_type::i64, {2})},
                [&](module& m, in p) { return std::vector<value>{m.add(cache_update{1}, {p[0], p[1], p[2]})}; }));
  for (auto type : {element_type::f16, element_type::i8, element_type::f64})
    check(*fusion({typed(type, {2, 50, 3}), typed(type, {2, 5, 3}), typed(element_type::i64, {2})},
                  [&](module& m, in p) { return std::vector<value>{m.add(cache_update{1}, {p[0], p[1], p[2]})}; }));
}

}  // namespace
}  // namespace kiln::test
