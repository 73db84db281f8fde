// The ai.onnx.ml domain: the numeric operators that scikit-learn's exporters emit.
#include "aot/onnx/ops/machine_learning.hpp"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numbers>

#include "aot/onnx/graph.hpp"
#include "aot/onnx/operators.hpp"
#include "aot/onnx/ops/text_choice.hpp"

namespace kiln::onnx_import {

using fn = scalar_function;

std::vector<float> floats_of(const node& n, std::string_view name) {
  const auto* a = n.attribute(name);
  if (!a) return {};
  return {a->floats().begin(), a->floats().end()};
}

std::optional<literal> tensor_attribute(node& n, std::string_view name) {
  for (auto& a : *n.proto.mutable_attribute())
    if (a.name() == name && a.has_t()) {
      // Copy, because the attribute may be read twice.
      ::onnx::TensorProto copy = a.t();
      return n.owner.tensor(copy, "attribute '" + std::string(name) + "'");
    }
  return std::nullopt;
}

std::vector<double> numbers_of(node& n, const std::string& name) {
  if (auto wide = tensor_attribute(n, name + "_as_tensor")) {
    std::vector<double> result;
    for (std::int64_t i = 0; i < wide->type().element_count(); ++i) result.push_back(wide->at(i));
    return result;
  }
  auto numbers = floats_of(n, name);
  return {numbers.begin(), numbers.end()};
}

value float_table(node& n, std::string_view name, const std::vector<dim>& dims) {
  shape type{element_type::f32, dims};
  auto numbers = floats_of(n, name);
  if (static_cast<std::int64_t>(numbers.size()) != type.element_count())
    invalid("attribute '" + std::string(name) + "' has " + std::to_string(numbers.size()) + " numbers instead of " +
            std::to_string(type.element_count()));
  return n.b.constant(literal::of<float>(type, numbers));
}

value feature_rows(node& n, bool keep_double) {
  value x = n.in(0);
  if (!keep_double || x.type().type != element_type::f64) x = n.b.to_type(x, element_type::f32);
  if (x.type().rank() == 1) x = n.b.with_dims(x, {1, x.type().dims.at(0)});
  if (x.type().rank() != 2 || !x.type().dims.at(1).is_static())
    invalid("needs [rows, features], not " + n.type(0).str());
  return x;
}

namespace {

// Returns the quantile function of the normal distribution, sqrt(2) * erfinv(2 x - 1). erfinv is Winitzki's
// approximation, which onnxruntime uses as well.
value probit(builder& b, value x) {
  constexpr double a = 0.147;
  value y = b.binary(fn::sub, b.binary(fn::mul, x, 2.0), 1.0);
  value log =
      b.unary(fn::log, b.binary(fn::mul, b.binary(fn::sub, b.scalar(x.type().type, 1), y), b.binary(fn::add, y, 1.0)));
  value half = b.binary(fn::add, b.binary(fn::mul, log, 0.5), 2 / (std::numbers::pi * a));
  value root = b.unary(fn::sqrt, b.binary(fn::sub, b.binary(fn::mul, half, half), b.binary(fn::div, log, a)));
  value size = b.unary(fn::sqrt, b.binary(fn::sub, root, half));
  return b.binary(fn::mul, b.binary(fn::mul, b.unary(fn::sign, y), size), std::numbers::sqrt2);
}

// Softmax over the nonzero scores. Scores of exactly 0 stay 0 and are excluded from the sum.
value softmax_without_zeros(builder& b, value scores) {
  element_type type = scores.type().type;
  value zero = b.scalar(type, 0), is_zero = b.binary(fn::equal, scores, 0.0);
  value top = b.reduced(reduction_kind::max, scores, {1}, true);
  value powers = b.where(is_zero, zero, b.unary(fn::exp, b.binary(fn::sub, scores, top)));
  value sum = b.reduced(reduction_kind::sum, powers, {1}, true);
  return b.binary(fn::div, powers, b.where(b.binary(fn::equal, sum, 0.0), b.scalar(type, 1), sum));
}

}  // namespace

value transformed_scores(node& n, value scores, std::string_view kind) {
  builder& b = n.b;
  if (kind == "NONE") return scores;
  if (kind == "LOGISTIC") return b.unary(fn::sigmoid, scores);
  if (kind == "SOFTMAX") return b.add(softmax{1, false}, {scores});
  if (kind == "SOFTMAX_ZERO") return softmax_without_zeros(b, scores);
  if (kind == "PROBIT") return probit(b, scores);
  refuse("post_transform '" + std::string(kind) + "' is not supported");
}

value transformed_scores(node& n, value scores) {
  return transformed_scores(n, scores, n.text("post_transform", "NONE"));
}

value two_class_scores(node& n, value s, bool symmetric) {
  builder& b = n.b;
  std::string kind = n.text("post_transform", "NONE");
  if (kind == "LOGISTIC") return b.add(concat{1}, {b.unary(fn::sigmoid, b.unary(fn::neg, s)), b.unary(fn::sigmoid, s)});
  if (kind != "NONE" && kind != "SOFTMAX" && kind != "SOFTMAX_ZERO")
    refuse("post_transform '" + kind + "' is not supported");
  value other = symmetric ? b.unary(fn::neg, s) : b.binary(fn::sub, b.scalar(element_type::f32, 1), s);
  return b.add(concat{1}, {other, s});
}

namespace {

std::vector<std::int64_t> labels_of(const node& n) {
  for (std::string_view name : {"classlabels_ints", "classlabels_int64s"})
    if (auto list = n.integers(name); list && !list->empty()) return *list;
  return {};
}

}  // namespace

std::size_t number_of_labels(const node& n) {
  auto numbers = labels_of(n);
  return numbers.empty() ? n.texts("classlabels_strings").size() : numbers.size();
}

value class_labels(node& n, value index) {
  auto labels = labels_of(n);
  if (!labels.empty()) return n.b.add(gather{0}, {n.b.integers(labels), index});
  if (n.texts("classlabels_strings").empty()) invalid("has no class labels");
  return n.owner.state().texts.mark(index, n.texts("classlabels_strings"));
}

namespace {

value best_class(builder& b, value scores) { return b.add(arg_reduce{true, 1, false, false}, {scores}); }

// Returns X times the transpose of `coefficients`, plus `intercepts`.
value linear_scores(node& n, value x, std::int64_t rows) {
  builder& b = n.b;
  value scores =
      b.add(dot{false, true, element_type::f32}, {x, float_table(n, "coefficients", {rows, x.type().dims.at(1)})});
  return n.has_attribute("intercepts") ? b.binary(fn::add, scores, float_table(n, "intercepts", {rows})) : scores;
}

std::vector<value> linear_regressor(node& n) {
  return {transformed_scores(n, linear_scores(n, feature_rows(n), n.integer("targets", 1)))};
}

std::vector<value> linear_classifier(node& n) {
  builder& b = n.b;
  value x = feature_rows(n);
  std::int64_t features = std::max<std::int64_t>(1, x.type().dims.at(1).value());
  auto rows = static_cast<std::int64_t>(floats_of(n, "coefficients").size()) / features;
  value scores = linear_scores(n, x, rows), index, results;
  if (rows == 1 && number_of_labels(n) == 2) {
    index = b.to_type(b.with_dims(b.binary(fn::greater, scores, 0.0), {x.type().dims.at(0)}), element_type::i64);
    results = two_class_scores(n, scores, false);
  } else {
    index = best_class(b, scores);
    results = transformed_scores(n, scores);
  }
  return {n.wants(0) ? class_labels(n, index) : value{}, results};
}

std::vector<value> normalizer(node& n) {
  builder& b = n.b;
  value x = feature_rows(n), size;
  std::string kind = one_of(n, "norm", "MAX", {"MAX", "L1", "L2"});
  if (kind == "MAX") size = b.reduced(reduction_kind::max, x, {1}, true);
  else if (kind == "L1") size = b.reduced(reduction_kind::sum, b.unary(fn::abs, x), {1}, true);
  else size = b.unary(fn::sqrt, b.reduced(reduction_kind::sum, b.binary(fn::mul, x, x), {1}, true));
  return {b.with_dims(
      b.binary(fn::div, x, b.where(b.binary(fn::equal, size, 0.0), b.scalar(element_type::f32, 1), size)), n.dims(0))};
}

std::vector<value> scaler(node& n) {
  builder& b = n.b;
  value x = b.to_type(n.in(0), element_type::f32);
  for (auto [name, function] : {std::pair("offset", fn::sub), std::pair("scale", fn::mul)}) {
    auto count = static_cast<std::int64_t>(floats_of(n, name).size());
    if (count) x = b.binary(function, x, float_table(n, name, {count}));
  }
  if (x.type().dims != n.dims(0)) invalid("offset and scale do not fit " + n.type(0).str());
  return {x};
}

std::vector<value> array_feature_extractor(node& n) {
  value x = n.in(0), picked = n.b.with_dims(n.in(1), {n.type(1).elements()});
  if (x.type().rank() == 1) x = n.b.with_dims(x, {1, x.type().dims.at(0)});
  if (x.type().rank() == 0) invalid("a scalar has no features");
  return {n.b.add(gather{static_cast<std::int64_t>(x.type().rank()) - 1}, {x, n.b.to_type(picked, element_type::i64)})};
}

// Maps are not tensors. Returns the scores themselves, with columns in the order of the labels, and stores the labels
// as metadata of the program.
std::vector<value> zip_map(node& n) {
  nlohmann::json labels = nlohmann::json::array();
  if (auto numbers = labels_of(n); !numbers.empty()) labels = numbers;
  else labels = n.texts("classlabels_strings");
  n.owner.state().result.metadata["classes:" + n.proto.output(0)] = labels.dump();
  return {n.in(0)};
}

std::vector<value> binarizer(node& n) {
  return {n.b.to_type(n.b.binary(fn::greater, n.in(0), n.real("threshold", 0)), n.type(0).type)};
}

std::vector<value> imputer(node& n) {
  builder& b = n.b;
  value x = n.in(0);
  bool real = is_float(x.type().type);
  value replaced;
  if (real) {
    auto count = static_cast<std::int64_t>(floats_of(n, "imputed_value_floats").size());
    replaced = b.to_type(float_table(n, "imputed_value_floats", {count}), x.type().type);
  } else {
    replaced =
        b.to_type(b.integers(n.integers("imputed_value_int64s").value_or(std::vector<std::int64_t>{})), x.type().type);
  }
  double missing = real ? n.real("replaced_value_float", 0) : static_cast<double>(n.integer("replaced_value_int64", 0));
  value hit = std::isnan(missing) ? b.unary(fn::is_nan, x) : b.binary(fn::equal, x, missing);
  return {b.where(hit, replaced, x)};
}

std::vector<value> feature_vectorizer(node& n) {
  std::vector<value> parts;
  for (value v : n.present()) {
    v = n.b.to_type(v, element_type::f32);
    parts.push_back(v.type().rank() == 1 ? n.b.with_dims(v, {1, v.type().dims.at(0)}) : v);
  }
  return {parts.size() == 1 ? parts[0] : n.b.add(concat{1}, parts)};
}

constexpr operator_row rows[] = {
    {"LinearRegressor", linear_regressor, 1, "", ml_domain},
    {"LinearClassifier", linear_classifier, 1, "", ml_domain},
    {"Normalizer", normalizer, 1, "", ml_domain},
    {"Scaler", scaler, 1, "", ml_domain},
    {"ArrayFeatureExtractor", array_feature_extractor, 1, "", ml_domain},
    {"ZipMap", zip_map, 1, "gives the scores as a tensor", ml_domain},
    {"Binarizer", binarizer, 1, "", ml_domain},
    {"Imputer", imputer, 1, "", ml_domain},
    {"FeatureVectorizer", feature_vectorizer, 1, "", ml_domain},
};

}  // namespace

std::span<const operator_row> machine_learning_operators() { return rows; }

}  // namespace kiln::onnx_import
