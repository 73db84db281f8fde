// Sizes that an open kernel does not serve, and operations that have no open kernel.
#include <gtest/gtest.h>

#include <algorithm>

#include "ir/ops/cache_update.hpp"
#include "mlir_bridge/codegen/open_checks.hpp"
#include "mlir_bridge/kinds/kind.hpp"
#include "open_case.hpp"

namespace kiln::test {
namespace {

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
