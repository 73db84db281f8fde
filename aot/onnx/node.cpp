#include "aot/onnx/node.hpp"

#include <algorithm>

#include "aot/onnx/input_values.hpp"
#include "aot/onnx/sizes_of_data.hpp"
#include "ir/bind_shapes.hpp"
#include "ir/error.hpp"

namespace kiln::onnx_import {
namespace {

std::string described(std::size_t i, std::string_view what) {
  return "input " + std::to_string(i) + " (" + std::string(what) + ")";
}

}  // namespace

void refuse(const std::string& what) { throw error(error_kind::unsupported, what); }
void invalid(const std::string& what) { throw error(error_kind::invalid_model, what); }

value node::in(std::size_t i) const {
  if (!has(i)) invalid("input " + std::to_string(i) + " is missing");
  return inputs_[i];
}

std::vector<value> node::present() const {
  std::vector<value> result;
  for (value v : inputs_)
    if (v) result.push_back(v);
  if (result.empty()) invalid("has no inputs");
  return result;
}

void node::refuse_outputs_from(std::size_t i, const std::string& why) const {
  for (; i < outputs(); ++i)
    if (wants(i)) refuse("output " + std::to_string(i) + " (" + why + ") is not supported");
}

const ::onnx::AttributeProto* node::attribute(std::string_view name) const {
  for (const auto& a : proto.attribute())
    if (a.name() == name) return &a;
  return nullptr;
}

const ::onnx::AttributeProto* node::typed(std::string_view name, ::onnx::AttributeProto::AttributeType type) const {
  const auto* a = attribute(name);
  if (!a) return nullptr;
  if (!a->ref_attr_name().empty()) refuse("attribute '" + std::string(name) + "' refers to an attribute of a function");
  if (a->has_type() && a->type() != type) invalid("attribute '" + std::string(name) + "' has the wrong type");
  return a;
}

std::int64_t node::integer(std::string_view name, std::int64_t otherwise) const {
  const auto* a = typed(name, ::onnx::AttributeProto::INT);
  return a ? a->i() : otherwise;
}

double node::real(std::string_view name, double otherwise) const {
  const auto* a = typed(name, ::onnx::AttributeProto::FLOAT);
  return a ? static_cast<double>(a->f()) : otherwise;
}

std::string node::text(std::string_view name, std::string_view otherwise) const {
  const auto* a = typed(name, ::onnx::AttributeProto::STRING);
  return a ? a->s() : std::string(otherwise);
}

std::optional<std::vector<std::int64_t>> node::integers(std::string_view name) const {
  const auto* a = typed(name, ::onnx::AttributeProto::INTS);
  if (!a) return std::nullopt;
  return std::vector<std::int64_t>(a->ints().begin(), a->ints().end());
}

std::vector<std::string> node::texts(std::string_view name) const {
  const auto* a = typed(name, ::onnx::AttributeProto::STRINGS);
  if (!a) return {};
  return {a->strings().begin(), a->strings().end()};
}

::onnx::GraphProto& node::graph(std::string_view name) const {
  if (!typed(name, ::onnx::AttributeProto::GRAPH)) invalid("attribute '" + std::string(name) + "' is missing");
  for (auto& a : *proto.mutable_attribute())
    if (a.name() == name) return *a.mutable_g();
  invalid("attribute '" + std::string(name) + "' is missing");
}

known_elements node::known(std::size_t i, std::string_view what) const {
  auto elements = b.known(in(i));
  if (!elements) elements = elements_of_data(*this, in(i), proto.input(static_cast<int>(i)));
  if (!elements) throw value_needed(described(i, what) + " must be known at import, but " + advice_to_know(in(i)));
  return *elements;
}

std::vector<std::int64_t> node::numbers(std::size_t i, std::string_view what) const {
  std::vector<std::int64_t> result;
  for (const dim& d : known(i, what)) {
    if (!d.is_static())
      refuse(described(i, what) + " must be known at import, but " +
             (d.str().starts_with(value_prefix)
                  ? advice_to_know(in(i))
                  : "depends on dimension '" + d.str() + "'; give it a value with --dim"));
    result.push_back(d.value());
  }
  return result;
}

literal node::constant(std::size_t i, std::string_view what) const {
  auto data = b.constant_of(in(i));
  if (!data) refuse(described(i, what) + " must be constant, but " + advice_to_know(in(i)));
  if (data->type().element_count() == 0) invalid(described(i, what) + " is empty");
  return *data;
}

std::optional<std::vector<std::int64_t>> node::numbers_since(std::int64_t since, std::string_view name,
                                                             std::size_t i) const {
  if (opset < since) return integers(name);
  if (!has(i)) return std::nullopt;
  return numbers(i, name);
}

}  // namespace kiln::onnx_import
