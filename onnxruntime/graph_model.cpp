#include "onnxruntime/graph_model.hpp"

#include <algorithm>
#include <cstring>
#include <memory>
#include <set>

#include "onnxruntime/node_order.hpp"
#include "onnxruntime/wire_writer.hpp"

namespace kiln::ort {
namespace {

// Field numbers of onnx.proto.
namespace model_field {
constexpr int ir_version = 1, producer = 2, graph = 7, opset = 8;
}
namespace opset_field {
constexpr int domain = 1, version = 2;
}
namespace graph_field {
constexpr int node = 1, name = 2, initializer = 5, input = 11, output = 12;
}
namespace node_field {
constexpr int input = 1, output = 2, name = 3, operation = 4, attribute = 5, domain = 7;
}
namespace attribute_field {
constexpr int name = 1, real = 2, integer = 3, text = 4, tensor = 5, graph = 6, reals = 7, integers = 8, texts = 9,
              type = 20;
}
namespace attribute_type {
constexpr int real = 1, integer = 2, text = 3, tensor = 4, graph = 5, reals = 6, integers = 7, texts = 8;
}
namespace tensor_field {
constexpr int dim = 1, type = 2, name = 8, raw = 9, external = 13, location = 14;
}
namespace entry_field {
constexpr int key = 1, value = 2;
}
namespace value_field {
constexpr int name = 1, type = 2;
}

constexpr std::size_t least_external = 1024;
constexpr std::size_t data_alignment = 64;

struct tensor_type {
  ONNXTensorElementDataType element = ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
  std::vector<std::int64_t> dims;  // -1: open
  std::vector<std::string> names;
};

tensor_type type_of(const OrtValueInfo* v, const OrtTypeInfo* type) {
  const OrtApi& api = *runtime().api;
  if (kind_of(type) != ONNX_TYPE_TENSOR) throw std::runtime_error("'" + name_of(v) + "' is no tensor");
  const OrtTensorTypeAndShapeInfo* tensor = nullptr;
  require(api.CastTypeInfoToTensorInfo(type, &tensor));
  tensor_type result;
  require(api.GetTensorElementType(tensor, &result.element));
  if (result.element == ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING)
    throw std::runtime_error("'" + name_of(v) + "' holds text");
  std::size_t rank = 0;
  require(api.GetDimensionsCount(tensor, &rank));
  result.dims.resize(rank);
  std::vector<const char*> names(rank);
  if (rank) {
    require(api.GetDimensions(tensor, result.dims.data(), rank));
    require(api.GetSymbolicDimensions(tensor, names.data(), rank));
  }
  for (const char* n : names) result.names.emplace_back(n ? n : "");
  return result;
}

tensor_type type_of(const OrtValueInfo* v) { return type_of(v, type_info(v)); }

// A TypeProto. Of a sequence, it says nothing about the shapes of the elements.
wire_writer type_message(const OrtValueInfo* v, const OrtTypeInfo* of, bool with_shape) {
  wire_writer of_type;
  if (const owned_type_info element = element_of(of)) {
    wire_writer sequence;
    sequence.message(1, type_message(v, element.get(), false));
    of_type.message(4, sequence);
    return of_type;
  }
  const tensor_type type = type_of(v, of);
  wire_writer tensor;
  tensor.integer(1, type.element);
  if (with_shape) {
    wire_writer shape;
    for (std::size_t i = 0; i < type.dims.size(); ++i) {
      wire_writer dim;
      if (type.dims[i] >= 0) dim.integer(1, type.dims[i]);
      else if (!type.names[i].empty()) dim.text(2, type.names[i]);
      shape.message(1, dim);
    }
    tensor.message(2, shape);
  }
  of_type.message(1, tensor);
  return of_type;
}

// A ValueInfoProto, without a shape if that is for Kiln to find out.
wire_writer value_message(const OrtValueInfo* v, bool with_shape) {
  wire_writer result;
  result.text(value_field::name, name_of(v));
  result.message(value_field::type, type_message(v, type_info(v), with_shape));
  return result;
}

class model_writer {
 public:
  model_writer(graph_model& to, const std::string& data_file) : to_(to), data_file_(data_file) {}

