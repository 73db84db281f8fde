// Kernels that one kernel for all sizes becomes for given ones read the same copy of 16-bit weights, if some of them
// need a copy (codegen/open_origin.hpp, ir/shared_layout.hpp).
#include <algorithm>

#include "gpu_targets.hpp"
#include "ir/shared_layout.hpp"
#include "jit/targets.hpp"
#include "mlir_bridge/kernel/kernel_bytecode.hpp"
#include "mlir_bridge/kernel/portable_kernel.hpp"

namespace kiln::test {
namespace {

constexpr auto f16 = element_type::f16;
constexpr std::int64_t depth = 2048, columns = 4096;
const dim sequence = dim::symbol("sequence");

std::unique_ptr<module> product_of(const dim& rows, bool transposed = false) {
  const std::vector<dim> weights = transposed ? std::vector<dim>{columns, depth} : std::vector<dim>{depth, columns};
  return gpu_fusion({{f16, {rows, depth}}, {f16, weights}}, [&](module& m, const std::vector<value>& p) {
    return std::vector<value>{m.add(dot{.transpose_a = false, .transpose_b = transposed, .type = f16}, p)};
  });
}

native_kernel finalize_at(const module& fusion, std::int64_t rows, const char* target) {
  static compiler_context context;
  portable_kernel kernel = portable_kernel::parse(context, write_kernel(fusion, "tested"));
  std::vector<shape> inputs = kernel.input_shapes();
  inputs[0].dims[0] = rows;
  kernel.specialize(inputs);
  return finalize(std::move(kernel), find_target(target), {});
}

// What the kernel makes of its weights; empty if it reads them as they are.
std::string layout_of(const native_kernel& kernel) {
  std::string found;
  for (const launch& l : kernel.launches) {
    const bool reads = std::ranges::any_of(
        l.arguments, [](const launch_argument& a) { return a.kind == buffer_kind::input && a.index == 1; });
    if (!l.prepare) {
      EXPECT_TRUE(found.empty() || !reads) << l.symbol << " reads the weights as they are";
    } else {
      EXPECT_TRUE(found.empty());
      found = shared_layout_of(l.symbol);
      EXPECT_FALSE(found.empty()) << l.symbol;
    }
  }
  return found;
}

TEST(shared_weights, kernels_of_all_numbers_of_rows_read_one_copy) {
  const std::string copy = "_shared_f16_4096_rows_of_2048_pitch_2048_depth_first";
  const auto open = product_of(sequence);
  for (const char* target : {"sm_90", "sm_80", "gfx942"}) {
    for (std::int64_t rows : {1, 8, 32, 512})
      EXPECT_EQ(layout_of(finalize_at(*open, rows, target)), copy) << target << rows;
    EXPECT_EQ(layout_of(finalize_for(*open, find_target(target))), copy) << target;
  }
}

TEST(shared_weights, weights_with_the_depth_last_need_no_copy) {
  const auto open = product_of(sequence, true);
  for (std::int64_t rows : {1, 8, 32, 512}) EXPECT_EQ(layout_of(finalize_at(*open, rows, "sm_90")), "");
  EXPECT_EQ(layout_of(finalize_for(*open, find_target("sm_90"))), "");
}

// Nothing else reads a copy: the kernel has always had its size, or its rows are always many, or the weights depend on
// the open size, so that they are no weights.
TEST(shared_weights, other_kernels_of_many_rows_read_weights_as_they_are) {
  EXPECT_EQ(layout_of(finalize_for(*product_of(512), find_target("sm_90"))), "");
  EXPECT_EQ(layout_of(finalize_at(*product_of(sequence * 197), 197 * 2, "sm_90")), "");
  const auto both =
      gpu_fusion({{f16, {sequence, 512}}, {f16, {512, sequence * 64}}}, [&](module& m, const std::vector<value>& p) {
        return std::vector<value>{m.add(dot{.transpose_a = false, .transpose_b = false, .type = f16}, p)};
      });
  compiler_context context;
  portable_kernel kernel = portable_kernel::parse(context, write_kernel(*both, "tested"));
  kernel.specialize(std::vector<shape>{{f16, {512, 512}}, {f16, {512, 512 * 64}}});
  EXPECT_EQ(layout_of(finalize(std::move(kernel), find_target("sm_90"), {})), "");
}

// Where all symbols are 1 there is no row, as of a model that looks at windows of its input. f32 weights are divided by
// the kernel, so that the choice of its tile asks for the rows of other kernels, too.
TEST(shared_weights, kernels_may_have_no_row_where_all_symbols_are_1) {
  for (const dim& rows : {sequence - dim(1), sequence / dim(8), (sequence - dim(400)) / dim(160)})
    for (const char* target : {"sm_90", "sm_80", "gfx942"}) {
      const auto open =
          gpu_fusion({{element_type::f32, {rows, 512}}, {element_type::f32, {512, 512}}},
                     [&](module& m, const std::vector<value>& p) {
                       return std::vector<value>{
                           m.add(dot{.transpose_a = false, .transpose_b = false, .type = element_type::f32}, p)};
                     });
      compiler_context context;
      portable_kernel kernel = portable_kernel::parse(context, write_kernel(*open, "tested"));
      std::vector<shape> inputs = kernel.input_shapes();
      inputs[0].dims[0] = 96;
      kernel.specialize(inputs);
      EXPECT_FALSE(finalize(std::move(kernel), find_target(target), {}).launches.empty()) << target << rows.str();
    }
}

TEST(shared_weights, names_of_other_launches_say_nothing) {
  EXPECT_EQ(shared_layout_of("mul_shared_f16_0_pack"), "");
  const shared_layout layout{"bf16", 3, 5, 8, false};
  EXPECT_EQ(shared_layout_of("dot_0_pack" + layout.text()), layout.text());
}

}  // namespace
}  // namespace kiln::test
