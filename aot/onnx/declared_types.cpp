#include "aot/onnx/declared_types.hpp"

#include <spdlog/spdlog.h>

#include "ir/printable.hpp"

namespace kiln::onnx_import {
namespace {

// Returns the reason why the declaration contradicts the type, or an empty string if it does not.
std::string contradiction(const shape& type, const ::onnx::TypeProto& declared) {
  if (!declared.has_tensor_type()) return {};
  const auto& tensor = declared.tensor_type();
  constexpr int unknown = ::onnx::TensorProto::UNDEFINED, text = ::onnx::TensorProto::STRING;
  if (tensor.elem_type() != unknown && tensor.elem_type() != text) {
    element_type stated{};
    try {
      stated = element_type_of(tensor.elem_type(), "it");
    } catch (const error& e) {
      return e.what();
    }
    if (stated != type.type) return std::string(name(stated));
  }
  if (!tensor.has_shape()) return {};
  if (static_cast<std::size_t>(tensor.shape().dim_size()) != type.rank())
    return "rank " + std::to_string(tensor.shape().dim_size());
  for (int i = 0; i < tensor.shape().dim_size(); ++i) {
    const auto& d = tensor.shape().dim(i);
    const dim& own = type.dims[static_cast<std::size_t>(i)];
    if (d.has_dim_value() && own.is_static() && d.dim_value() != own.value())
      return "size " + std::to_string(d.dim_value()) + " of axis " + std::to_string(i);
  }
  return {};
}

}  // namespace

void report_wrong_declarations(const scope& imported, const ::onnx::GraphProto& graph) {
  auto report = [&](const ::onnx::ValueInfoProto& info) {
    value v = imported.imported(info.name());
    if (!v || !info.has_type()) return;
    if (std::string why = contradiction(v.type(), info.type()); !why.empty())
      spdlog::debug("value '{}' is {}, although the model declares {}", printable(info.name()), v.type().str(),
                    printable(why));
  };
  for (const auto& info : graph.value_info()) report(info);
  for (const auto& info : graph.output()) report(info);
}

}  // namespace kiln::onnx_import