  wire_writer constant(const OrtValueInfo* v) {
    const OrtValue* tensor = nullptr;
    require(runtime().api->ValueInfo_GetInitializerValue(v, &tensor));
    if (!tensor) throw std::runtime_error("'" + name_of(v) + "' is a constant without a value");
    return tensor_message(tensor, name_of(v), true);
  }

  wire_writer node(const OrtNode* n) {
    wire_writer result;
    for (const OrtValueInfo* v : inputs_of(n)) result.text(node_field::input, name_of(v));
    for (const OrtValueInfo* v : outputs_of(n)) result.text(node_field::output, name_of(v));
    result.text(node_field::name, name_of(n));
    result.text(node_field::operation, operator_of(n));
    const std::string domain = domain_of(n);
    result.text(node_field::domain, domain == "ai.onnx" ? "" : domain);
    for (const OrtOpAttr* a : list<const OrtOpAttr*>(n, &OrtApi::Node_GetNumAttributes, &OrtApi::Node_GetAttributes))
      if (wire_writer attribute; write_attribute(a, attribute)) result.message(node_field::attribute, attribute);
    std::size_t count = 0;
    require(runtime().api->Node_GetNumSubgraphs(n, &count));
    std::vector<const OrtGraph*> bodies(count);
    std::vector<const char*> names(count);
    if (count) require(runtime().api->Node_GetSubgraphs(n, bodies.data(), count, names.data()));
    for (std::size_t i = 0; i < count; ++i) {
      wire_writer attribute;
      attribute.text(attribute_field::name, names[i]);
      attribute.message(attribute_field::graph, body(bodies[i]));
      attribute.integer(attribute_field::type, attribute_type::graph);
      result.message(node_field::attribute, attribute);
    }
    return result;
  }

 private:
  // A graph with all that is in it: the body of an If, a Loop or a Scan.
  wire_writer body(const OrtGraph* g) {
    wire_writer result;
    for (const OrtNode* n : nodes_of(g)) result.message(graph_field::node, node(n));
    result.text(graph_field::name, "body");
    const auto inputs = list<const OrtValueInfo*>(g, &OrtApi::Graph_GetNumInputs, &OrtApi::Graph_GetInputs);
    for (const OrtValueInfo* v :
         list<const OrtValueInfo*>(g, &OrtApi::Graph_GetNumInitializers, &OrtApi::Graph_GetInitializers))
      result.message(graph_field::initializer, constant(v));
    // Bodies seldom state ranks; a wrong one would be worse than none.
    for (const OrtValueInfo* v : inputs) {
      const bool has_rank = kind_of(type_info(v)) == ONNX_TYPE_TENSOR && !type_of(v).dims.empty();
      result.message(graph_field::input, value_message(v, has_rank));
    }
    for (const OrtValueInfo* v : list<const OrtValueInfo*>(g, &OrtApi::Graph_GetNumOutputs, &OrtApi::Graph_GetOutputs))
      result.message(graph_field::output, value_message(v, false));
    return result;
  }

