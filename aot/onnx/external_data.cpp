#include "aot/onnx/external_data.hpp"

#include <set>

#include "aot/onnx/model_file.hpp"
#include "aot/onnx/tensors.hpp"
#include "ir/error.hpp"

namespace kiln {
namespace {

using namespace onnx_import;

constexpr int max_depth = 32;  // the same as the importer's

class location_search {
 public:
  std::set<std::string> found;

  void tensor(const ::onnx::TensorProto& t) {
    if (t.data_location() != ::onnx::TensorProto::EXTERNAL) return;
    for (const auto& entry : t.external_data())
      if (entry.key() == "location" && entry.value() != own_file_location) found.insert(entry.value());
  }
  void nodes(const auto& list, int depth) {
    if (depth > max_depth)
      throw error(error_kind::invalid_model,
                  "the model's bodies are nested more than " + std::to_string(max_depth) + " deep");
    for (const ::onnx::NodeProto& n : list)
      for (const auto& a : n.attribute()) {
        if (a.has_t()) tensor(a.t());
        for (const auto& t : a.tensors()) tensor(t);
        if (a.has_g()) graph(a.g(), depth + 1);
        for (const auto& g : a.graphs()) graph(g, depth + 1);
      }
  }
  void graph(const ::onnx::GraphProto& g, int depth) {
    for (const auto& t : g.initializer()) tensor(t);
    for (const auto& t : g.sparse_initializer()) tensor(t.values()), tensor(t.indices());
    nodes(g.node(), depth);
  }
};

}  // namespace

std::vector<std::string> external_data_files(const std::filesystem::path& model) {
  auto file = mapped_file::open(model, "model");
  const std::optional<std::string> detached = detach_tensors(file->bytes());
  ::onnx::ModelProto message =
      parse_model(detached ? std::as_bytes(std::span(*detached)) : file->bytes(), "'" + model.string() + "'");
  location_search search;
  search.graph(message.graph(), 0);
  for (const auto& f : message.functions()) search.nodes(f.node(), 0);
  external_files folder(std::filesystem::absolute(model).parent_path());
  for (const std::string& location : search.found)
    folder.open(location, "'" + model.string() + "'");  // throws for a path outside the folder
  return {search.found.begin(), search.found.end()};
}

}  // namespace kiln
