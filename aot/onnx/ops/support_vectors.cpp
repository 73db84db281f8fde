// SVMClassifier and SVMRegressor of the ai.onnx.ml domain, with libsvm's conventions: a decision value for each pair of
// classes, votes, and probabilities by pairwise coupling (Wu, Lin and Weng 2004).
#include <algorithm>

#include "aot/onnx/graph.hpp"
#include "aot/onnx/operators.hpp"
#include "aot/onnx/ops/machine_learning.hpp"

namespace kiln::onnx_import {
namespace {

using fn = scalar_function;

// Evaluates the kernel function for every row of x [N, F] with every row of `vectors` [M, F]. Returns f32[N, M].
value kernel_of(node& n, value x, value vectors) {
  builder& b = n.b;
  auto parameters = floats_of(n, "kernel_params");
  auto parameter = [&](std::size_t i, double otherwise) {
    return i < parameters.size() ? static_cast<double>(parameters[i]) : otherwise;
  };
  double gamma = parameter(0, 0), offset = parameter(1, 0), degree = parameter(2, 3);
  std::string kind = n.text("kernel_type", "LINEAR");
  if (kind == "RBF") {
    const auto rows = x.type().dims, others = vectors.type().dims;
    value gap =
        b.binary(fn::sub, b.with_dims(x, {rows[0], 1, rows[1]}), b.with_dims(vectors, {1, others[0], others[1]}));
    value distance = b.reduced(reduction_kind::sum, b.binary(fn::mul, gap, gap), {2}, false);
    return b.unary(fn::exp, b.binary(fn::mul, distance, -gamma));
  }
  value product = b.add(dot{false, true, element_type::f32}, {x, vectors});
  if (kind == "LINEAR") return product;
  value scaled = b.binary(fn::add, b.binary(fn::mul, product, gamma), offset);
  if (kind == "POLY") return b.binary(fn::pow, scaled, degree);
  if (kind == "SIGMOID") return b.unary(fn::tanh, scaled);
  refuse("kernel_type '" + kind + "' is not supported");
}

value support_vectors(node& n, const dim& features) {
  auto count = static_cast<std::int64_t>(floats_of(n, "support_vectors").size());
  std::int64_t width = std::max<std::int64_t>(1, features.value());
  return float_table(n, "support_vectors", {count / width, features});
}

value matrix(builder& b, std::int64_t rows, std::int64_t columns, const std::vector<float>& numbers) {
  return b.constant(literal::of<float>({element_type::f32, {rows, columns}}, numbers));
}

// A classifier with support vectors, and how they are grouped by class.
struct machine {
  std::int64_t classes = 0;
  // Index of each class's first support vector, followed by the number of support vectors.
  std::vector<std::int64_t> starts;
  std::vector<std::pair<std::int64_t, std::int64_t>> pairs;  // (i, j) with i < j, in libsvm's order
};

machine machine_of(node& n) {
  machine m;
  auto counts = n.integers("vectors_per_class").value_or(std::vector<std::int64_t>{});
  m.classes = static_cast<std::int64_t>(counts.size());
  m.starts.push_back(0);
  for (std::int64_t count : counts) {
    if (count < 0 || count > largest_dim)
      invalid("vectors_per_class has the entry " + std::to_string(count) + ", which is out of range");
    m.starts.push_back(m.starts.back() + count);
  }
  for (std::int64_t i = 0; i < m.classes; ++i)
    for (std::int64_t j = i + 1; j < m.classes; ++j) m.pairs.emplace_back(i, j);
  if (m.pairs.empty() || m.classes > 256)
    invalid("has " + std::to_string(m.classes) + " classes; 2 to 256 are supported");
  return m;
}

// Returns the decision value of each pair of classes, [N, pairs]. A positive value votes for the pair's first class.
value decisions(node& n, const machine& m, value kernels) {
  builder& b = n.b;
  auto coefficients = floats_of(n, "coefficients"), rho = floats_of(n, "rho");
  std::int64_t vectors = m.starts.back(), pairs = static_cast<std::int64_t>(m.pairs.size());
  if (static_cast<std::int64_t>(coefficients.size()) != (m.classes - 1) * vectors ||
      static_cast<std::int64_t>(rho.size()) != pairs || !(kernels.type().dims.at(1) == dim(vectors)))
    invalid("coefficients, rho and support vectors do not fit " + std::to_string(m.classes) + " classes");
  std::vector<float> table(static_cast<std::size_t>(pairs * vectors));
  for (std::int64_t p = 0; p < pairs; ++p) {
    auto [i, j] = m.pairs[static_cast<std::size_t>(p)];
    for (auto [own, row] : {std::pair(i, j - 1), std::pair(j, i)})
      for (std::int64_t v = m.starts[static_cast<std::size_t>(own)]; v < m.starts[static_cast<std::size_t>(own) + 1];
           ++v)
        table[static_cast<std::size_t>(p * vectors + v)] = coefficients[static_cast<std::size_t>(row * vectors + v)];
  }
  value sums = b.add(dot{false, true, element_type::f32}, {kernels, matrix(b, pairs, vectors, table)});
  return b.binary(fn::add, sums, float_table(n, "rho", {pairs}));
}

// Returns the number of votes of each class, f32[N, classes].
value votes(builder& b, const machine& m, value scores) {
  auto pairs = static_cast<std::int64_t>(m.pairs.size());
  std::vector<float> won(static_cast<std::size_t>(pairs * m.classes)), lost(won.size());
  for (std::int64_t p = 0; p < pairs; ++p) {
    won[static_cast<std::size_t>(p * m.classes + m.pairs[static_cast<std::size_t>(p)].first)] = 1;
    lost[static_cast<std::size_t>(p * m.classes + m.pairs[static_cast<std::size_t>(p)].second)] = 1;
  }
  value first = b.to_type(b.binary(fn::greater, scores, 0.0), element_type::f32);
  value second = b.binary(fn::sub, b.scalar(element_type::f32, 1), first);
  auto counted = [&](value v, const std::vector<float>& table) {
    return b.add(dot{false, false, element_type::f32}, {v, matrix(b, pairs, m.classes, table)});
  };
  return b.binary(fn::add, counted(first, won), counted(second, lost));
}

// One step of pairwise coupling for all rows: moves p [N, K] towards the minimum of pᵀQp. Rows that have converged do
// not change.
value coupled_step(builder& b, value q, value p, std::int64_t classes) {
  const dim rows = p.type().dims.at(0);
  auto total = [&](value v) { return b.reduced(reduction_kind::sum, v, {1}, true); };
  value before = p, qp = b.with_dims(b.reduced(reduction_kind::sum,
                                               b.binary(fn::mul, q, b.with_dims(p, {rows, 1, classes})), {2}, false),
                                     {rows, classes});
  value energy = total(b.binary(fn::mul, p, qp));
  value error = b.reduced(reduction_kind::max, b.unary(fn::abs, b.binary(fn::sub, qp, energy)), {1}, true);
  value converged = b.binary(fn::less, error, 0.005 / static_cast<double>(classes));
  for (std::int64_t t = 0; t < classes; ++t) {
    value row = b.with_dims(b.slice_axis(q, 1, t, 1), {rows, classes}), diagonal = b.slice_axis(row, 1, t, 1);
    value own = b.slice_axis(qp, 1, t, 1);
    value step = b.binary(fn::div, b.binary(fn::sub, energy, own), diagonal), scale = b.binary(fn::add, step, 1.0);
    value grown = b.binary(fn::add, b.binary(fn::mul, step, diagonal), b.binary(fn::mul, own, 2.0));
    energy =
        b.binary(fn::div, b.binary(fn::div, b.binary(fn::add, energy, b.binary(fn::mul, step, grown)), scale), scale);
    qp = b.binary(fn::div, b.binary(fn::add, qp, b.binary(fn::mul, step, row)), scale);
    value is_own = b.binary(fn::equal, b.iota_like(element_type::i64, {1, classes}, 1), static_cast<double>(t));
    p = b.binary(fn::div, b.binary(fn::add, p, b.where(is_own, step, b.scalar(element_type::f32, 0))), scale);
  }
  return b.where(converged, before, p);
}

// Returns the probabilities of the classes, given pairwise probabilities r [N, K, K]: r[i][j] is the probability of i
// against j.
value coupled(node& n, value r, std::int64_t classes) {
  builder& b = n.b;
  const dim rows = r.type().dims.at(0);
  value turned = b.permuted(r, {0, 2, 1});
  value same = b.binary(fn::equal, b.iota_like(element_type::i64, {classes, classes}, 0),
                        b.iota_like(element_type::i64, {classes, classes}, 1));
  value others = b.where(same, b.scalar(element_type::f32, 0), b.binary(fn::mul, turned, turned));
  value sums = b.with_dims(b.reduced(reduction_kind::sum, others, {2}, false), {rows, classes, 1});
  value q =
      b.where(same, b.broadcast_to(sums, {rows, classes, classes}), b.unary(fn::neg, b.binary(fn::mul, r, turned)));
  value start = b.broadcast_to(b.scalar(element_type::f32, 1 / static_cast<double>(classes)), {rows, classes});
  auto& state = n.owner.state();
  module& body = state.result.add_module("coupling_" + std::to_string(state.bodies++));
  builder inner(body, b.knowledge(), state.budget);
  body.add_parameter("iteration", {element_type::i64, {}});
  value go_on = body.add_parameter("condition", {element_type::boolean, {}});
  value p = body.add_parameter("p", start.type()), forms = body.add_parameter("q", q.type());
  body.set_outputs({go_on, coupled_step(inner, forms, p, classes)}, {"0", "1"});
  value trips = b.constant(literal::of<std::int64_t>({element_type::i64, {}}, {std::max<std::int64_t>(100, classes)}));
  return b.add(loop{1, -1}, {trips, b.scalar(element_type::boolean, 1), start, q}, {&body});
}

// Returns the probabilities of the classes from the pairwise decision values.
value probabilities(node& n, const machine& m, value scores) {
  builder& b = n.b;
  auto pairs = static_cast<std::int64_t>(m.pairs.size());
  value line = b.binary(fn::add, b.binary(fn::mul, scores, float_table(n, "prob_a", {pairs})),
                        float_table(n, "prob_b", {pairs}));
  value chance = b.unary(fn::sigmoid, b.unary(fn::neg, line));
  chance = b.binary(fn::max, b.binary(fn::min, chance, 1 - 1e-7), 1e-7);
  value other = b.binary(fn::sub, b.scalar(element_type::f32, 1), chance);
  if (m.classes > 32) refuse("probabilities of more than 32 classes are not supported");
  // Columns of `both`: the pairs (i, j), then the pairs (j, i). The diagonal is never read.
  value both = b.add(concat{1}, {chance, other});
  std::vector<std::int64_t> order;
  for (std::int64_t i = 0; i < m.classes; ++i)
    for (std::int64_t j = 0; j < m.classes; ++j) {
      auto place = std::ranges::find(m.pairs, std::pair(std::min(i, j), std::max(i, j))) - m.pairs.begin();
      order.push_back(i == j ? 0 : i < j ? place : place + pairs);
    }
  const dim rows = scores.type().dims.at(0);
  value r = b.with_dims(b.add(gather{1}, {both, b.integers(order)}), {rows, m.classes, m.classes});
  return coupled(n, r, m.classes);
}

value best_class(builder& b, value scores) { return b.add(arg_reduce{true, 1, false, false}, {scores}); }

// Scores of a linear SVM, which has one row of coefficients per class and no support vectors.
std::vector<value> linear_machine(node& n, value x) {
  builder& b = n.b;
  auto classes = static_cast<std::int64_t>(number_of_labels(n));
  value scores = kernel_of(n, x, float_table(n, "coefficients", {classes, x.type().dims.at(1)}));
  if (auto rho = floats_of(n, "rho"); !rho.empty()) scores = b.binary(fn::add, scores, static_cast<double>(rho[0]));
  return {n.wants(0) ? class_labels(n, best_class(b, scores)) : value{}, transformed_scores(n, scores)};
}

std::vector<value> classifier(node& n) {
  builder& b = n.b;
  value x = feature_rows(n);
  if (floats_of(n, "support_vectors").empty()) return linear_machine(n, x);
  machine m = machine_of(n);
  value scores = decisions(n, m, kernel_of(n, x, support_vectors(n, x.type().dims.at(1))));
  value index = best_class(b, votes(b, m, scores)), results = scores;
  // The class is decided by votes, even if the probabilities give another one.
  if (n.has_attribute("prob_a")) results = transformed_scores(n, probabilities(n, m, scores));
  else if (m.classes == 2) results = two_class_scores(n, scores, n.text("post_transform", "NONE") == "NONE");
  else results = transformed_scores(n, scores);
  return {n.wants(0) ? class_labels(n, index) : value{}, results};
}

std::vector<value> regressor(node& n) {
  builder& b = n.b;
  value x = feature_rows(n);
  auto rho = floats_of(n, "rho");
  auto count = static_cast<std::int64_t>(floats_of(n, "coefficients").size());
  value sums;
  if (n.integer("n_supports", 0) > 0)
    sums = b.add(dot{false, true, element_type::f32}, {kernel_of(n, x, support_vectors(n, x.type().dims.at(1))),
                                                       float_table(n, "coefficients", {1, count})});
  else sums = kernel_of(n, x, float_table(n, "coefficients", {1, count}));
  if (!rho.empty()) sums = b.binary(fn::add, sums, static_cast<double>(rho[0]));
  if (n.integer("one_class", 0))
    return {b.where(b.binary(fn::greater, sums, 0.0), b.scalar(element_type::f32, 1), b.scalar(element_type::f32, -1))};
  return {transformed_scores(n, sums)};
}

constexpr operator_row rows[] = {
    {"SVMClassifier", classifier, 1, "", ml_domain},
    {"SVMRegressor", regressor, 1, "", ml_domain},
};

}  // namespace

std::span<const operator_row> support_vector_operators() { return rows; }

}  // namespace kiln::onnx_import
