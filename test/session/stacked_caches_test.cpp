// Caches of all layers in one tensor: answers are those of the reference implementation, with caches that are copied
// once and with caches that stay in the memory of the input.
#include <gtest/gtest.h>
#include <stdlib.h>

#include "aot/pipeline.hpp"
#include "ir/error.hpp"
#include "ir/ops/all.hpp"
#include "runtime/io_buffers.hpp"
#include "session/session.hpp"
#include "test/support/scratch_folder.hpp"

namespace kiln::testing {
namespace {

constexpr std::int64_t layers = 3;

// Each layer scatters a row into its cache and sums it up; the next layer's row depends on the sum.
program stacked() {
  program p;
  module& m = p.main();
  const shape cache{element_type::f32, {layers, 2, 2, 512, 64}}, row{element_type::f32, {2, 2, 1, 64}};
  const value all = m.add_parameter("cache", cache), position = m.add_parameter("position", {element_type::i64, {1}});
  value rows = m.add_parameter("rows", row);
  const value places = m.add(broadcast{row.dims}, {m.add(reshape{{1, 1, 1, 1}}, {position})});
  std::vector<value> states;
  for (std::int64_t layer = 0; layer < layers; ++layer) {
    const value number = m.add_constant(literal::scalar(element_type::i64, static_cast<double>(layer)));
    const value updated =
        m.add(scatter_elements{2, scatter_reduction::none}, {m.add(gather{0}, {all, number}), places, rows});
    states.push_back(m.add(reshape{{1, 2, 2, 512, 64}}, {updated}));
    rows = m.add(reduce{reduction_kind::sum, {2}, true}, {updated});
  }
  m.set_outputs({m.add(concat{0}, states), rows}, {"state", "answer"});
  return p;
}

literal numbers(const shape& type, double first) {
  std::vector<double> values;
  for (std::int64_t i = 0; i < type.element_count(); ++i) values.push_back(first + 0.25 * static_cast<double>(i % 37));
  return literal::from_doubles(type, values);
}

class stacked_caches : public ::testing::Test {
 protected:
  stacked_caches() { ::setenv("XDG_CONFIG_HOME", (folder / "config").c_str(), 1); }  // where this user's keys are
  session open(bool shares) {
    session_options o{.threads = 1};
    o.cache.folder = folder / "cache";
    o.compiling = compile_place::this_process;
    o.specialization = specialization::eager;
    if (shares) o.updated_inputs = {"cache"}, o.share_updated = true;
    return {compile(stacked(), {}), std::string("stacked"), std::move(o)};
  }
  scratch_folder folder;
  const std::vector<literal> inputs{numbers({element_type::f32, {layers, 2, 2, 512, 64}}, 1), literal::from_int64({3}),
                                    numbers({element_type::f32, {2, 2, 1, 64}}, -2)};
  const std::vector<literal> expected = evaluate(stacked().main(), inputs);
};

TEST_F(stacked_caches, are_copied_once) {
  session copies = open(false);
  const auto opened = copies.at(dim_bindings{});
  const executable& exe = opened->executable();
  EXPECT_FALSE(exe.plan().outputs[0].shares);
  EXPECT_EQ(exe.plan().report.copies, 0u) << exe.plan().str();
  // The copy of the cache, and a launch for each layer's row and sum, which may need one for the position.
  EXPECT_LE(exe.plan().report.launches, 2u * layers + 2u) << exe.plan().str();
  EXPECT_EQ(opened->run(inputs), expected);
}

TEST_F(stacked_caches, stay_in_the_memory_of_the_input) {
  session shares = open(true);
  const auto opened = shares.at(dim_bindings{});
  const executable& exe = opened->executable();
  ASSERT_EQ(exe.plan().outputs[0].shares, 0u);
  EXPECT_EQ(exe.plan().report.copies, 0u) << exe.plan().str();
  EXPECT_LE(exe.plan().report.launches, 2u * layers + 1u) << exe.plan().str();
  EXPECT_EQ(opened->run(inputs), expected);

  io_buffers tensors(exe);
  EXPECT_EQ(tensors.inputs()[0].data(), tensors.outputs()[0].data());
  execution_context context = exe.make_context();
  tensors.upload(inputs);
  for (int turn = 0; turn < 2; ++turn) {
    exe.run(context, tensors.inputs(), tensors.outputs());
    EXPECT_EQ(tensors.download(), expected) << turn;
  }
  std::vector<std::byte> other(tensors.outputs()[0].size());
  std::vector<executable::output_span> outputs(tensors.outputs().begin(), tensors.outputs().end());
  outputs[0] = other;
  EXPECT_THROW(exe.run(context, tensors.inputs(), outputs), error);
}

}  // namespace
}  // namespace kiln::testing
