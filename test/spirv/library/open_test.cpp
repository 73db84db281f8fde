// HIP kernels that are compiled once for all sizes: the library's beside its reference, and a kernel that looks at the
// size of its grid.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "jit/compile_bytecode.hpp"
#include "jit/finalize_spirv.hpp"
#include "jit/open_forms.hpp"
#include "jit/targets.hpp"
#include "runtime/executable.hpp"
#include "runtime/host_device.hpp"
#include "spirv/hip/hip_compiler.hpp"
#include "spirv/library/library.hpp"
#include "spirv/library/reference.hpp"

namespace kiln::spirv {
namespace {

const dim n = dim::symbol("n"), m = dim::symbol("m");

// The first kernel of this name whose first input has the type.
object named(const std::string& name, element_type type, const attribute_values& given = {}) {
  for (object o : library()) {
    const std::vector<shape> first{{type, {1}}};
    if (o.name != name || evaluate_type(o.restrictions.at(0).type, {first, {}, &o.attributes}) != type) continue;
    for (const auto& [attribute, value] : given)
      std::ranges::find(o.attributes, attribute, &attribute_values::value_type::first)->second = value;
    return o;
  }
  throw error(error_kind::internal, "the library has no " + name);
}

program program_of(const object& o, const std::vector<shape>& inputs) {
  program p;
  for (const char* symbol : {"n", "m"}) p.symbols[symbol] = {0, 1 << 20, {}};
  std::vector<value> arguments;
  for (const shape& s : inputs) arguments.push_back(p.main().add_parameter("p" + std::to_string(arguments.size()), s));
  const content_hash payload = p.add_kernel(serialize(o));
  const value made =
      p.main().add(code_object::make(o.name, code_format::amdgcnspirv, payload, "", infer(o, inputs)), arguments);
  std::vector<value> outputs;
  std::vector<std::string> names;
  for (std::uint32_t i = 0; i < made.producer->outputs().size(); ++i) {
    outputs.push_back({made.producer, i});
    names.push_back("o" + std::to_string(i));
  }
  p.main().set_outputs(outputs, names);
  return p;
}

// Integers are 0 or 1, which are numbers of images, too.
literal numbers(const shape& type, std::mt19937& random) {
  const auto count = static_cast<std::size_t>(type.element_count());
  if (type.type == element_type::i64) {
    std::vector<std::int64_t> values(count);
    for (std::int64_t& v : values) v = random() % 2;
    return literal::of(type, values);
  }
  std::vector<float> values(count);
  for (float& v : values) v = static_cast<float>(random() % 5) - 2;
  return literal::of(type, values);
}

// Compiles the kernel once, runs it at all sizes and compares with the reference. GPUs must have such a form, too.
void check(const object& o, const std::vector<shape>& inputs, const std::vector<dim_bindings>& sizes,
           bool on_gpus = true) {
  static host_device device(2);
  std::mt19937 random(1);
  const program open = program_of(o, inputs);
  const instruction& kernel = *open.main().outputs()[0].producer;
  ASSERT_EQ(missing_open_form(open, kernel, processor::cpu), "") << o.name;
  ASSERT_EQ(missing_open_form(open, kernel, processor::gpu), on_gpus ? "" : o.name);
  const program native = compile_bytecode(open, {.target = find_target("native"), .open = true});
  const auto reference = find_library_reference(o);
  for (const dim_bindings& at : sizes) {
    const executable exe = load(native.bind(at), device, {.sizes = &at});
    std::vector<literal> data;
    for (const plan_port& port : exe.plan().inputs) data.push_back(numbers(port.type, random));
    const auto results = exe.evaluate(data);
    std::vector<shape> types;
    for (const literal& l : results) types.push_back(l.type());
    const auto wanted = reference(data, types);
    for (std::size_t k = 0; k < results.size(); ++k)
      for (std::int64_t i = 0; i < types[k].element_count(); ++i)
        ASSERT_NEAR(results[k].at(i), wanted[k].at(i), 1e-4) << o.name << " output " << k << " at " << i;
  }
  for (const char* target : {"gfx90a", "gfx1100", "sm_80", "sm_90"}) {
    if (!on_gpus) break;
    const native_kernel made = finalize_spirv(serialize(o), inputs, kernel.outputs(), find_target(target));
    EXPECT_TRUE(is_open(made)) << o.name << " " << target;
    EXPECT_FALSE(made.object.empty());
  }
}

TEST(open_library, non_zero) {
  const std::vector<dim_bindings> sizes{{{"n", 1}, {"m", 1}},   {{"n", 0}, {"m", 3}},    {{"n", 1023}, {"m", 1}},
                                        {{"n", 64}, {"m", 16}}, {{"n", 5000}, {"m", 7}}, {{"n", 3}, {"m", 341}}};
  for (element_type type : {element_type::f32, element_type::i64})
    check(named("NonZero", type), {{type, {n, m}}}, sizes);
}

TEST(open_library, chosen_boxes) {
  check(named("NonMaxSuppression", element_type::f32, {{"max_output_boxes_per_class", std::int64_t{3}}}),
        {{element_type::f32, {n, m, 4}}, {element_type::f32, {n, 2, m}}},
        {{{"n", 1}, {"m", 1}}, {{"n", 2}, {"m", 40}}, {{"n", 3}, {"m", 2}}});
}

TEST(open_library, regions_of_images) {
  check(named("RoiAlign", element_type::f32, {{"output_height", std::int64_t{2}}, {"output_width", std::int64_t{3}}}),
        {{element_type::f32, {2, 3, m, m + dim(1)}}, {element_type::f32, {n, 4}}, {element_type::i64, {n}}},
        {{{"n", 0}, {"m", 4}}, {{"n", 1}, {"m", 9}}, {{"n", 300}, {"m", 5}}});
}

TEST(open_library, a_workgroup_of_open_size_has_no_form_on_gpus) {
  const std::vector<shape> x{{element_type::f32, {m, n}}};
  const program p = program_of(named("Sort", element_type::f32), x);
  EXPECT_EQ(missing_open_form(p, *p.main().outputs()[0].producer, processor::gpu), "Sort");
}

TEST(open_library, a_requirement_is_checked_for_the_sizes) {
  // Elements of images and classes of boxes and scores are equal for n == m only.
  const object o = named("NonMaxSuppression", element_type::f32, {{"max_output_boxes_per_class", std::int64_t{3}}});
  const std::vector<shape> inputs{{element_type::f32, {1, n, 4}}, {element_type::f32, {1, 2, m}}};
  const native_kernel made = finalize_spirv(serialize(o), inputs, infer(o, inputs), find_target("x86-64-v3"));
  EXPECT_TRUE(serves(made, {{"n", 5}, {"m", 5}}));
  EXPECT_FALSE(serves(made, {{"n", 5}, {"m", 6}}));
}

TEST(open_library, grids_of_several_open_dims) {
  const auto compiled = compile_hip(R"(#include <hip/hip_runtime.h>
__global__ void positions(float* y, int width, int height) {
  for (int row = blockIdx.y; row < height; row += gridDim.y)
    for (int column = blockIdx.x * blockDim.x + threadIdx.x; column < width; column += gridDim.x * blockDim.x)
      y[row * width + column] = row * 1000 + column;
}
KILN_OPERATOR("test", "Positions")
KILN_OUTPUT(0, type(input0), same_as(input0))
KILN_LAUNCH(positions, per_tile(ceil_div(dim(output0, 1), 64), ceil_div(dim(output0, 0), 2), 1, 32, 1, 1), output0, dim(output0, 1), dim(output0, 0))
)",
                                    "positions.hip");
  const object& o = compiled.operators.at(0);
  host_device device(2);
  const std::vector<shape> x{{element_type::f32, {n, m}}};
  const program native = compile_bytecode(program_of(o, x), {.target = find_target("native"), .open = true});
  for (const auto& [height, width] : {std::pair{1, 1}, {2, 64}, {7, 65}, {30, 200}}) {
    const dim_bindings at{{"n", height}, {"m", width}};
    const executable exe = load(native.bind(at), device, {.sizes = &at});
    const literal y = exe.evaluate(std::vector{literal::filled(exe.plan().inputs[0].type, 0)}).at(0);
    for (int i = 0; i < height * width; ++i) ASSERT_EQ(y.at(i), i / width * 1000 + i % width) << height << " " << width;
  }
  for (const char* target : {"gfx942", "gfx1201", "sm_90"}) {
    const native_kernel made = finalize_spirv(serialize(o), x, x, find_target(target));
    EXPECT_EQ(made.launches.at(0).grid_y, 1);
    EXPECT_EQ(made.launches[0].open_grid->substitute({{"n", 30}, {"m", 200}}), dim(4 * 15));
  }
}

}  // namespace
}  // namespace kiln::spirv
