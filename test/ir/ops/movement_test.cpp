#include "test/ir/ops/support.hpp"

namespace kiln::testing {
namespace {

const literal six = tensor({2, 3}, {1, 2, 3, 4, 5, 6});

TEST(broadcast, stretches_by_numpys_rule) {
  expect_values(run(broadcast{{2, 2, 3}}, {tensor({2, 1}, {1, 2})}), {2, 2, 3}, {1, 1, 1, 2, 2, 2, 1, 1, 1, 2, 2, 2});
  expect_values(run(broadcast{{3, 0}}, {tensor({1}, {7})}), {3, 0}, {});
  expect_values(run(broadcast{{2, 2}}, {tensor({}, {7})}), {2, 2}, {7, 7, 7, 7});
  dim batch = dim::symbol("batch");
  EXPECT_EQ((broadcast{{batch, 3}}.infer(std::vector<shape>{{element_type::f32, {1, 3}}})[0].str()), "f32[batch, 3]");
  expect_error(error_kind::invalid_model, "broadcast(f32[2, 3]): does not stretch to f32[2, 4]",
               [] { run(broadcast{{2, 4}}, {six}); });
  expect_error(error_kind::invalid_model, "does not stretch to f32[3]", [] { run(broadcast{{3}}, {six}); });
}

TEST(reshape, keeps_the_order) {
  expect_values(run(reshape{{3, 2}}, {six}), {3, 2}, {1, 2, 3, 4, 5, 6});
  dim batch = dim::symbol("batch");
  EXPECT_EQ((reshape{{batch * dim(4), 3}}.infer(std::vector<shape>{{element_type::f32, {batch, 12}}})[0].str()),
            "f32[4*batch, 3]");
  expect_error(error_kind::invalid_model, "does not have the elements of f32[4, 2]",
               [] { run(reshape{{4, 2}}, {six}); });
  // Whether dims match depends on the values of the symbols; dims that can never be equal are refused immediately.
  EXPECT_EQ((reshape{{batch, 2}}.infer(std::vector<shape>{{element_type::f32, {6}}})[0].str()), "f32[batch, 2]");
  expect_error(error_kind::invalid_model, "does not have the elements",
               [&] { reshape{{batch + dim(1)}}.infer(std::vector<shape>{{element_type::f32, {batch}}}); });
}

TEST(transpose, permutes_axes) {
  expect_values(run(transpose{{1, 0}}, {six}), {3, 2}, {1, 4, 2, 5, 3, 6});
  literal x = pattern({2, 3, 5}, 1);
  literal y = run(transpose{{2, 0, 1}}, {x});
  for (std::int64_t a = 0; a < 2; ++a)
    for (std::int64_t b = 0; b < 3; ++b)
      for (std::int64_t c = 0; c < 5; ++c) EXPECT_EQ(y.at((c * 2 + a) * 3 + b), x.at((a * 3 + b) * 5 + c));
  expect_integers(run(transpose{{1, 0}}, {tensor(element_type::u4, {2, 3}, {1, 2, 3, 4, 5, 15})}), {3, 2},
                  {1, 4, 2, 5, 3, 15});
  expect_values(run(transpose{{}}, {tensor({}, {3})}), {}, {3});
  expect_error(error_kind::invalid_model, "[0, 0] is no permutation", [] { run(transpose{{0, 0}}, {six}); });
}

TEST(slice, takes_any_step) {
  expect_values(run(slice{{1, 2}, {2, 2}, {-1, -2}}, {six}), {2, 2}, {6, 4, 3, 1});
  expect_values(run(slice{{0, 1}, {2, 1}, {1, 1}}, {six}), {2, 1}, {2, 5});
  expect_values(run(slice{{2, 0}, {0, 3}, {1, 1}}, {six}), {0, 3}, {});
  expect_integers(run(slice{{1}, {2}, {2}}, {tensor(element_type::i4, {5}, {1, -2, 3, -4, 5})}), {2}, {-2, -4});
  expect_error(error_kind::invalid_model, "elements 1 to 3 of axis 1 do not exist",
               [] { run(slice{{0, 1}, {2, 3}, {1, 1}}, {six}); });
  expect_error(error_kind::invalid_model, "steps must not be zero", [] { run(slice{{0, 1}, {2, 1}, {1, 0}}, {six}); });
  // 4 * 2^62 wraps to 0, which would be in range.
  expect_error(error_kind::invalid_model, "5 elements from 0 in steps of 4611686018427387904 do not lie in axis 0", [] {
    slice{{0}, {5}, {std::int64_t{1} << 62}}.infer(std::vector<shape>{shape_of(element_type::f32, {5})});
  });
  expect_error(error_kind::invalid_model, "do not lie in axis 0",
               [] { slice{{INT64_MAX}, {2}, {1}}.infer(std::vector<shape>{shape_of(element_type::f32, {5})}); });
  dim batch = dim::symbol("batch");
  EXPECT_EQ((slice{{1}, {batch - dim(1)}, {1}}.infer(std::vector<shape>{{element_type::f32, {batch}}})[0].str()),
            shape({element_type::f32, {batch - dim(1)}}).str());
}

TEST(pad, every_mode) {
  literal x = tensor({3}, {1, 2, 3});
  expect_values(run(pad{{2}, {1}, pad_mode::constant_, -7.5}, {x}), {6}, {-7.5, -7.5, 1, 2, 3, -7.5});
  expect_values(run(pad{{2}, {1}, pad_mode::edge}, {x}), {6}, {1, 1, 1, 2, 3, 3});
  // Padding wider than the input: reflection and wrapping repeat.
  expect_values(run(pad{{5}, {3}, pad_mode::reflect}, {x}), {11}, {2, 1, 2, 3, 2, 1, 2, 3, 2, 1, 2});
  expect_values(run(pad{{4}, {2}, pad_mode::wrap}, {x}), {9}, {3, 1, 2, 3, 1, 2, 3, 1, 2});
  expect_values(run(pad{{1, 0}, {0, 1}, pad_mode::constant_, 9}, {six}), {3, 4}, {9, 9, 9, 9, 1, 2, 3, 9, 4, 5, 6, 9});
  expect_integers(run(pad{{1}, {1}, pad_mode::constant_, -3}, {tensor(element_type::i4, {2}, {1, 2})}), {4},
                  {-3, 1, 2, -3});
  expect_values(run(pad{{2}, {1}, pad_mode::constant_, 4}, {tensor({0}, {})}), {3}, {4, 4, 4});
  expect_error(error_kind::invalid_model, "an empty axis has nothing to pad with",
               [] { run(pad{{1}, {0}, pad_mode::edge}, {tensor({0}, {})}); });
  expect_error(error_kind::invalid_model, "pads must not be negative",
               [] { run(pad{{-1}, {0}}, {tensor({2}, {1, 2})}); });
  expect_error(error_kind::invalid_model, "pads must not exceed",
               [] { pad{{INT64_MAX}, {INT64_MAX}}.infer(std::vector<shape>{shape_of(element_type::f32, {2})}); });
}

TEST(pad, two_axes_as_onnxruntime) {
  literal x = pattern({2, 4}, 1);
  expect_values(
      run(pad{{1, 3}, {1, 2}, pad_mode::reflect}, {x}), {4, 9},
      {0.75, -1, 0.125, 1.25, 0.125, -1, 0.75, -1, 0.125, -0.5, 0.625, -1.125, 0, -1.125, 0.625, -0.5, 0.625, -1.125,
       0.75, -1, 0.125, 1.25, 0.125, -1, 0.75, -1, 0.125, -0.5, 0.625, -1.125, 0, -1.125, 0.625, -0.5, 0.625, -1.125});
  expect_values(
      run(pad{{1, 3}, {1, 2}, pad_mode::wrap}, {x}), {4, 9},
      {0.125, -1, 0.75, 1.25, 0.125, -1, 0.75, 1.25, 0.125, -1.125, 0.625, -0.5, 0, -1.125, 0.625, -0.5, 0, -1.125,
       0.125, -1, 0.75, 1.25, 0.125, -1, 0.75, 1.25, 0.125, -1.125, 0.625, -0.5, 0, -1.125, 0.625, -0.5, 0, -1.125});
}

TEST(concat, joins_any_number) {
  expect_values(run(concat{1}, {six, tensor({2, 0}, {}), tensor({2, 1}, {7, 8})}), {2, 4}, {1, 2, 3, 7, 4, 5, 6, 8});
  expect_values(run(concat{-2}, {six, tensor({1, 3}, {7, 8, 9})}), {3, 3}, {1, 2, 3, 4, 5, 6, 7, 8, 9});
  expect_integers(run(concat{0}, {tensor(element_type::i4, {3}, {1, -2, 3}), tensor(element_type::i4, {2}, {-4, 5})}),
                  {5}, {1, -2, 3, -4, 5});
  dim batch = dim::symbol("batch");
  shape a{element_type::f32, {batch, 3}};
  EXPECT_EQ((concat{0}.infer(std::vector<shape>{a, a})[0].str()), "f32[2*batch, 3]");
  expect_error(error_kind::invalid_model, "inputs differ along axis 0",
               [] { run(concat{1}, {six, tensor({1, 3}, {7, 8, 9})}); });
  expect_error(error_kind::invalid_model, "at least one input", [] { run(concat{0}, {}); });
}

TEST(iota, counts_along_its_axis) {
  expect_integers(run(iota{element_type::i64, {2, 3}, 1}, {}), {2, 3}, {0, 1, 2, 0, 1, 2});
  expect_values(run(iota{element_type::f16, {2, 3}, 0}, {}), {2, 3}, {0, 0, 0, 1, 1, 1});
  expect_error(error_kind::invalid_model, "axis 1 is outside", [] { run(iota{element_type::i64, {2}, 1}, {}); });
}

}  // namespace
}  // namespace kiln::testing
