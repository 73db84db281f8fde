#include <map>

#include "aot/passes/constant_folding.hpp"
#include "aot/passes/recognize_normalization.hpp"
#include "aot/passes/simplify_arithmetic.hpp"
#include "test/aot/passes/passes_test.hpp"

namespace kiln::testing {
namespace {

using enum scalar_function;

until_stable simplify() { return {"simplify", {constant_folding{}, simplify_arithmetic{}}}; }

// Checks that a function of one parameter `x` of dims [3, 5] is rewritten to the module that `expected` builds.
struct arithmetic_case {
  std::string name;
  std::function<value(builder&, value)> before, after;
};

class arithmetic : public ::testing::TestWithParam<arithmetic_case> {};

TEST_P(arithmetic, becomes) {
  auto wrap = [](const std::function<value(builder&, value)>& inner) {
    return [inner](builder& b) {
      value x = b.p("x", {3, 5});
      // abs, so that roots and logarithms are defined.
      b.out({inner(b, b.f(abs, {x}))});
    };
  };
  program p = transformed(wrap(GetParam().before), {simplify()});
  program expected;
  builder b(expected.main());
  wrap(GetParam().after)(b);
  run_passes(expected, {constant_folding{}});
  EXPECT_EQ(p.main().str(), expected.main().str());
}

INSTANTIATE_TEST_SUITE_P(
    identities, arithmetic,
    ::testing::Values(
        arithmetic_case{"add_zero", [](builder& b, value x) { return b.f(add, x, b.c(0)); },
                        [](builder&, value x) { return x; }},
        arithmetic_case{"zero_add", [](builder& b, value x) { return b.f(add, {b.to(b.c(0), {3, 5}), x}); },
                        [](builder&, value x) { return x; }},
        arithmetic_case{"mul_one",
                        [](builder& b, value x) {
                          return b.f(mul, x, b.m.add_constant(literal::filled({element_type::f32, {1, 5}}, 1)));
                        },
                        [](builder&, value x) { return x; }},
        arithmetic_case{"sub_zero", [](builder& b, value x) { return b.f(sub, x, b.c(0)); },
                        [](builder&, value x) { return x; }},
        arithmetic_case{"pow_two", [](builder& b, value x) { return b.f(pow, x, b.c(2)); },
                        [](builder& b, value x) { return b.f(mul, {x, x}); }},
        arithmetic_case{
            "inverse_root",
            [](builder& b, value x) { return b.f(div, {b.to(b.c(1), {3, 5}), b.f(sqrt, {b.f(add, x, b.c(1))})}); },
            [](builder& b, value x) { return b.f(rsqrt, {b.f(add, x, b.c(1))}); }},
        arithmetic_case{"neg_neg", [](builder& b, value x) { return b.f(neg, {b.f(neg, {x})}); },
                        [](builder&, value x) { return x; }},
        arithmetic_case{"add_neg", [](builder& b, value x) { return b.f(add, {x, b.f(neg, {b.f(exp, {x})})}); },
                        [](builder& b, value x) { return b.f(sub, {x, b.f(exp, {x})}); }},
        arithmetic_case{"sub_constant", [](builder& b, value x) { return b.f(sub, x, b.c(3)); },
                        [](builder& b, value x) { return b.f(add, x, b.c(-3)); }},
        arithmetic_case{"div_constant", [](builder& b, value x) { return b.f(div, x, b.c(4)); },
                        [](builder& b, value x) { return b.f(mul, x, b.c(0.25)); }},
        arithmetic_case{"div_zero_stays", [](builder& b, value x) { return b.f(div, x, b.c(0)); },
                        [](builder& b, value x) { return b.f(div, x, b.c(0)); }},
        arithmetic_case{"mul_zero_stays", [](builder& b, value x) { return b.f(mul, x, b.c(0)); },
                        [](builder& b, value x) { return b.f(mul, x, b.c(0)); }},
        arithmetic_case{"mul_chain",
                        [](builder& b, value x) { return b.f(mul, b.f(mul, b.f(mul, x, b.c(3)), b.c(5)), b.c(0.5)); },
                        [](builder& b, value x) { return b.f(mul, x, b.c(7.5)); }},
        arithmetic_case{"add_chain", [](builder& b, value x) { return b.f(sub, b.f(add, x, b.c(3)), b.c(5)); },
                        [](builder& b, value x) { return b.f(add, x, b.c(-2)); }},
        arithmetic_case{"max_zero", [](builder& b, value x) { return b.f(max, x, b.c(0)); },
                        [](builder& b, value x) { return b.f(relu, {x}); }},
        arithmetic_case{"where_true",
                        [](builder& b, value x) {
                          return b.f(where, {b.to(b.c(1, element_type::boolean), {3, 5}), x, b.f(exp, {x})});
                        },
                        [](builder&, value x) { return x; }},
        arithmetic_case{"where_not",
                        [](builder& b, value x) {
                          return b.f(where, {b.f(logical_not, {b.f(less, x, b.c(1))}), x, b.f(exp, {x})});
                        },
                        [](builder& b, value x) {
                          value c = b.f(less, x, b.c(1));
                          return b.f(where, {c, b.f(exp, {x}), x});
                        }},
        arithmetic_case{"convert_there_and_back",
                        [](builder& b, value x) {
                          return b.m.add(convert{element_type::f32}, {b.m.add(convert{element_type::f64}, {x})});
                        },
                        [](builder&, value x) { return x; }},
        arithmetic_case{"convert_through_f16_stays",
                        [](builder& b, value x) {
                          return b.m.add(convert{element_type::f32}, {b.m.add(convert{element_type::f16}, {x})});
                        },
                        [](builder& b, value x) {
                          return b.m.add(convert{element_type::f32}, {b.m.add(convert{element_type::f16}, {x})});
                        }},
        arithmetic_case{"convert_through_int_stays",
                        [](builder& b, value x) {
                          return b.m.add(convert{element_type::f32}, {b.m.add(convert{element_type::i32}, {x})});
                        },
                        [](builder& b, value x) {
                          return b.m.add(convert{element_type::f32}, {b.m.add(convert{element_type::i32}, {x})});
                        }}),
    [](const auto& info) { return info.param.name; });

TEST(arithmetic_behind_broadcasts, computes_before_stretching) {
  auto build = [](builder& b) {
    value column = b.p("column", {3, 1}), row = b.p("row", {5});
    value sum = b.f(add, {b.to(column, {2, 3, 5}), b.to(row, {2, 3, 5})});
    b.out({b.f(exp, {sum})});
  };
  program p = transformed(build, {simplify()});
  for (const instruction& i : p.main().instructions())
    if (i.op().is<elementwise>()) {
      EXPECT_EQ(i.outputs()[0].str(), "f32[3, 5]");
    }
}

// For integers there is no reciprocal, and no reassociation that could overflow.
TEST(arithmetic_on_integers, keeps_division) {
  auto build = [](builder& b) {
    value x = b.p("x", {7}, element_type::i32);
    b.out({b.f(div, x, b.c(3, element_type::i32))});
  };
  program p = transformed(build, {simplify()}, 0);
  ASSERT_EQ(count<elementwise>(p.main()), 1u);
  EXPECT_EQ(only<elementwise>(p.main())->function, div);
}

// 41 * (1/41) is less than 1 in f32, so floor(41 / 41) needs the division. An eighth is exact.
TEST(arithmetic_on_reals, keeps_divisions_whose_results_must_be_exact) {
  auto divisions = [](double divisor, scalar_function behind) {
    auto build = [&](builder& b) {
      value x = b.p("x", {7});
      b.out({b.f(behind, {b.f(neg, {b.f(div, x, b.c(divisor))})})});
    };
    program p = transformed(build, {simplify()});
    int found = 0;
    for (const instruction& i : p.main().instructions())
      if (const auto* e = i.op().get_if<elementwise>()) found += e->function == div;
    return found;
  };
  EXPECT_EQ(divisions(41, floor), 1);
  EXPECT_EQ(divisions(8, floor), 0);
  EXPECT_EQ(divisions(41, tanh), 0);
}

// A quantizer to floats of 8 bits divides: the quotient often lies in the middle of two of them.
TEST(arithmetic_on_reals, divides_before_floats_of_8_bits) {
  auto build = [](builder& b) {
    value x = b.p("x", {7});
    b.out({b.m.add(convert{element_type::f8e4m3}, {b.f(div, x, b.c(0.00573))})});
  };
  program p = transformed(build, {simplify()}, 0);
  EXPECT_EQ(only<elementwise>(p.main())->function, div);
}

// The scale of a dynamically quantized tensor is one number divided by 255. It must be the one that the model means.
TEST(arithmetic_on_reals, divides_one_number_alone) {
  auto build = [](builder& b) {
    value x = b.p("x", {1});
    b.out({b.f(div, x, b.c(255))});
  };
  program p = transformed(build, {simplify()});
  EXPECT_EQ(only<elementwise>(p.main())->function, div);
}

// The factor of Mish, from f32 numbers near 0 and of any size, infinities and NaN.
TEST(arithmetic_on_reals, computes_tanh_of_softplus_with_one_exponential) {
  const std::vector<double> x{0,    1e-6, -1e-6, 0.5, -0.5, 3,     -3,       9.5,       -9.5,
                              19.9, 20.1, 89,    -89, 3e38, -3e38, INFINITY, -INFINITY, NAN};
  const auto count_of = static_cast<std::int64_t>(x.size());
  for (element_type type : {element_type::f32, element_type::f64}) {
    auto build = [&](builder& b) {
      value v = b.p("x", {count_of}, type);
      value tail = b.f(log, {b.f(add, b.f(exp, {b.f(neg, {b.f(abs, {v})})}), b.c(1, type))});
      b.out({b.f(tanh, {b.f(add, {b.f(relu, {v}), tail})})});
    };
    program p;
    builder b(p.main());
    build(b);
    run_passes(p, {simplify()});
    std::map<scalar_function, int> found;
    for (const instruction& i : p.main().instructions())
      if (const auto* e = i.op().get_if<elementwise>()) ++found[e->function];
    EXPECT_EQ(found[exp], 1);
    EXPECT_EQ(found[div], 1);
    EXPECT_EQ(found[tanh] + found[log] + found[abs], 0);
    const literal input = literal::from_doubles({type, {count_of}}, x);
    const std::vector<double> y = evaluate(p.main(), std::span(&input, 1))[0].to_doubles();
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double wanted = std::tanh(std::log1p(std::exp(x[i])));
      if (std::isnan(wanted)) EXPECT_TRUE(std::isnan(y[i]));
      else EXPECT_NEAR(y[i], wanted, (type == element_type::f32 ? 5e-7 : 1e-14) * wanted + 1e-45) << x[i];
      if (x[i] >= 20) EXPECT_EQ(y[i], 1);
    }
  }
}

// (x * 0.1) * 10 may be less than x * (0.1 * 10), which matters where a jump follows. Where a comparison with 0 only
// chooses between multiples of a number, as in LeakyRelu, it does not.
TEST(arithmetic_on_reals, merges_chains_unless_a_jump_follows) {
  auto products = [](auto behind) {
    auto build = [&](builder& b) {
      value x = b.f(mul, b.f(mul, b.p("x", {7}), b.c(0.1)), b.c(10.5));
      b.out({behind(b, x)});
    };
    program p = transformed(build, {simplify()});
    int found = 0;
    for (const instruction& i : p.main().instructions())
      if (const auto* e = i.op().get_if<elementwise>()) found += e->function == mul;
    return found;
  };
  EXPECT_EQ(products([](builder& b, value x) { return b.f(floor, {x}); }), 2);
  EXPECT_EQ(products([](builder& b, value x) { return b.f(greater, x, b.c(1)); }), 2);
  EXPECT_EQ(products([](builder& b, value x) { return b.f(tanh, {x}); }), 1);
  auto leaky = [](builder& b, value x) { return b.f(where, {b.f(less, x, b.c(0)), b.f(mul, x, b.c(0.25)), x}); };
  EXPECT_EQ(products(leaky), 2);  // one is LeakyRelu's
}

value mean(builder& b, value x, std::vector<std::int64_t> axes) {
  return b.m.add(reduce{reduction_kind::mean, std::move(axes), true}, {x});
}

TEST(recognize_normalization, layer_normalization_as_pow_mean_sqrt_div) {
  auto build = [](builder& b) {
    value x = b.p("x", {3, 5, 7});
    value centered = b.f(sub, x, mean(b, x, {2}));
    value variance = mean(b, b.f(pow, centered, b.c(2)), {2});
    b.out({b.f(div, centered, b.f(sqrt, {b.f(add, variance, b.c(1e-3))}))});
  };
  program p = transformed(build, {simplify(), recognize_normalization{}});
  ASSERT_EQ(count<normalize>(p.main()), 1u) << p.str();
  EXPECT_TRUE(only<normalize>(p.main())->centered);
  EXPECT_NEAR(only<normalize>(p.main())->epsilon, 1e-3, 1e-9);
  EXPECT_EQ(p.main().instructions().size(), 2u);
}

TEST(recognize_normalization, root_mean_square_as_reciprocal_and_mul) {
  for (int form = 0; form < 3; ++form) {
    auto build = [form](builder& b) {
      value x = b.p("x", {3, 5, 7});
      value s = b.f(add, mean(b, b.f(mul, {x, x}), {1, 2}), b.c(1e-2));
      value y = form == 0   ? b.f(mul, x, b.f(div, {b.to(b.c(1), {3, 1, 1}), b.f(sqrt, {s})}))
                : form == 1 ? b.f(mul, {b.to(b.f(pow, s, b.c(-0.5)), {3, 5, 7}), x})
                            : b.f(div, x, b.f(sqrt, {s}));
      b.out({b.f(mul, y, b.w({7}))});
    };
    program p = transformed(build, {simplify(), recognize_normalization{}});
    ASSERT_EQ(count<normalize>(p.main()), 1u) << p.str();
    EXPECT_FALSE(only<normalize>(p.main())->centered);
    EXPECT_EQ(only<normalize>(p.main())->axes, (std::vector<std::int64_t>{1, 2}));
  }
}

TEST(recognize_normalization, leaves_other_means_alone) {
  auto build = [](builder& b) {
    value x = b.p("x", {3, 5}), z = b.p("z", {3, 5});
    value s = b.f(add, mean(b, b.f(mul, {z, z}), {1}), b.c(1e-2));
    value sum = b.m.add(reduce{reduction_kind::sum, {1}, true}, {b.f(mul, {x, x})});
    b.out({b.f(div, x, b.f(sqrt, {s})), b.f(div, x, b.f(sqrt, {b.f(add, sum, b.c(1e-2))}))});
  };
  program p = transformed(build, {simplify(), recognize_normalization{}});
  EXPECT_EQ(count<normalize>(p.main()), 0u);
}

}  // namespace
}  // namespace kiln::testing
