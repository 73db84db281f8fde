#include "onnxruntime/context_node.hpp"

#include <array>
#include <filesystem>
#include <fstream>
#include <limits>
#include <map>

#include "onnxruntime/options.hpp"

namespace kiln::ort {
namespace {

namespace fs = std::filesystem;

constexpr std::uintmax_t most_attribute_bytes = std::numeric_limits<int>::max();

// Returns the bytes of a file that is embedded in a node as an attribute. Throws if it is no regular file, or too
// large.
std::string contents_of(const fs::path& file) {
  if (!fs::is_regular_file(file)) throw std::runtime_error("kiln: " + file.string() + " is not a regular file");
  const std::uintmax_t size = fs::file_size(file);
  if (size > most_attribute_bytes)
    throw std::runtime_error("kiln: a part of 2 GiB and more cannot be embedded; use ep.context_embed_mode 0");
  std::string bytes(size, '\0');
  if (!std::ifstream(file, std::ios::binary).read(bytes.data(), static_cast<std::streamsize>(size)))
    throw std::runtime_error("kiln: " + file.string() + " cannot be read");
  return bytes;
}

fs::path folder_of(const OrtGraph* graph) {
  const ORTCHAR_T* path = nullptr;
  require(runtime().api->Graph_GetModelPath(graph, &path));
  return path ? fs::path(path).parent_path() : fs::path();
}

const OrtOpAttr* attribute(const OrtNode* node, const char* name) {
  const OrtOpAttr* found = nullptr;
  if (OrtStatus* status = runtime().api->Node_GetAttributeByName(node, name, &found))
    runtime().api->ReleaseStatus(status);
  return found;
}

std::string text_of(const OrtNode* node, const char* name) {
  const OrtOpAttr* found = attribute(node, name);
  std::size_t bytes = 0;
  if (!found) return "";
  if (OrtStatus* status = runtime().api->ReadOpAttr(found, ORT_OP_ATTR_STRING, nullptr, 0, &bytes))
    runtime().api->ReleaseStatus(status);
  std::string result(bytes, '\0');
  if (bytes) require(runtime().api->ReadOpAttr(found, ORT_OP_ATTR_STRING, result.data(), bytes, &bytes));
  return result;
}

std::int64_t integer_of(const OrtNode* node, const char* name, std::int64_t otherwise) {
  const OrtOpAttr* found = attribute(node, name);
  std::size_t bytes = 0;
  if (found) require(runtime().api->ReadOpAttr(found, ORT_OP_ATTR_INT, &otherwise, sizeof otherwise, &bytes));
  return otherwise;
}

// Attributes until a node takes copies of them.
class attributes {
 public:
  ~attributes() {
    for (OrtOpAttr* a : all_) runtime().api->ReleaseOpAttr(a);
  }
  void add(const char* name, std::int64_t value) { add(name, &value, 1, ORT_OP_ATTR_INT); }
  void add(const char* name, const std::string& value) {
    if (value.size() > most_attribute_bytes) throw std::runtime_error("kiln: an attribute has 2 GiB and more");
    add(name, value.data(), static_cast<int>(value.size()), ORT_OP_ATTR_STRING);
  }
  std::vector<OrtOpAttr*>& all() { return all_; }

 private:
  void add(const char* name, const void* data, int length, OrtOpAttrType type) {
    OrtOpAttr* made = nullptr;
    require(runtime().api->CreateOpAttr(name, data, length, type, &made));
    all_.push_back(made);
  }
  std::vector<OrtOpAttr*> all_;
};

}  // namespace

context_options read_context_options(const OrtSessionOptions* session) {
  const OrtApi& api = *runtime().api;
  OrtKeyValuePairs* pairs = nullptr;
  require(api.GetSessionOptionsConfigEntries(session, &pairs));
  const auto value = [&](const char* key) -> std::string {
    const char* found = api.GetKeyValue(pairs, key);
    return found ? found : "";
  };
  context_options result{value("ep.context_enable") == "1", value("ep.context_embed_mode") == "1",
                         value("ep.context_file_path")};
  api.ReleaseKeyValuePairs(pairs);
  return result;
}

bool is_own_context(const OrtNode* node) {
  if (operator_of(node) != "EPContext" || domain_of(node) != "com.microsoft") return false;
  const std::string source = text_of(node, "source");
  return source == provider_name || source == gpu_provider_name;
}

OrtNode* make_context_node(const OrtGraph* graph, const OrtNode* fused, const compiled_part& what,
                           const context_options& options) {
  const OrtModelEditorApi* editor = runtime().api->GetModelEditorApi();
  if (!editor) throw std::runtime_error("kiln: this ONNX Runtime cannot write models");
  const std::string name = name_of(fused);
  attributes all;
  all.add("main_context", 1);
  all.add("embed_mode", options.embedded ? 1 : 0);
  all.add("source", std::string(provider_name));
  all.add("partition_name", name);
  if (options.embedded) {
    all.add("ep_cache_context", contents_of(what.file));
  } else {
    const fs::path folder = options.model.empty() ? folder_of(graph) : fs::path(options.model).parent_path();
    const std::string file = name + ".kiln";
    fs::copy_file(what.file, folder / file, fs::copy_options::overwrite_existing);
    all.add("ep_cache_context", file);
  }
  std::vector<std::string> names;
  std::vector<const char*> inputs, outputs;
  for (const OrtValueInfo* v : inputs_of(fused)) names.push_back(name_of(v));
  const std::size_t input_count = names.size();
  for (const OrtValueInfo* v : outputs_of(fused)) names.push_back(name_of(v));
  for (std::size_t i = 0; i < names.size(); ++i) (i < input_count ? inputs : outputs).push_back(names[i].c_str());
  OrtNode* made = nullptr;
  require(editor->CreateNode("EPContext", "com.microsoft", name.c_str(), inputs.data(), inputs.size(), outputs.data(),
                             outputs.size(), all.all().data(), all.all().size(), &made));
  all.all().clear();  // the node has them now
  return made;
}

compiled_part read_context_node(const OrtGraph* graph, const OrtNode* node, const compiler& keeps) {
  const std::string context = text_of(node, "ep_cache_context");
  compiled_part result;
  if (integer_of(node, "embed_mode", 1) == 1) {
    result.file = keeps.keep(context);
  } else {
    const fs::path file = context;
    if (file.is_absolute() || file.has_parent_path())
      throw std::runtime_error("kiln: node '" + name_of(node) + "' names '" + context +
                               "', which is not a file beside the model");
    result.file = (folder_of(graph) / file).string();
  }
  const kiln_library& l = library();
  kiln_description* description = nullptr;
  check(l.description_open(result.file.c_str(), &description));
  kiln_port port{};
  for (std::size_t i = 0; l.description_input(description, i, &port) == KILN_OK; ++i)
    result.inputs.push_back(port.name);
  // Behind the node's outputs there may be counts of what is valid in them.
  const std::size_t count = outputs_of(node).size();
  for (std::size_t i = 0; i < count && l.description_output(description, i, &port) == KILN_OK; ++i)
    result.outputs.push_back(port.name);
  l.description_close(description);
  return result;
}

}  // namespace kiln::ort
