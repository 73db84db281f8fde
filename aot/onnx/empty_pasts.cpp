#include "aot/onnx/empty_pasts.hpp"

#include <cstdint>
#include <string_view>
#include <unordered_map>

namespace kiln::onnx_import {
namespace {

// Operators that append to an input along an axis.
struct past_input {
  std::string_view operation;
  int input, axis;
};
constexpr past_input past_inputs[] = {
    {"Attention", 4, 2},           {"Attention", 5, 2},  // com.microsoft: a mask of rank 4
    {"MultiHeadAttention", 6, 2},  {"MultiHeadAttention", 7, 2},
    {"GroupQueryAttention", 3, 2}, {"GroupQueryAttention", 4, 2},
};

class search {
 public:
  explicit search(const ::onnx::GraphProto& graph) {
    for (const auto& i : graph.input())
      if (i.type().has_tensor_type()) inputs_.emplace(i.name(), &i.type().tensor_type().shape());
    visit(graph);
  }
  std::set<std::string> take() { return std::move(found_); }

 private:
  // Graphs nested in an If or Loop read inputs of the outer graph.
  void visit(const ::onnx::GraphProto& graph) {
    for (const auto& node : graph.node()) {
      for (const auto& a : node.attribute()) {
        if (a.has_g()) visit(a.g());
        const bool appends = node.op_type() == "Concat" && node.input_size() == 2 && !inputs_.contains(node.input(1));
        if (appends && a.name() == "axis") add(node.input(0), a.i());
      }
      for (const past_input& past : past_inputs)
        if (node.op_type() == past.operation && past.input < node.input_size()) add(node.input(past.input), past.axis);
    }
  }

  void add(const std::string& input, std::int64_t axis) {
    const auto found = inputs_.find(input);
    if (found == inputs_.end()) return;
    const auto& dims = found->second->dim();
    if (axis < 0) axis += dims.size();
    if (dims.size() >= 3 && axis >= 0 && axis < dims.size() && !dims[static_cast<int>(axis)].dim_param().empty())
      found_.insert(dims[static_cast<int>(axis)].dim_param());
  }

  std::unordered_map<std::string, const ::onnx::TensorShapeProto*> inputs_;
  std::set<std::string> found_;
};

}  // namespace

std::set<std::string> growing_dimensions(const ::onnx::GraphProto& graph) { return search(graph).take(); }

}  // namespace kiln::onnx_import
