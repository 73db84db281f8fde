// Launches of open kernels on a GPU: the grid is computed from the sizes, and the table of sizes is passed by value.
#include <array>
#include <cstring>

#include "ir/error.hpp"
#include "runtime/executable.hpp"
#include "runtime/io_buffers.hpp"
#include "runtime/plan_pointers.hpp"
#include "runtime/plan_template.hpp"
#include "stand_in_driver.hpp"

namespace kiln::testing {
namespace {

class gpu_open_launches : public on_stand_in {};
INSTANTIATE_TEST_SUITE_P(stand_in, gpu_open_launches, ::testing::ValuesIn(stand_ins), name_of);

// y = kernel(x), bound to a batch of 5.
program open_program() {
  program p;
  module& m = p.main();
  native_kernel kernel = make_kernel({make_launch("twice", 1, {{buffer_kind::sizes, 0}, in(0), out(0)})});
  const dim batch = dim::symbol("batch");
  kernel.sizes = {batch, batch * 3};
  kernel.launches[0].open_grid = batch + 1;
  kernel.bounded_sizes = {batch * 4};
  m.set_outputs({call(p, m, "open", kernel, {m.add_parameter("x", vector_type)}, {vector_type})}, {"y"});
  return p;
}

TEST_P(gpu_open_launches, sizes_are_passed_by_value) {
  auto device = open_stand_in(GetParam());
  const program p = open_program();
  const dim_bindings sizes{{"batch", 5}};
  plan_options options;
  options.sizes = &sizes;
  const plan made = make_plan(p, *device, options);
  std::array<std::byte, 64> arena{};
  plan_pointers pointers(made, *device, arena.data(), arena.data());
  const auto* step = std::get_if<launch_step>(&made.blocks[0].steps.at(0).what);
  ASSERT_NE(step, nullptr);
  const launch_request request = pointers.launch(*step);
  EXPECT_EQ(request.grid, 6);
  ASSERT_EQ(request.parameters.size(), 3u);
  std::array<std::int64_t, 2> table{};
  std::memcpy(table.data(), request.parameters[0], sizeof table);
  EXPECT_EQ(table, (std::array<std::int64_t, 2>{5, 15}));
}

// A workgroup per row needs to know its own number only.
TEST_P(gpu_open_launches, a_grid_may_be_all_that_is_open) {
  auto device = open_stand_in(GetParam());
  program p;
  module& m = p.main();
  native_kernel kernel = make_kernel({make_launch("twice", 1, {in(0), out(0)})});
  kernel.launches[0].open_grid = dim::symbol("batch") * 2;
  m.set_outputs({call(p, m, "open", kernel, {m.add_parameter("x", vector_type)}, {vector_type})}, {"y"});
  const dim_bindings sizes{{"batch", 5}};
  plan_options options;
  options.sizes = &sizes;
  const plan made = make_plan(p, *device, options);
  const auto* step = std::get_if<launch_step>(&made.blocks[0].steps.at(0).what);
  ASSERT_NE(step, nullptr);
  EXPECT_EQ(step->grid, 10);
  EXPECT_EQ(step->argument_count, 2u);
}

TEST_P(gpu_open_launches, offsets_that_need_more_than_32_bits_are_refused) {
  auto device = open_stand_in(GetParam());
  const program p = open_program();
  const dim_bindings sizes{{"batch", std::int64_t{1} << 30}};
  plan_options options;
  options.sizes = &sizes;
  try {
    make_plan(p, *device, options);
    FAIL() << "a plan was made";
  } catch (const error& e) {
    EXPECT_EQ(e.kind(), error_kind::unsupported);
    EXPECT_NE(std::string(e.what()).find("32 bits"), std::string::npos) << e.what();
  }
}

// One template, several sizes: grids, tables and bounds follow them.
TEST_P(gpu_open_launches, a_template_fills_in_grids_and_tables) {
  auto device = open_stand_in(GetParam());
  plan_template plans(open_program(), *device);
  for (std::int64_t batch : {5, 1, 9}) {
    const auto made = plans.at({{"batch", batch}});
    ASSERT_TRUE(made);
    std::array<std::byte, 64> arena{};
    plan_pointers pointers(*made, *device, arena.data(), arena.data());
    const launch_request request = pointers.launch(std::get<launch_step>(made->blocks[0].steps.at(0).what));
    EXPECT_EQ(request.grid, batch + 1);
    std::array<std::int64_t, 2> table{};
    std::memcpy(table.data(), request.parameters[0], sizeof table);
    EXPECT_EQ(table, (std::array<std::int64_t, 2>{batch, 3 * batch}));
  }
  EXPECT_FALSE(plans.at({{"batch", std::int64_t{1} << 30}}));
  EXPECT_FALSE(plans.at({}));
}

// A version of a kernel that is not used at some sizes needs no scratch memory there.
TEST_P(gpu_open_launches, scratch_of_empty_grids_takes_no_memory) {
  auto device = open_stand_in(GetParam());
  program p;
  module& m = p.main();
  const dim batch = dim::symbol("batch"), many = dim::min(batch, 9) / 9;  // 1 from 9 on
  native_kernel kernel = make_kernel(
      {make_launch("sum_parts", 1, {in(0), scratch(0)}), make_launch("sum_total", 1, {scratch(0), out(0)})});
  for (launch& l : kernel.launches) l.open_grid = batch * many;
  kernel.launches.push_back(make_launch("twice", 1, {in(0), out(0)}));
  kernel.launches.back().open_grid = batch * (1 - many);
  kernel.scratch.resize(1);
  kernel.scratch[0].open_bytes = batch * 4096;
  m.set_outputs({call(p, m, "open", kernel, {m.add_parameter("x", vector_type)}, {vector_type})}, {"y"});
  plan_template plans(p, *device);
  for (std::int64_t size : {5, 9, 6, 10}) {
    const auto made = plans.at({{"batch", size}});
    ASSERT_TRUE(made);
    EXPECT_EQ(made->report.launches, size < 9 ? 1u : 2u);
    EXPECT_EQ(made->arena_bytes, size < 9 ? 0u : static_cast<std::size_t>(size) * 4096);
  }
}

// y = kernel(x) with a tensor map of 32 elements that are open rows.
program program_of_open_map(const dim& rows) {
  program p;
  module& m = p.main();
  native_kernel kernel = make_kernel({make_launch("twice_mapped", n, {in(0), out(0)})});
  tensor_map map{0, element_type::f32, {4, 0}, {16}, {4, 1}, 0, 128};
  map.open_outer = rows;
  kernel.launches[0].tensor_maps.push_back(map);
  m.set_outputs({call(p, m, "open", kernel, {m.add_parameter("x", vector_type)}, {vector_type})}, {"y"});
  return p;
}

TEST_P(gpu_open_launches, a_template_fills_in_tensor_maps) {
  auto device = open_stand_in(GetParam());
  const dim batch = dim::symbol("batch");
  plan_template plans(program_of_open_map(batch), *device);
  for (std::int64_t rows : {std::int64_t{1}, std::int64_t{n / 4}}) {
    const auto made = plans.at({{"batch", rows}});
    ASSERT_TRUE(made);
    tensor_map map;
    made->tensor_maps.at(0).fill(map);
    EXPECT_EQ(map.dims, (std::vector<std::int64_t>{4, rows}));
    EXPECT_FALSE(map.open_outer);
  }
  EXPECT_FALSE(plans.at({{"batch", n / 4 + 1}})) << "larger than its buffer";
  const dim_bindings sizes{{"batch", 2}};
  plan_options options;
  options.sizes = &sizes;
  tensor_map map;
  make_plan(program_of_open_map(batch), *device, options).tensor_maps.at(0).fill(map);
  EXPECT_EQ(map.dims.back(), 2);
}

TEST_P(gpu_open_launches, a_series_encodes_tensor_maps_again) {
  if (GetParam().api == gpu::api::hip) GTEST_SKIP() << "skipped: HIP has no tensor maps";
  auto device = open_stand_in(GetParam());
  plan_template plans(program_of_open_map(dim::symbol("batch")), *device);
  auto series = plans.series({{"batch", 1}}, {{"batch", n / 4}});
  ASSERT_TRUE(series);
  std::array<std::byte, 64> arena{};
  plan_pointers pointers(*series->plan(), *device, arena.data(), arena.data());
  const auto launch = [&] {
    pointers.launch(std::get<launch_step>(series->plan()->blocks[0].steps.at(0).what));
    return control.calls(GetParam().encode);
  };
  control.reset();
  EXPECT_EQ(launch(), 1u);
  EXPECT_EQ(launch(), 1u);
  ASSERT_TRUE(series->move_to({{"batch", 2}}));
  EXPECT_EQ(launch(), 2u);
  EXPECT_FALSE(series->move_to({{"batch", n}}));
  EXPECT_EQ(launch(), 2u);
}

// Two launches with open grids, and one that has always the same.
program chain_of_open_grids() {
  program p;
  module& m = p.main();
  native_kernel open = make_kernel({make_launch("twice", 1, {in(0), out(0)})});
  open.launches[0].open_grid = dim::symbol("batch") * 2;
  const value x = m.add_parameter("x", vector_type);
  const value once = call(p, m, "first", open, {x}, {vector_type});
  m.set_outputs({call(p, m, "second", open, {twice(p, m, once)}, {vector_type})}, {"y"});
  return p;
}

// Only the nodes that depend on the sizes are patched, and only when these change.
TEST_P(gpu_open_launches, a_series_patches_its_graph) {
  auto device = open_stand_in(GetParam());
  plan_template plans(chain_of_open_grids(), *device);
  auto series = plans.series({{"batch", 5}}, {{"batch", 8}});
  ASSERT_TRUE(series);
  const executable running(series->plan(), *device);
  const auto steps = [&]() -> const std::vector<plan_step>& { return series->plan()->blocks[0].steps; };
  const auto grid = [&](std::size_t i) { return std::get<launch_step>(steps().at(i).what).grid; };
  execution_context context = running.make_context({.policy = graph_policy::on, .order = graph_order::chain});
  io_buffers tensors(running);
  std::vector<float> expected = ramp(1.5f);
  tensors.upload(std::vector{vector_literal(expected)});
  for (float& v : expected) v *= 8;
  const auto run = [&] {
    running.run(context, tensors.inputs(), tensors.outputs());
    EXPECT_EQ(tensors.download()[0].bytes().size(), vector_literal(expected).bytes().size());
    return context.report().patches;
  };
  EXPECT_EQ(run(), 0u);
  EXPECT_EQ(run(), 0u);
  ASSERT_TRUE(series->move_to({{"batch", 6}}));
  EXPECT_EQ(grid(0), 12);
  EXPECT_EQ(grid(2), 12);
  EXPECT_EQ(steps()[1].revision, 0u);
  EXPECT_EQ(run(), 2u);
  EXPECT_EQ(run(), 2u);
  ASSERT_TRUE(series->move_to({{"batch", 6}}));
  EXPECT_EQ(run(), 2u);
  ASSERT_TRUE(series->move_to({{"batch", 1}}));
  EXPECT_EQ(run(), 4u);
  EXPECT_EQ(context.report().captures, 1u);
  EXPECT_FALSE(series->move_to({{"batch", 0}}));  // launches nothing
  EXPECT_EQ(grid(0), 2);
}

TEST_P(gpu_open_launches, sizes_must_be_known) {
  auto device = open_stand_in(GetParam());
  const program p = open_program();
  try {
    make_plan(p, *device);
    FAIL() << "a plan was made";
  } catch (const error& e) {
    EXPECT_EQ(e.kind(), error_kind::unsupported);
    EXPECT_NE(std::string(e.what()).find("open it with a session"), std::string::npos) << e.what();
  }
}

}  // namespace
}  // namespace kiln::testing
