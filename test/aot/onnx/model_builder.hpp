// Small ONNX models for tests, written in a line or two.
#pragma once

#include <initializer_list>
#include <span>
#include <string>
#include <vector>

#include <onnx/onnx_pb.h>

#include "aot/onnx/import.hpp"

namespace kiln::test {

inline constexpr int float_type = ::onnx::TensorProto::FLOAT, int64_type = ::onnx::TensorProto::INT64,
                     bool_type = ::onnx::TensorProto::BOOL;

class graph_builder {
 public:
  explicit graph_builder(::onnx::GraphProto& graph) : graph(graph) {}

  // A dim is a name, or a number if it starts with a digit.
  graph_builder& input(const std::string& name, int type, const std::vector<std::string>& dims) {
    info(*graph.add_input(), name, type, dims);
    return *this;
  }
  graph_builder& output(const std::string& name, int type = float_type) {
    auto& made = *graph.add_output();
    made.set_name(name);
    made.mutable_type()->mutable_tensor_type()->set_elem_type(type);
    return *this;
  }
  ::onnx::NodeProto& node(const std::string& op, const std::vector<std::string>& inputs,
                          const std::vector<std::string>& outputs) {
    auto& made = *graph.add_node();
    made.set_op_type(op);
    made.set_name(op + "_node");
    for (const auto& i : inputs) made.add_input(i);
    for (const auto& o : outputs) made.add_output(o);
    return made;
  }
  ::onnx::TensorProto& floats(const std::string& name, const std::vector<std::int64_t>& dims,
                              const std::vector<float>& values) {
    auto& made = tensor(name, float_type, dims);
    made.set_raw_data(values.data(), values.size() * sizeof(float));
    return made;
  }
  ::onnx::TensorProto& integers(const std::string& name, const std::vector<std::int64_t>& dims,
                                const std::vector<std::int64_t>& values) {
    auto& made = tensor(name, int64_type, dims);
    for (auto v : values) made.add_int64_data(v);
    return made;
  }
  ::onnx::TensorProto& tensor(const std::string& name, int type, const std::vector<std::int64_t>& dims) {
    auto& made = *graph.add_initializer();
    made.set_name(name);
    made.set_data_type(type);
    for (auto d : dims) made.add_dims(d);
    return made;
  }
  static void attribute(::onnx::NodeProto& node, const std::string& name, std::int64_t x) {
    auto& a = *node.add_attribute();
    a.set_name(name);
    a.set_type(::onnx::AttributeProto::INT);
    a.set_i(x);
  }
  static void attribute(::onnx::NodeProto& node, const std::string& name, const std::vector<std::int64_t>& list) {
    auto& a = *node.add_attribute();
    a.set_name(name);
    a.set_type(::onnx::AttributeProto::INTS);
    for (auto x : list) a.add_ints(x);
  }
  static ::onnx::GraphProto& body(::onnx::NodeProto& node, const std::string& name) {
    auto& a = *node.add_attribute();
    a.set_name(name);
    a.set_type(::onnx::AttributeProto::GRAPH);
    return *a.mutable_g();
  }

  ::onnx::GraphProto& graph;

 private:
  static void info(::onnx::ValueInfoProto& made, const std::string& name, int type,
                   const std::vector<std::string>& dims) {
    made.set_name(name);
    auto& tensor = *made.mutable_type()->mutable_tensor_type();
    tensor.set_elem_type(type);
    auto& shape = *tensor.mutable_shape();
    for (const auto& d : dims) {
      auto& dim = *shape.add_dim();
      if (!d.empty() && (std::isdigit(static_cast<unsigned char>(d[0])) || d[0] == '-'))
        dim.set_dim_value(std::stoll(d));
      else if (!d.empty()) dim.set_dim_param(d);
    }
  }
};

// A base class, so that the model is constructed before references to its graph.
struct model_holder {
  ::onnx::ModelProto model;
};

class model_builder : public model_holder, public graph_builder {
 public:
  explicit model_builder(int opset = 17) : graph_builder(*model.mutable_graph()) {
    model.set_ir_version(8);
    model.add_opset_import()->set_version(opset);
    graph.set_name("g");
  }
  std::string bytes() const { return model.SerializeAsString(); }
  program import(const import_options& options = {}) const {
    std::string data = bytes();
    return import_onnx(std::as_bytes(std::span(data.data(), data.size())), options);
  }
};

}  // namespace kiln::test
