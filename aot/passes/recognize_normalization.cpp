#include "aot/passes/recognize_normalization.hpp"

#include "aot/passes/facts.hpp"
#include "aot/passes/rewrite.hpp"

namespace kiln {
namespace {

using enum scalar_function;
using match::any;
using match::function;
using match::op;

match::matcher stretched(match::matcher inner) { return match::either({op<broadcast>().inputs({inner}), inner}); }

match::matcher mean_of(match::matcher inner, std::string name) {
  return op<reduce>([](const reduce& r) { return r.kind == reduction_kind::mean && r.keep_dims; })
      .inputs({std::move(inner)})
      .as(std::move(name));
}

match::matcher square_of(const match::matcher& inner, const std::string& name) {
  return match::either({function(mul).inputs({inner, match::same(name)}),
                        function(pow).inputs({inner, any().when([](value v) { return is_splat(v, 2); })})});
}

// Matches x · 1/sqrt(s) and x / sqrt(s), where `s` may be broadcast before or after.
match::matcher divided_by_root(const match::matcher& x, const match::matcher& s) {
  auto root = stretched(function(sqrt).inputs({stretched(s)}));
  auto inverse_root =
      stretched(match::either({function(rsqrt).inputs({stretched(s)}), function(reciprocal).inputs({root})}));
  return match::either({function(div).inputs({x, root}), function(mul).commuted(x, inverse_root)});
}

match::matcher plus_epsilon(match::matcher inner) {
  return function(add).commuted(std::move(inner),
                                any().when([](value v) { return splat_of(v).has_value(); }).as("epsilon"));
}

const reduce& reduction(value v) { return *v.producer->op().get_if<reduce>(); }

value root_mean_square(rewriter& write, value root, const match::captures& found) {
  if (found["mean_square"].type().rank() != found["x"].type().rank()) return {};
  return write.add(normalize{reduction(found["mean_square"]).axes, *splat_of(found["epsilon"]), false}, {found["x"]});
}

// (x - mean(x)) / sqrt(mean((x - mean(x))²) + epsilon): the root-mean-square normalization of a centered value.
value centered(rewriter& write, value root, const match::captures& found) {
  const auto& n = *root.producer->op().get_if<normalize>();
  if (n.centered || reduction(found["mean"]).axes != n.axes) return {};
  return write.add(normalize{n.axes, n.epsilon, true}, {found["x"]});
}

std::vector<rule> make_rules() {
  auto x = any().as("x");
  return {
      {"root_mean_square", divided_by_root(x, plus_epsilon(mean_of(square_of(match::same("x"), "x"), "mean_square"))),
       root_mean_square},
      {"centered", op<normalize>().inputs({function(sub).inputs({x, stretched(mean_of(match::same("x"), "mean"))})}),
       centered},
  };
}

}  // namespace

bool recognize_normalization::apply(module& m) const {
  static const std::vector<rule> rules = make_rules();
  return apply_rules(m, rules, log, name());
}

}  // namespace kiln
