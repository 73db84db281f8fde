#include "aot/onnx/model_parts.hpp"

#include <set>

#include "aot/onnx/model_file.hpp"
#include "aot/onnx/tensors.hpp"
#include "ir/error.hpp"

namespace kiln {
namespace {

using namespace onnx_import;
using ::onnx::GraphProto;
using ::onnx::NodeProto;

constexpr std::int64_t most_constant_elements = 64;

// Returns the names that a node and its bodies read. Some of them may be defined inside a body.
void collect_reads(const NodeProto& node, std::set<std::string>& names) {
  for (const std::string& input : node.input())
    if (!input.empty()) names.insert(input);
  auto collect_graph = [&](const GraphProto& body) {
    for (const NodeProto& inner : body.node()) collect_reads(inner, names);
    for (const auto& output : body.output()) names.insert(output.name());
  };
  for (const auto& a : node.attribute()) {
    if (a.has_g()) collect_graph(a.g());
    for (const GraphProto& body : a.graphs()) collect_graph(body);
  }
}

std::int64_t data_type_of(element_type type) {
  for (std::int64_t number = 1; number < 64; ++number) try {
      if (element_type_of(number, "") == type) return number;
    } catch (const error&) {  // an element type that Kiln does not know
    }
  throw error(error_kind::unsupported, "ONNX has no type '" + std::string(name(type)) + "'");
}

::onnx::TensorProto tensor_of(const std::string& name, const literal& data) {
  ::onnx::TensorProto result;
  result.set_name(name);
  result.set_data_type(static_cast<std::int32_t>(data_type_of(data.type().type)));
  for (std::int64_t d : data.type().static_dims()) result.add_dims(d);
  const auto bytes = data.bytes();
  result.set_raw_data(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  return result;
}

bool may_be_sizes(const literal& data) {
  const element_type type = data.type().type;
  return (type == element_type::i64 || type == element_type::i32) &&
         data.type().element_count() <= most_constant_elements;
}

}  // namespace

struct model_parts::implementation {
  ::onnx::ModelProto model;
  std::map<std::string, int> initializers;   // index by name
  std::vector<std::set<std::string>> reads;  // by node
  std::set<std::string> read, own_outputs;   // by any node; of the graph
};

model_parts::model_parts(const std::filesystem::path& model) : impl_(std::make_unique<implementation>()) {
  const auto file = mapped_file::open(model, "model");
  impl_->model = parse_model(file->bytes(), model.string());
  GraphProto& graph = *impl_->model.mutable_graph();
  external_files files(model.has_parent_path() ? model.parent_path() : std::filesystem::path("."));
  for (int i = 0; i < graph.initializer_size(); ++i) {
    auto& tensor = *graph.mutable_initializer(i);
    impl_->initializers.emplace(tensor.name(), i);
    if (tensor.data_location() != ::onnx::TensorProto::EXTERNAL) continue;
    const std::string name = tensor.name();
    const literal data = take_tensor(tensor, files, "initializer '" + name + "'");
    tensor = tensor_of(name, data);
  }
  for (const NodeProto& node : graph.node()) {
    collect_reads(node, impl_->reads.emplace_back());
    impl_->read.insert(impl_->reads.back().begin(), impl_->reads.back().end());
  }
  for (const auto& output : graph.output()) impl_->own_outputs.insert(output.name());
}

model_parts::~model_parts() = default;

std::size_t model_parts::node_count() const { return impl_->reads.size(); }

std::string model_parts::node_name(std::size_t index) const {
  const NodeProto& node = impl_->model.graph().node(static_cast<int>(index));
  const std::string& name = !node.name().empty() || node.output_size() == 0 ? node.name() : node.output(0);
  return name + " (" + node.op_type() + ")";
}

std::string model_parts::with_all_outputs() const {
  ::onnx::ModelProto copy = impl_->model;
  GraphProto& graph = *copy.mutable_graph();
  for (const NodeProto& node : impl_->model.graph().node())
    for (const std::string& output : node.output())
      if (impl_->read.contains(output) && !impl_->own_outputs.contains(output)) graph.add_output()->set_name(output);
  return copy.SerializeAsString();
}

model_parts::part model_parts::cut(std::size_t begin, std::size_t end, const std::map<std::string, literal>& values,
                                   bool constant_sizes) const {
  const ::onnx::ModelProto& whole = impl_->model;
  ::onnx::ModelProto model;
  model.set_ir_version(whole.ir_version());
  model.set_producer_name(whole.producer_name());
  *model.mutable_opset_import() = whole.opset_import();
  *model.mutable_functions() = whole.functions();
  GraphProto& graph = *model.mutable_graph();
  graph.set_name("part");
  std::set<std::string> made, wanted, elsewhere = impl_->own_outputs;
  for (std::size_t n = 0; n < node_count(); ++n) {
    const NodeProto& node = whole.graph().node(static_cast<int>(n));
    if (n < begin || n >= end) {
      elsewhere.insert(impl_->reads[n].begin(), impl_->reads[n].end());
      continue;
    }
    *graph.add_node() = node;
    made.insert(node.output().begin(), node.output().end());
    wanted.insert(impl_->reads[n].begin(), impl_->reads[n].end());
  }
  part result;
  auto describe = [&](const std::string& name, ::onnx::ValueInfoProto& info) {
    const literal& data = values.at(name);
    info.set_name(name);
    auto& type = *info.mutable_type()->mutable_tensor_type();
    type.set_elem_type(static_cast<std::int32_t>(data_type_of(data.type().type)));
    auto& dims = *type.mutable_shape();
    for (std::int64_t d : data.type().static_dims()) dims.add_dim()->set_dim_value(d);
  };
  for (const std::string& name : wanted) {
    if (made.contains(name)) continue;
    if (const auto weight = impl_->initializers.find(name); weight != impl_->initializers.end()) {
      *graph.add_initializer() = whole.graph().initializer(weight->second);
    } else if (const auto value = values.find(name); value == values.end()) {
      continue;  // a name of a body, or a tensor without a value, which the importer then misses by name
    } else if (constant_sizes && may_be_sizes(value->second)) {
      *graph.add_initializer() = tensor_of(name, value->second);
    } else {
      result.inputs.push_back(name);
      describe(name, *graph.add_input());
    }
  }
  for (const std::string& name : made) {
    if (!elsewhere.contains(name) || !values.contains(name)) continue;
    result.outputs.push_back(name);
    describe(name, *graph.add_output());
  }
  if (result.outputs.empty()) throw error(error_kind::unsupported, "the part gives nothing that others read");
  result.bytes = model.SerializeAsString();
  return result;
}

}  // namespace kiln
