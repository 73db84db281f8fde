#include "ir/module.hpp"

#include <gtest/gtest.h>

#include "ir/error.hpp"
#include "ir/ops/all.hpp"
#include "ir/program.hpp"

using namespace kiln;

namespace {

const shape two_by_three{element_type::f32, {2, 3}};

literal ramp(const shape& s) {
  std::vector<double> values(static_cast<std::size_t>(s.element_count()));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<double>(i) - 2;
  return literal::from_doubles(s, values);
}

// A loop whose body doubles the carried value, and an if around the result.
void build_control_flow(program& p) {
  module& body = p.add_module("body");
  body.add_parameter("iteration", {element_type::i64, {}});
  value go_on = body.add_parameter("condition", {element_type::boolean, {}});
  value x = body.add_parameter("x", two_by_three);
  value doubled = body.add(elementwise{scalar_function::add}, {x, x});
  body.set_outputs({go_on, doubled, x}, {"condition", "x", "seen"});
  module& yes = p.add_module("then");
  value y = yes.add_parameter("x", two_by_three);
  yes.set_outputs({yes.add(elementwise{scalar_function::neg}, {y})}, {"y"});
  module& no = p.add_module("else");
  value n = no.add_parameter("x", two_by_three);
  no.set_outputs({n}, {"y"});
  module& main = p.main();
  value input = main.add_parameter("input", two_by_three);
  value flip = main.add_parameter("flip", {element_type::boolean, {}});
  value trips = main.add_constant(literal::of<std::int64_t>({element_type::i64, {}}, {3}));
  value always = main.add_constant(literal::scalar(element_type::boolean, 1));
  value looped = main.add(loop{1, 3}, {trips, always, input}, {&body});
  value out = main.add(if_else{}, {flip, looped}, {&yes, &no});
  main.set_outputs({out, {looped.producer, 1}}, {"out", "seen"});
}

}  // namespace

TEST(module, edits_keep_users_right) {
  program p;
  module& m = p.main();
  value x = m.add_parameter("x", two_by_three);
  value a = m.add(elementwise{scalar_function::abs}, {x});
  value b = m.add(elementwise{scalar_function::add}, {a, a});
  m.set_outputs({b}, {"y"});
  EXPECT_EQ(a.producer->users().size(), 2u);
  value n = m.insert(b.producer, elementwise{scalar_function::neg}, {x});
  m.replace(a, n);
  m.validate();
  EXPECT_FALSE(m.has_uses(a.producer));
  EXPECT_EQ(m.erase_dead(), 1u);
  EXPECT_THROW(m.erase(n.producer), error);
  EXPECT_EQ(m.str(),
            "module main\n  %0 = parameter \"x\" : f32[2, 3]\n  %1 = neg(%0) : f32[2, 3]\n"
            "  %2 = add(%1, %1) : f32[2, 3]\n  return \"y\": %2\n");
}

TEST(module, outputs_are_uses) {
  program p;
  module& m = p.main();
  value x = m.add_parameter("x", two_by_three);
  value a = m.add(elementwise{scalar_function::abs}, {x}), n = m.add(elementwise{scalar_function::neg}, {x});
  m.set_outputs({a, a, n}, {"first", "second", "third"});
  EXPECT_TRUE(module::has_uses(a.producer));
  EXPECT_THROW(m.erase(a.producer), error);
  m.replace(a, n);
  EXPECT_FALSE(module::has_uses(a.producer));
  EXPECT_EQ(m.outputs(), (std::vector<value>{n, n, n}));
  m.erase(a.producer);
  m.set_outputs({x}, {"only"});
  EXPECT_FALSE(module::has_uses(n.producer));
  EXPECT_EQ(m.erase_dead(), 1u);
}

TEST(shape, sizes_never_wrap) {
  std::int64_t most = std::int64_t{1} << 46;
  EXPECT_EQ((shape{element_type::f64, {most / 2, 2}}).bytes(), std::size_t{1} << 49);
  EXPECT_EQ((shape{element_type::f64, {INT64_MAX, 0}}).bytes(), 0u);
  // 2^62 * 4 bytes and (2^61 + 1) * 8 bytes would be 0 and 8.
  for (const shape& s :
       {shape{element_type::f32, {std::int64_t{1} << 62}}, shape{element_type::f64, {(std::int64_t{1} << 61) + 1}},
        shape{element_type::i4, {most, 2}}, shape{element_type::u8, {most, most}}}) {
    EXPECT_THROW(s.bytes(), error) << s.str();
    EXPECT_THROW(s.element_count(), error) << s.str();
  }
}