  wire_writer tensor_message(const OrtValue* tensor, const std::string& name, bool may_be_external) {
    const OrtApi& api = *runtime().api;
    OrtTensorTypeAndShapeInfo* info = nullptr;
    require(api.GetTensorTypeAndShape(tensor, &info));
    ONNXTensorElementDataType element = ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
    std::size_t rank = 0;
    require(api.GetTensorElementType(info, &element));
    require(api.GetDimensionsCount(info, &rank));
    std::vector<std::int64_t> dims(rank);
    if (rank) require(api.GetDimensions(info, dims.data(), rank));
    api.ReleaseTensorTypeAndShapeInfo(info);
    if (element == ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING) throw std::runtime_error("'" + name + "' holds text");
    std::size_t bytes = 0;
    const void* data = nullptr;
    require(api.GetTensorSizeInBytes(tensor, &bytes));
    if (bytes) require(api.GetTensorData(tensor, &data));
    wire_writer result;
    for (std::int64_t d : dims) result.integer(tensor_field::dim, d);
    result.integer(tensor_field::type, element);
    result.text(tensor_field::name, name);
    const std::string_view contents(static_cast<const char*>(data), bytes);
    if (!may_be_external || bytes < least_external) {
      result.text(tensor_field::raw, contents);
      return result;
    }
    static constexpr char zeros[data_alignment] = {};
    if (const std::size_t rest = end_ % data_alignment; rest) {
      to_.data.emplace_back(zeros, data_alignment - rest);
      end_ += data_alignment - rest;
    }
    const auto entry = [&](const char* key, const std::string& value) {
      wire_writer e;
      e.text(entry_field::key, key);
      e.text(entry_field::value, value);
      result.message(tensor_field::external, e);
    };
    entry("location", data_file_);
    entry("offset", std::to_string(end_));
    entry("length", std::to_string(bytes));
    result.integer(tensor_field::location, 1);
    to_.data.push_back(contents);
    end_ += bytes;
    return result;
  }

  template <class T>
  std::vector<T> read(const OrtOpAttr* a, OrtOpAttrType type) {
    const OrtApi& api = *runtime().api;
    std::size_t bytes = 0;
    // The first call says how much there is, as an error if that is more than nothing.
    if (OrtStatus* status = api.ReadOpAttr(a, type, nullptr, 0, &bytes)) api.ReleaseStatus(status);
    std::vector<T> result(bytes / sizeof(T));
    if (!result.empty()) require(api.ReadOpAttr(a, type, result.data(), bytes, &bytes));
    return result;
  }

  // Returns false for a graph, which the node's bodies bring.
  bool write_attribute(const OrtOpAttr* a, wire_writer& to) {
    const OrtApi& api = *runtime().api;
    OrtOpAttrType type = ORT_OP_ATTR_UNDEFINED;
    require(api.OpAttr_GetType(a, &type));
    const std::string name = text(a, &OrtApi::OpAttr_GetName);
    to.text(attribute_field::name, name);
    int written = 0;
    switch (type) {
      case ORT_OP_ATTR_INT:
        for (std::int64_t v : read<std::int64_t>(a, type)) to.integer(attribute_field::integer, v);
        written = attribute_type::integer;
        break;
      case ORT_OP_ATTR_INTS:
        for (std::int64_t v : read<std::int64_t>(a, type)) to.integer(attribute_field::integers, v);
        written = attribute_type::integers;
        break;
      case ORT_OP_ATTR_FLOAT:
        for (float v : read<float>(a, type)) to.real(attribute_field::real, v);
        written = attribute_type::real;
        break;
      case ORT_OP_ATTR_FLOATS:
        for (float v : read<float>(a, type)) to.real(attribute_field::reals, v);
        written = attribute_type::reals;
        break;
      case ORT_OP_ATTR_STRING: {
        const std::vector<char> v = read<char>(a, type);
        to.text(attribute_field::text, std::string_view(v.data(), v.size()));
        written = attribute_type::text;
        break;
      }
      case ORT_OP_ATTR_STRINGS: {
        // One after another, each with a zero at its end.
        const std::vector<char> v = read<char>(a, type);
        for (std::size_t at = 0; at < v.size();) {
          const std::string one(v.data() + at, strnlen(v.data() + at, v.size() - at));
          to.text(attribute_field::texts, one);
          at += one.size() + 1;
        }
        written = attribute_type::texts;
        break;
      }
      case ORT_OP_ATTR_TENSOR: {
        OrtValue* tensor = nullptr;
        require(api.OpAttr_GetTensorAttributeAsOrtValue(a, &tensor));
        wire_writer message;
        try {
          message = tensor_message(tensor, name, false);
        } catch (...) {
          api.ReleaseValue(tensor);
          throw;
        }
        api.ReleaseValue(tensor);
        to.message(attribute_field::tensor, message);
        written = attribute_type::tensor;
        break;
      }
      case ORT_OP_ATTR_GRAPH: return false;
      default: throw std::runtime_error("attribute '" + name + "' has a type that is not known");
    }
    to.integer(attribute_field::type, written);
    return true;
  }

