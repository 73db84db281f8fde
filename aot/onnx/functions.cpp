#include "aot/onnx/functions.hpp"

#include <algorithm>

#include "aot/onnx/node.hpp"

namespace kiln::onnx_import {
namespace {

// Field numbers that the protobuf schema we compile against does not have yet.
constexpr int function_attribute_proto = 11, function_overload = 13, node_overload = 8;

// Calls f with the content of each length-delimited field of this number.
template <class F>
void for_each_unknown(const google::protobuf::Message& message, int number, F f) {
  const auto& unknown = message.GetReflection()->GetUnknownFields(message);
  for (int i = 0; i < unknown.field_count(); ++i)
    if (const auto& field = unknown.field(i);
        field.number() == number && field.type() == google::protobuf::UnknownField::TYPE_LENGTH_DELIMITED)
      f(field.length_delimited());
}

std::string unknown_text(const google::protobuf::Message& message, int number) {
  std::string result;
  for_each_unknown(message, number, [&](const std::string& text) { result = text; });
  return result;
}

}  // namespace

std::string standard_domain(const std::string& domain) { return domain == "ai.onnx" ? "" : domain; }

function_key key_of(const ::onnx::FunctionProto& function) {
  return {standard_domain(function.domain()), function.name(), unknown_text(function, function_overload)};
}

function_key key_of(const ::onnx::NodeProto& call) {
  return {standard_domain(call.domain()), call.op_type(), unknown_text(call, node_overload)};
}

std::vector<::onnx::AttributeProto> call_attributes(const ::onnx::FunctionProto& function,
                                                    const ::onnx::NodeProto& call) {
  std::vector<::onnx::AttributeProto> result(call.attribute().begin(), call.attribute().end());
  for_each_unknown(function, function_attribute_proto, [&](const std::string& text) {
    if (!result.emplace_back().ParseFromString(text))
      invalid("function '" + function.name() + "' has a malformed default attribute");
  });
  return result;
}

void bind_attributes(::onnx::NodeProto& proto, const std::vector<::onnx::AttributeProto>& given) {
  auto& attributes = *proto.mutable_attribute();
  for (int i = attributes.size(); i-- > 0;) {
    auto& a = attributes[i];
    if (a.has_g())
      for (auto& inner : *a.mutable_g()->mutable_node()) bind_attributes(inner, given);
    if (a.ref_attr_name().empty()) continue;
    std::string name = a.name(), wanted = a.ref_attr_name();
    auto found = std::ranges::find(given, wanted, [](const auto& g) { return g.name(); });
    if (found == given.end()) {
      attributes.DeleteSubrange(i, 1);
    } else {
      a = *found;
      a.set_name(name);
    }
  }
}

}  // namespace kiln::onnx_import