TEST(module, shapes_that_do_not_fit_are_refused) {
  program p;
  value x = p.main().add_parameter("x", two_by_three);
  value y = p.main().add_parameter("y", {element_type::f32, {3, 2}});
  EXPECT_THROW(p.main().add(elementwise{scalar_function::add}, {x, y}), error);
  EXPECT_THROW(p.main().replace(x, y), error);
}

TEST(module, sort_restores_order_and_finds_cycles) {
  program p;
  module& m = p.main();
  value x = m.add_parameter("x", two_by_three);
  value a = m.add(elementwise{scalar_function::abs}, {x});
  value b = m.add(elementwise{scalar_function::neg}, {x});
  m.set_outputs({a}, {"y"});
  m.set_input(a.producer, 0, b);
  EXPECT_THROW(m.validate(), error);
  m.sort();
  m.validate();
  m.set_input(b.producer, 0, a);
  EXPECT_THROW(m.sort(), error);
}

TEST(module, control_flow_runs_and_copies) {
  program p;
  build_control_flow(p);
  p.validate();
  literal x = ramp(two_by_three);
  for (bool flip : {false, true}) {
    auto out = evaluate(p.main(), std::vector{x, literal::scalar(element_type::boolean, flip)});
    EXPECT_EQ(out[0].at(0), (flip ? -1 : 1) * 8 * x.at(0));
    EXPECT_EQ(out[1].type(), (shape{element_type::f32, {3, 2, 3}}));
    EXPECT_EQ(out[1].at(12), 4 * x.at(0));
  }
  program copy = p.clone();
  copy.validate();
  EXPECT_EQ(copy.str(), p.str());
}

TEST(module, inlining_replaces_parameters) {
  program p;
  module& part = p.add_module("part");
  value a = part.add_parameter("a", two_by_three);
  part.set_outputs({part.add(elementwise{scalar_function::exp}, {a}), a}, {"e", "a"});
  value x = p.main().add_parameter("x", two_by_three);
  auto outputs = p.main().inline_module(part, std::vector{x});
  ASSERT_EQ(outputs.size(), 2u);
  EXPECT_EQ(outputs[1], x);
  EXPECT_EQ(outputs[0].producer->op().name(), "exp");
}

TEST(program, symbols_bind_within_their_range) {
  program p;
  dim batch = dim::symbol("batch");
  p.symbols["batch"] = {1, 8, {}};
  value x = p.main().add_parameter("x", {element_type::f32, {batch, 6}});
  p.main().set_outputs({p.main().add(reshape{{batch * 2, 3}}, {x})}, {"y"});
  program bound = p.bind({{"batch", 4}});
  EXPECT_EQ(bound.main().outputs()[0].type(), (shape{element_type::f32, {8, 3}}));
  EXPECT_TRUE(bound.symbols.empty());
  EXPECT_THROW(p.bind({{"batch", 9}}), error);
  EXPECT_THROW(p.bind({{"bach", 4}}), error);
}

TEST(code_object, portable_ones_refuse_to_run) {
  shape s{element_type::f32, {2}};
  program p;
  value x = p.main().add_parameter("x", s);
  auto hash = p.add_kernel(std::vector<std::byte>(5));
  p.main().set_outputs({p.main().add(code_object::make("k", code_format::mlir_bytecode, hash, "", {s}), {x})}, {"y"});
  try {
    evaluate(p.main(), std::vector{ramp(s)});
    FAIL() << "a portable kernel ran";
  } catch (const error& e) {
    EXPECT_EQ(e.kind(), error_kind::not_native);
  }
}

TEST(operation, attributes_make_an_equal_operation) {
  convolution c{{2, 1}, {1, 1}, {0, 1}, {1, 0}, 4, tensor_layout::channels_last};
  operation op = c;
  EXPECT_EQ(make_operation(op.name(), op.attributes()), op);
  EXPECT_EQ(op.str(),
            "convolution{strides=[2, 1], dilations=[1, 1], pads_begin=[0, 1], pads_end=[1, 0], groups=4, "
            "layout=channels_last}");
  EXPECT_THROW(make_operation("convolutoin", {}), error);
  EXPECT_THROW(make_operation("convolution", {{"stride", std::int64_t(1)}}), error);
  EXPECT_THROW(make_operation("convolution", {{"groups", std::string("4")}}), error);
  EXPECT_THROW(make_operation("convolution", {{"layout", std::string("sideways")}}), error);
}