  graph_model& to_;
  const std::string& data_file_;
  std::size_t end_ = 0;  // of the data
};

bool is_read_outside(const OrtValueInfo* v, const std::set<const OrtNode*>& inside) {
  const OrtApi& api = *runtime().api;
  bool is_output = false;
  require(api.ValueInfo_IsGraphOutput(v, &is_output));
  if (is_output) return true;
  std::size_t count = 0;
  require(api.ValueInfo_GetValueNumConsumers(v, &count));
  std::vector<const OrtNode*> readers(count);
  std::vector<std::int64_t> places(count);
  if (count) require(api.ValueInfo_GetValueConsumers(v, readers.data(), places.data(), count));
  return std::ranges::any_of(readers, [&](const OrtNode* n) { return !inside.contains(n); });
}

}  // namespace

graph_model model_of(const OrtGraph* graph, std::span<const OrtNode* const> nodes, const std::string& data_file) {
  const OrtApi& api = *runtime().api;
  graph_model result;
  model_writer writer(result, data_file);
  const std::set<const OrtNode*> inside(nodes.begin(), nodes.end());
  std::set<std::string> known{""};
  wire_writer g;
  const auto given = list<const OrtValueInfo*>(graph, &OrtApi::Graph_GetNumInputs, &OrtApi::Graph_GetInputs);
  for (const OrtNode* n : nodes) {
    std::vector<const OrtValueInfo*> read = inputs_of(n);
    for (const OrtValueInfo* v : captured_by(n)) read.push_back(v);
    for (const OrtValueInfo* v : read) {
      if (!v || !known.insert(name_of(v)).second) continue;
      if (is_constant(v)) {
        g.message(graph_field::initializer, writer.constant(v));
        continue;
      }
      // ONNX Runtime does not tell a scalar from a tensor of unknown rank.
      const bool is_given = std::ranges::any_of(given, [&](const OrtValueInfo* i) { return name_of(i) == name_of(v); });
      if (type_of(v).dims.empty() && !is_given) throw std::runtime_error("the rank of '" + name_of(v) + "' is unknown");
      g.message(graph_field::input, value_message(v, true));
      result.inputs.push_back(name_of(v));
    }
    for (const OrtValueInfo* v : outputs_of(n)) {
      if (!v || name_of(v).empty()) continue;
      known.insert(name_of(v));
      if (!is_read_outside(v, inside)) continue;
      type_of(v);  // a run gives tensors only
      g.message(graph_field::output, value_message(v, false));
      result.outputs.push_back(name_of(v));
    }
    g.message(graph_field::node, writer.node(n));
  }
  g.text(graph_field::name, "part");
  wire_writer m;
  std::int64_t ir = 0;
  require(api.Graph_GetOnnxIRVersion(graph, &ir));
  m.integer(model_field::ir_version, ir);
  m.text(model_field::producer, "onnxruntime");
  std::size_t count = 0;
  require(api.Graph_GetNumOperatorSets(graph, &count));
  std::vector<const char*> domains(count);
  std::vector<std::int64_t> versions(count);
  if (count) require(api.Graph_GetOperatorSets(graph, domains.data(), versions.data(), count));
  for (std::size_t i = 0; i < count; ++i) {
    wire_writer opset;
    opset.text(opset_field::domain, std::string_view(domains[i]) == "ai.onnx" ? "" : domains[i]);
    opset.integer(opset_field::version, versions[i]);
    m.message(model_field::opset, opset);
  }
  m.message(model_field::graph, g);
  result.bytes = m.bytes();
  return result;
}

}  // namespace kiln::ort
