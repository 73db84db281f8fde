// Contexts of plans of one template begin with the memory, the streams and the graphs that ended ones left.
#include "runtime/spare_contexts.hpp"

#include <gmock/gmock.h>

#include "graph_programs.hpp"
#include "runtime/open_plans.hpp"

namespace kiln::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class gpu_spare_contexts : public on_stand_in {
 protected:
  // y = 8 * x, in three launches of the kernel.
  static program eight_times(const dim& elements, const native_kernel& kernel) {
    program p;
    p.symbols = {{"batch", {1, 1 << 20, {}}}};
    module& m = p.main();
    const shape type{element_type::f32, {elements}};
    value y = m.add_parameter("x", type);
    for (int i = 0; i < 3; ++i) y = call(p, m, "open", kernel, {y}, {type});
    m.set_outputs({y}, {"y"});
    return p;
  }
  static program eight_times(const dim& elements) {
    native_kernel kernel = make_kernel({make_launch("twice", 1, {in(0), out(0)})});
    kernel.launches[0].open_grid = elements;
    return eight_times(elements, kernel);
  }
  // The kernel has one version for up to 100 elements and another for more.
  static program of_two_versions(const dim& elements) {
    native_kernel kernel =
        make_kernel({make_launch("twice", 1, {in(0), out(0)}), make_launch("twice", 1, {in(0), out(0)})});
    const dim many = dim::min(1, dim::max(0, elements - dim(100)));
    kernel.launches[0].open_grid = elements * (dim(1) - many);
    kernel.launches[1].open_grid = elements * many;
    kernel.launches[1].lds_bytes = 16;
    return eight_times(elements, kernel);
  }

  void run(const executable& e, execution_context& context) {
    io_buffers tensors(e);
    const shape& type = e.plan().inputs[0].type;
    std::vector<double> x, expected;
    for (std::int64_t i = 0; i < type.element_count(); ++i)
      x.push_back(static_cast<double>(i)), expected.push_back(8.0 * static_cast<double>(i));
    tensors.upload(std::vector{literal::from_doubles(type, x)});
    e.run(context, tensors.inputs(), tensors.outputs());
    EXPECT_EQ(tensors.download()[0], literal::from_doubles(type, expected));
  }
};
INSTANTIATE_TEST_SUITE_P(stand_in, gpu_spare_contexts, ::testing::ValuesIn(stand_ins), name_of);

TEST_P(gpu_spare_contexts, later_sizes_patch_the_graphs_of_earlier_ones) {
  auto device = open_stand_in(GetParam());
  open_plans plans(eight_times(dim::symbol("batch")), *device, {});
  {
    const executable first(plans.at({{"batch", 500}}), *device);
    execution_context context = first.make_context();
    run(first, context);
    EXPECT_EQ(context.report().captures, 0u) << "the first run may be the only one";
    run(first, context);
    run(first, context);
    EXPECT_EQ(context.report().captures, 1u);
    EXPECT_EQ(context.report().replays, 2u);
  }
  for (std::int64_t batch : {9, 3, 400}) {
    const executable next(plans.at({{"batch", batch}}), *device);
    control.reset();
    execution_context context = next.make_context();
    for (const char* word : {"Alloc", "Malloc", "Free", "Stream", "Event"})
      EXPECT_THAT(control.log(), Not(HasSubstr(word)));
    run(next, context);
    EXPECT_EQ(context.report().captures, 0u);
    EXPECT_EQ(context.report().patches, 3u);
    EXPECT_EQ(context.report().replays, 1u);
    run(next, context);
    EXPECT_EQ(context.report().failures, 0u) << context.report().reason;
  }
}

// Other versions of kernels are other graphs, and those of both are kept. A first run makes none.
TEST_P(gpu_spare_contexts, graphs_of_other_launches_are_kept_beside) {
  auto device = open_stand_in(GetParam());
  open_plans plans(of_two_versions(dim::symbol("batch")), *device, {});
  const auto captures = [&](std::int64_t batch, int runs) {
    const executable e(plans.at({{"batch", batch}}), *device);
    execution_context context = e.make_context();
    for (int i = 0; i < runs; ++i) run(e, context);
    EXPECT_EQ(context.report().failures, 0u) << context.report().reason;
    return context.report().captures;
  };
  EXPECT_EQ(captures(50, 2), 1u);
  EXPECT_EQ(captures(500, 1), 0u) << "the graph that is there does not fit";
  EXPECT_EQ(captures(600, 2), 1u);
  for (int round = 0; round < 3; ++round)
    for (std::int64_t batch : {60, 700}) EXPECT_EQ(captures(batch, 2), 0u) << batch;
}

// A size that is asked for often measures like a plan of its own.
TEST_P(gpu_spare_contexts, sizes_that_come_back_are_measured) {
  auto device = open_stand_in(GetParam());
  open_plans plans(eight_times(dim::symbol("batch")), *device, {});
  const executable e(plans.at({{"batch", 5}}), *device);
  execution_context context = e.make_context();
  io_buffers tensors(e);
  EXPECT_TRUE(context.measuring());
  e.settle(context, tensors.inputs(), tensors.outputs());
  EXPECT_FALSE(context.measuring());
  EXPECT_TRUE(context.decision());
  run(e, context);
}

TEST_P(gpu_spare_contexts, more_room_is_made_and_too_much_is_given_back) {
  auto device = open_stand_in(GetParam());
  open_plans plans(eight_times(dim::symbol("batch")), *device, {});
  for (std::int64_t batch : {1 << 20, 7, 1 << 20, 1 << 18}) {
    const executable e(plans.at({{"batch", batch}}), *device);
    execution_context context = e.make_context();
    EXPECT_GE(context.arena().size(), e.plan().arena_bytes);
    EXPECT_LE(context.arena().size(), std::max<std::size_t>(e.plan().arena_bytes * 5 / 4, 2 << 20));
    run(e, context);
    run(e, context);
  }
}

// Two contexts at the same time have nothing in common.
TEST_P(gpu_spare_contexts, contexts_share_nothing) {
  auto device = open_stand_in(GetParam());
  open_plans plans(eight_times(dim::symbol("batch")), *device, {});
  const executable a(plans.at({{"batch", 5}}), *device), b(plans.at({{"batch", 8}}), *device);
  for (int round = 0; round < 2; ++round) {
    execution_context one = a.make_context(), other = b.make_context();
    EXPECT_NE(one.arena().data(), other.arena().data());
    for (int i = 0; i < 3; ++i) run(a, one), run(b, other);
  }
}

}  // namespace
}  // namespace kiln::testing
