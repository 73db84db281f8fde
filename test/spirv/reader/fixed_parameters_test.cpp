// Modules whose kernels take buffers only are valid, and give the same bits.
#include "spirv/reader/fixed_parameters.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <numeric>

#include "jit/compile_bytecode.hpp"
#include "jit/targets.hpp"
#include "runtime/executable.hpp"
#include "runtime/host_device.hpp"
#include "spirv/hip/hip_compiler.hpp"
#include "spirv/reader/binary.hpp"

namespace kiln::spirv {
namespace {

constexpr const char* source = R"(
#include <hip/hip_runtime.h>
__global__ void scale(const float* x, float* y, int64_t n, float factor, double offset, int step) {
  int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < n) y[i] = float(x[i] * factor + offset) + float(step);
}
__global__ void negate(float* y, int64_t n) {
  int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < n) y[i] = -y[i];
}
KILN_OPERATOR("test", "Scale")
KILN_OUTPUT(0, float32, same_as(input0))
KILN_LAUNCH(scale, per_element(elements(output0)), input0, output0, elements(output0), 1.5, 0.1, 0 - 7)
KILN_LAUNCH(negate, per_element(elements(output0)), output0, elements(output0))
)";

const object& compiled() {
  static const object o = compile_hip(source, "scale.hip").operators.at(0);
  return o;
}

std::vector<fixed_kernel> numbers(const object& o, std::span<const shape> shapes) {
  std::vector<fixed_kernel> result;
  for (const resolved_launch& l : resolve(o, shapes, shapes).launches) {
    fixed_kernel& k = result.emplace_back(fixed_kernel{l.symbol, {}});
    for (const resolved_argument& a : l.arguments)
      k.parameters.push_back(a.kind == parameter_kind::integer || a.kind == parameter_kind::real ? std::optional(a.bits)
                                                                                                 : std::nullopt);
  }
  return result;
}

std::vector<float> run(const object& o, const literal& x) {
  host_device device(1);
  program p;
  value input = p.main().add_parameter("x", x.type());
  p.main().set_outputs(
      {p.main().add(code_object::make("scale", code_format::amdgcnspirv, p.add_kernel(serialize(o)), "", {x.type()}),
                    {input})},
      {"y"});
  literal y = load(compile_bytecode(p, {.target = find_target("native")}), device).evaluate(std::vector{x}).at(0);
  auto values = y.as<float>();
  return {values.begin(), values.end()};
}

error_kind kind_of(const std::vector<fixed_kernel>& kernels) {
  try {
    fix_parameters(compiled().words, kernels);
  } catch (const error& e) {
    return e.kind();
  }
  return error_kind::mismatch;
}

TEST(fixed_parameters, what_was_a_number_is_a_constant_and_the_results_are_the_same) {
  shape type{element_type::f32, {1000}};
  std::vector<float> x(1000);
  std::iota(x.begin(), x.end(), -500.0f);
  object o = compiled();
  auto kernels = numbers(o, std::vector{type});
  ASSERT_EQ(kernels.size(), 2u);
  EXPECT_EQ(std::bit_cast<float>(static_cast<std::uint32_t>(*kernels[0].parameters[3])), 1.5f);
  o.words = fix_parameters(o.words, kernels);
  EXPECT_EQ(o.words, fix_parameters(compiled().words, kernels));
  for (kernel_launch& l : o.launches)
    std::erase_if(l.parameters, [](const parameter& p) {
      return p.kind == parameter_kind::integer || p.kind == parameter_kind::real;
    });
  EXPECT_EQ(o.launches[0].parameters.size(), 2u);
  EXPECT_NO_THROW(binary{o.words});  // SPIRV-Tools validates it
  auto expected = run(compiled(), literal::of(type, x));
  EXPECT_EQ(expected[500], -(0.1f - 7));
  EXPECT_EQ(run(o, literal::of(type, x)), expected);
}

TEST(fixed_parameters, a_kernel_that_is_not_in_the_list_stays) {
  auto kernels = numbers(compiled(), std::vector{shape{element_type::f32, {8}}});
  EXPECT_EQ(fix_parameters(compiled().words, {}), compiled().words);
  kernels.pop_back();
  object o = compiled();
  o.words = fix_parameters(o.words, kernels);
  std::erase_if(o.launches[0].parameters,
                [](const parameter& p) { return p.kind == parameter_kind::integer || p.kind == parameter_kind::real; });
  shape type{element_type::f32, {8}};
  literal x = literal::of(type, std::vector<float>(8, 2.0f));
  EXPECT_EQ(run(o, x), run(compiled(), x));
}

TEST(fixed_parameters, what_does_not_fit_is_refused) {
  auto sound = numbers(compiled(), std::vector{shape{element_type::f32, {8}}});
  auto spoiled = [&](auto spoil) {
    auto kernels = sound;
    spoil(kernels);
    return kind_of(kernels);
  };
  EXPECT_EQ(kind_of(sound), error_kind::mismatch);  // nothing was thrown
  EXPECT_EQ(spoiled([](auto& k) { k[0].symbol = "absent"; }), error_kind::corrupted);
  EXPECT_EQ(spoiled([](auto& k) { k[0].parameters.pop_back(); }), error_kind::corrupted);
  EXPECT_EQ(spoiled([](auto& k) { k[0].parameters[0] = 1; }), error_kind::corrupted);
  EXPECT_EQ(spoiled([](auto& k) { k[0].parameters[2].reset(); }), error_kind::corrupted);
  EXPECT_EQ(spoiled([](auto& k) { k.push_back(k[0]); }), error_kind::corrupted);
}

}  // namespace
}  // namespace kiln::spirv
