// Runs ONNX's backend tests (Debian package libonnx-testdata): imports each model, runs it with the reference
// implementation and compares the results.
#include <google/protobuf/unknown_field_set.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <set>

#include "aot/onnx/import.hpp"
#include "aot/onnx/tensors.hpp"
#include "ir/error.hpp"
#include "spirv/library/reference.hpp"

namespace kiln {
namespace {

namespace fs = std::filesystem;
const fs::path packaged = "/usr/share/libonnx-testdata/data";

std::string contents(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

::onnx::TensorProto tensor_at(const fs::path& path) {
  ::onnx::TensorProto proto;
  if (!proto.ParseFromString(contents(path))) throw error(error_kind::unsupported, "not a tensor: " + path.string());
  return proto;
}

literal literal_of(::onnx::TensorProto proto) {
  onnx_import::external_files none{{}};
  return onnx_import::take_tensor(proto, none, "test data");
}

// Collects the tensors of a sequence or an optional at any depth of nesting (onnx-data.proto: field 3 is a tensor, 5 a
// sequence).
void collect_tensors(const std::string& bytes, std::vector<::onnx::TensorProto>& found) {
  google::protobuf::UnknownFieldSet fields;
  if (!fields.ParseFromString(bytes)) throw error(error_kind::unsupported, "test data is not a sequence");
  for (int i = 0; i < fields.field_count(); ++i) {
    const auto& field = fields.field(i);
    if (field.type() != google::protobuf::UnknownField::TYPE_LENGTH_DELIMITED) continue;
    if (field.number() == 3 && !found.emplace_back().ParseFromString(field.length_delimited()))
      throw error(error_kind::unsupported, "test data has an element that is not a tensor");
    if (field.number() == 5) collect_tensors(field.length_delimited(), found);
  }
}

// Returns the tensors of an input or output file, which may hold a sequence or an optional.
std::vector<::onnx::TensorProto> tensors_at(const fs::path& path, const ::onnx::TypeProto& type) {
  if (type.has_tensor_type()) return {tensor_at(path)};
  std::vector<::onnx::TensorProto> found;
  collect_tensors(contents(path), found);
  return found;
}

bool is_optional_without_value(const ::onnx::TypeProto& type, const std::vector<::onnx::TensorProto>& tensors) {
  return type.has_optional_type() && tensors.empty();
}

// Returns an empty string if they agree.
std::string difference(const literal& got, const literal& wanted) {
  if (got.type() != wanted.type()) return "is " + got.type().str() + ", expected " + wanted.type().str();
  bool narrow = got.type().type == element_type::f16 || got.type().type == element_type::bf16;
  double relative = narrow ? 1e-2 : 1e-3, absolute = narrow ? 1e-3 : 1e-6;
  for (std::int64_t i = 0, n = got.type().element_count(); i < n; ++i) {
    double a = got.at(i), b = wanted.at(i);
    if (std::isnan(a) && std::isnan(b)) continue;
    if (a == b) continue;
    if (is_float(got.type().type) && std::abs(a - b) <= absolute + relative * std::abs(b)) continue;
    return "element " + std::to_string(i) + " is " + std::to_string(a) + ", expected " + std::to_string(b);
  }
  return {};
}

enum class outcome { passed, passed_with_constants, refused, excluded, failed };

struct report {
  outcome result;
  std::string text;
};

// refused_cases.txt lists the cases that do not pass, each with the reason. "refused NAME: REASON" means that the
// import refuses the model by name; "excluded NAME: REASON" means that we disagree with the expected values.
struct listed_case {
  std::string kind, reason;
};

std::map<std::string, listed_case> listed_cases() {
  std::map<std::string, listed_case> result;
  std::ifstream file(KILN_REFUSED_CASES);
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line[0] == '#') continue;
    auto space = line.find(' '), colon = line.find(": ");
    if (space == std::string::npos || colon == std::string::npos || colon < space)
      throw error(error_kind::corrupted, "refused_cases.txt: " + line);
    result[line.substr(space + 1, colon - space - 1)] = {line.substr(0, space), line.substr(colon + 2)};
  }
  return result;
}

// The test data has no bfloat16; its bits are stored as uint16.
literal typed(literal data, std::int32_t declared) {
  if (declared != ::onnx::TensorProto::BFLOAT16 || data.type().type != element_type::u16) return data;
  auto bits = data.bytes();
  return literal(data.type().with_type(element_type::bf16), std::vector<std::byte>(bits.begin(), bits.end()));
}

// Adds the tensors of an input that is a sequence or an optional, and passes their number to the importer.
void add_sequence(const ::onnx::ValueInfoProto& input, const std::vector<::onnx::TensorProto>& tensors,
                  import_options& options, std::vector<literal>& inputs) {
  if (is_optional_without_value(input.type(), tensors)) {
    options.sequences[input.name()] = std::nullopt;
    return;
  }
  std::vector<std::vector<std::int64_t>> dims;
  for (const auto& tensor : tensors) {
    dims.emplace_back(tensor.dims().begin(), tensor.dims().end());
    inputs.push_back(literal_of(tensor));
  }
  options.sequences[input.name()] = dims;
}

// Runs a case. Inputs from `constants_from` on become initializers, as in real models where operators take shapes, axes
// and the like as inputs.
void run_case(const fs::path& folder, int constants_from, report& into) {
  ::onnx::ModelProto model;
  if (!model.ParseFromString(contents(folder / "model.onnx")))
    throw error(error_kind::corrupted, "model does not parse");
  fs::path data = folder / "test_data_set_0";
  std::vector<literal> inputs;
  import_options options;
  auto& graph = *model.mutable_graph();
  for (int i = 0; i < graph.input_size(); ++i) {
    const auto& type = graph.input(i).type();
    // Before IR version 4, initializers are also inputs, for which there is no data.
    if (std::ranges::any_of(graph.initializer(), [&](const auto& w) { return w.name() == graph.input(i).name(); }))
      continue;
    auto protos = tensors_at(data / ("input_" + std::to_string(i) + ".pb"), type);
    if (!type.has_tensor_type()) {
      add_sequence(graph.input(i), protos, options, inputs);
    } else if (i >= constants_from) {
      ::onnx::TensorProto& proto = protos[0];
      proto.set_name(graph.input(i).name());
      if (type.tensor_type().elem_type() == ::onnx::TensorProto::BFLOAT16 &&
          proto.data_type() == ::onnx::TensorProto::UINT16)
        proto.set_data_type(::onnx::TensorProto::BFLOAT16);
      *graph.add_initializer() = proto;
    } else {
      inputs.push_back(typed(literal_of(std::move(protos[0])), type.tensor_type().elem_type()));
    }
  }
  std::string bytes = model.SerializeAsString();
  program p = import_onnx(std::as_bytes(std::span(bytes.data(), bytes.size())), options);
  dim_bindings bindings;  // a few cases have named dimensions
  auto parameters = p.main().parameters();
  for (std::size_t i = 0; i < parameters.size(); ++i)
    for (std::size_t d = 0; d < parameters[i].type().rank(); ++d)
      if (!parameters[i].type().dims[d].is_static())
        bindings[parameters[i].type().dims[d].str()] = inputs.at(i).type().dims[d].value();
  program bound = p.bind(bindings);
  auto outputs = evaluate(bound.main(), inputs, spirv::library_runner(bound));
  // Outputs that hold counts come after these outputs.
  std::size_t compared = 0;
  for (int i = 0; i < graph.output_size(); ++i) {
    const auto& type = graph.output(i).type();
    for (auto& expected : tensors_at(data / ("output_" + std::to_string(i) + ".pb"), type)) {
      if (compared == outputs.size()) throw error(error_kind::mismatch, "there are too few outputs");
      std::string wrong =
          difference(outputs[compared++], typed(literal_of(std::move(expected)), type.tensor_type().elem_type()));
      if (!wrong.empty()) throw error(error_kind::mismatch, "output " + std::to_string(i) + " " + wrong);
    }
  }
  if (compared == 0) throw error(error_kind::mismatch, "no outputs were compared");
  into = {constants_from < graph.input_size() ? outcome::passed_with_constants : outcome::passed, ""};
}

report outcome_of(const fs::path& folder, const std::map<std::string, listed_case>& listed) {
  auto found = listed.find(folder.filename().string());
  const bool packaged_one = folder.parent_path().parent_path() == packaged;
  if (found != listed.end() &&
      (found->second.kind == "excluded" || (found->second.kind == "excluded_1.12" && packaged_one)))
    return {outcome::excluded, found->second.reason};
  report r{outcome::failed, ""};
  constexpr int none = 1000;
  for (int constants_from : {none, 1, 0}) {
    try {
      run_case(folder, constants_from, r);
      return r;
    } catch (const error& e) {
      bool by_name = e.kind() == error_kind::unsupported;
      bool other_inputs = e.kind() == error_kind::usage;  // some `like` inputs have other dims than the model declares
      if (constants_from == none || !by_name)
        r = {by_name ? outcome::refused : outcome::failed, std::string(name(e.kind())) + ": " + e.what()};
      if (!by_name && !other_inputs) return r;
    } catch (const std::exception& e) {
      return {outcome::failed, e.what()};
    }
  }
  return r;
}

// Returns the folders of libonnx-testdata that contain models, without `real`, which only has links to downloads.
// KILN_ONNX_NODE_CASES names another folder of cases, for example one generated by a newer onnx package.
std::vector<fs::path> case_roots() {
  if (const char* other = std::getenv("KILN_ONNX_NODE_CASES")) return {other};
  return {packaged / "node", packaged / "simple", packaged / "pytorch-converted", packaged / "pytorch-operator"};
}

TEST(onnx_backend, cases) {
  const auto listed = listed_cases();
  std::map<outcome, int> counts;
  std::set<fs::path> folders;
  for (const fs::path& root : case_roots()) {
    if (!fs::exists(root)) GTEST_SKIP() << "skipped: " << root << " is absent; install libonnx-testdata";
    for (const auto& entry : fs::directory_iterator(root)) folders.insert(entry.path());
  }
  for (const auto& folder : folders) {
    report r = outcome_of(folder, listed);
    ++counts[r.result];
    const std::string name = folder.filename().string();
    auto entry = listed.find(name);
    const bool is_listed = entry != listed.end() && entry->second.kind == "refused";
    if (is_listed != (r.result == outcome::refused))
      ADD_FAILURE() << name
                    << (is_listed ? " is in refused_cases.txt and is not refused"
                                  : " is refused, but not in refused_cases.txt: " + r.text);
    if (r.result == outcome::failed) ADD_FAILURE() << name << ": " << r.text;
  }
  std::cout << "onnx cases: " << folders.size() << ", passed " << counts[outcome::passed]
            << ", passed with constant operands " << counts[outcome::passed_with_constants] << ", refused by name "
            << counts[outcome::refused] << ", excluded " << counts[outcome::excluded] << ", failed "
            << counts[outcome::failed] << "\n";
}

}  // namespace
}  // namespace kiln
