#include "ir/bind_shapes.hpp"

#include <gtest/gtest.h>

#include "ir/error.hpp"

using namespace kiln;

namespace {

const dim past = dim::symbol("past"), seq = dim::symbol("seq");

shape f32(std::vector<dim> dims) { return {element_type::f32, std::move(dims)}; }

std::string refusal(std::vector<given_shape> inputs) {
  try {
    bind_shapes(inputs);
  } catch (const error& e) {
    return e.what();
  }
  return "";
}

}  // namespace

TEST(bind_shapes, an_expression_gives_its_only_unknown_symbol) {
  std::vector<given_shape> inputs{{"mask", f32({2, past + seq}), f32({2, 12})}, {"ids", f32({2, seq}), f32({2, 5})}};
  EXPECT_EQ(bind_shapes(inputs), (dim_bindings{{"past", 7}, {"seq", 5}}));
  inputs = {{"x", f32({seq * 3 + 1}), f32({13})}};
  EXPECT_EQ(bind_shapes(inputs), (dim_bindings{{"seq", 4}}));
}

TEST(bind_shapes, dimensions_that_contradict_each_other_are_named) {
  EXPECT_EQ(
      refusal({{"mask", f32({past + seq}), f32({12})}, {"ids", f32({seq, past}), f32({5, 6})}}),
      "input 'mask' is f32[12], the model takes f32[past+seq]: 'past+seq' is 12 here and 11 by the other dimensions");
  EXPECT_EQ(refusal({{"x", f32({seq * 3}), f32({13})}}),
            "input 'x' is f32[13], the model takes f32[3*seq]: no value of 'seq' makes '3*seq' 13");
  EXPECT_EQ(refusal({{"x", f32({seq}), f32({13})}, {"y", f32({seq}), f32({12})}}),
            "input 'y' is f32[12], the model takes f32[seq]: 'seq' is 12 here and 13 in 'x'");
  EXPECT_EQ(refusal({{"x", f32({4, seq}), f32({5, 2})}}),
            "input 'x' is f32[5, 2], the model takes f32[4, seq]: a dimension is 5 and must be 4");
}

TEST(bind_shapes, told_sizes_give_the_rest_and_must_fit) {
  std::vector<given_shape> inputs{{"mask", f32({past + seq}), f32({12})}};
  EXPECT_EQ(bind_shapes(inputs, {{"past", 7}}), (dim_bindings{{"past", 7}, {"seq", 5}}));
  auto refused = [&](const dim_bindings& told) -> std::string {
    try {
      bind_shapes(inputs, told);
    } catch (const error& e) {
      return std::string(name(e.kind())) + ": " + e.what();
    }
    return "";
  };
  EXPECT_EQ(
      refused({{"past", 7}, {"seq", 4}}),
      "invalid_shape: input 'mask' is f32[12], the model takes f32[past+seq]: 'past+seq' is 12 here and 11 by the "
      "other dimensions");
  inputs = {{"x", f32({seq}), f32({13})}};
  EXPECT_EQ(refused({{"seq", 4}}),
            "invalid_shape: input 'x' is f32[13], the model takes f32[seq]: 'seq' is 13 here and was given as 4");
}

TEST(bind_shapes, values_that_contradict_sizes_are_named) {
  dim_bindings sizes{{"seq", 4}};
  add_sizes(sizes, {{"seq", 4}, {"past", 1}}, "x");
  EXPECT_EQ(sizes, (dim_bindings{{"past", 1}, {"seq", 4}}));
  EXPECT_THROW(add_sizes(sizes, {{"seq", 5}}, "x"), error);
}
