// Operators of the ai.onnx.ml domain that look up categories: LabelEncoder and OneHotEncoder.
#include <algorithm>
#include <cmath>
#include <limits>

#include "aot/onnx/graph.hpp"
#include "aot/onnx/operators.hpp"
#include "aot/onnx/ops/machine_learning.hpp"

namespace kiln::onnx_import {
namespace {

using fn = scalar_function;

// A list of numbers or texts from one of several attributes of different types.
struct category_list {
  std::optional<literal> numbers;
  std::vector<std::string> texts;
  std::int64_t size() const {
    return numbers ? numbers->type().element_count() : static_cast<std::int64_t>(texts.size());
  }
};

// Reads the list from whichever of the attributes PREFIX_strings, _int64s, _floats and _tensor the node has.
category_list categories(node& n, const std::string& prefix) {
  category_list result;
  if (auto list = n.integers(prefix + "_int64s"); list && !list->empty()) {
    result.numbers = literal::from_int64(*list);
  } else if (auto floats = floats_of(n, prefix + "_floats"); !floats.empty()) {
    result.numbers = literal::of<float>({element_type::f32, {static_cast<std::int64_t>(floats.size())}}, floats);
  } else if (auto words = n.texts(prefix + "_strings"); !words.empty()) {
    result.texts = words;
  } else if (const auto* a = n.attribute(prefix + "_tensor"); a && a->has_t()) {
    if (a->t().data_type() == ::onnx::TensorProto::STRING)
      result.texts = {a->t().string_data().begin(), a->t().string_data().end()};
    else result.numbers = tensor_attribute(n, prefix + "_tensor");
  }
  return result;
}

// Compares each element of x with each entry of the list. Returns bool [..., K].
value hits(node& n, value x, const category_list& keys) {
  builder& b = n.b;
  auto lifted = x.type().dims;
  lifted.emplace_back(1);
  if (keys.numbers) {
    value table = b.to_type(b.constant(*keys.numbers), x.type().type);
    value apart = b.with_dims(x, lifted), equal = b.binary(fn::equal, apart, table);
    bool has_nan = false;
    for (std::int64_t i = 0; n.opset >= 4 && is_float(keys.numbers->type().type) && i < keys.size(); ++i)
      has_nan |= std::isnan(keys.numbers->at(i));
    if (!has_nan) return equal;
    // From version 4 on, NaN is a category and equals itself.
    return b.binary(fn::logical_or, equal,
                    b.binary(fn::logical_and, b.unary(fn::is_nan, apart), b.unary(fn::is_nan, table)));
  }
  const auto* words = n.owner.state().texts.of(x);
  if (!words) refuse("its keys are text, its input is not");
  std::vector<std::int64_t> places;
  for (const std::string& key : keys.texts) places.push_back(std::ranges::find(*words, key) - words->begin());
  return b.binary(fn::equal, b.with_dims(x, lifted), b.integers(places));
}

// Maps each key to its value, and elements that are no key to the default.
std::vector<value> label_encoder(node& n) {
  builder& b = n.b;
  value x = n.in(0);
  category_list keys = categories(n, "keys"), values = categories(n, "values");
  if (keys.size() == 0 && n.has_attribute("classes_strings")) {  // version 1: text to its position, or back
    keys.texts = n.texts("classes_strings");
    std::vector<std::int64_t> order(keys.texts.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<std::int64_t>(i);
    values.numbers = literal::from_int64(order);
    if (is_integer(x.type().type) && !n.owner.state().texts.of(x)) {
      std::swap(values.texts, keys.texts);
      std::swap(values.numbers, keys.numbers);
    }
  }
  if (keys.size() == 0 || keys.size() != values.size())
    invalid("has " + std::to_string(keys.size()) + " keys for " + std::to_string(values.size()) + " values");
  value hit = hits(n, x, keys);
  auto last = static_cast<std::int64_t>(x.type().rank());
  value found = b.reduced(reduction_kind::max, hit, {last}, false);
  value place = b.add(arg_reduce{true, last, false, false}, {b.to_type(hit, element_type::i32)});
  if (!values.numbers) {
    auto words = values.texts;
    words.push_back(n.text("default_string", "_Unused"));
    value index = b.where(found, place, b.scalar(element_type::i64, static_cast<double>(values.size())));
    return {n.owner.state().texts.mark(index, std::move(words))};
  }
  element_type type = values.numbers->type().type;
  double otherwise =
      is_float(type) ? n.real("default_float", -0.0) : static_cast<double>(n.integer("default_int64", -1));
  if (auto given = tensor_attribute(n, "default_tensor")) otherwise = given->at(0);
  return {b.where(found, b.add(gather{0}, {b.constant(*values.numbers), place}), b.scalar(type, otherwise))};
}

// Returns 1 at the index of the element's category and 0 elsewhere.
std::vector<value> one_hot_encoder(node& n) {
  builder& b = n.b;
  category_list keys = categories(n, "cats");
  if (keys.size() == 0) invalid("has no categories");
  value x = n.in(0);
  if (keys.numbers) x = b.to_type(x, element_type::i64);
  else if (!n.owner.state().texts.of(x)) refuse("its categories are text (cats_strings), its input is not");
  return {b.to_type(hits(n, x, keys), element_type::f32)};
}

constexpr operator_row rows[] = {
    {"LabelEncoder", label_encoder, 1, "", ml_domain},
    {"OneHotEncoder", one_hot_encoder, 1, "", ml_domain},
};

}  // namespace

std::span<const operator_row> encoder_operators() { return rows; }

}  // namespace kiln::onnx_import
