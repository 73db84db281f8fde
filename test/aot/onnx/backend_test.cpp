// ONNX's own backend node tests (Debian package libonnx-testdata): import, run through the reference, compare.
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
const fs::path packaged = "/usr/share/libonnx-testdata/data/node";

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

// Empty where they agree.
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

// Cases whose expected values we do not agree with.
const std::map<std::string, std::string> excluded = {
    {"test_bernoulli_expanded", "expects the random numbers of another generator"},
    {"test_bernoulli_double_expanded", "expects the random numbers of another generator"},
    {"test_bernoulli_seed_expanded", "expects the random numbers of another generator"},
    {"test_resize_downsample_scales_cubic_align_corners",
     "aligned to a fractional output size (2.4); onnxruntime and we round it first"},
    {"test_resize_downsample_scales_linear_align_corners",
     "aligned to a fractional output size (2.4); onnxruntime and we round it first"},
};

// The test data has no bfloat16: its bits come as uint16.
literal typed(literal data, std::int32_t declared) {
  if (declared != ::onnx::TensorProto::BFLOAT16 || data.type().type != element_type::u16) return data;
  auto bits = data.bytes();
  return literal(data.type().with_type(element_type::bf16), std::vector<std::byte>(bits.begin(), bits.end()));
}

// Runs a case; inputs from `constants_from` on are made initializers, as they are in real models where operators take
// shapes, axes and the like as inputs.
void run_case(const fs::path& folder, int constants_from, report& into) {
  ::onnx::ModelProto model;
  if (!model.ParseFromString(contents(folder / "model.onnx")))
    throw error(error_kind::corrupted, "model does not parse");
  fs::path data = folder / "test_data_set_0";
  std::vector<literal> inputs;
  auto& graph = *model.mutable_graph();
  for (int i = 0; i < graph.input_size(); ++i) {
    if (!graph.input(i).type().has_tensor_type()) continue;  // refused by the import
    auto proto = tensor_at(data / ("input_" + std::to_string(i) + ".pb"));
    if (i >= constants_from) {
      proto.set_name(graph.input(i).name());
      if (graph.input(i).type().tensor_type().elem_type() == ::onnx::TensorProto::BFLOAT16 &&
          proto.data_type() == ::onnx::TensorProto::UINT16)
        proto.set_data_type(::onnx::TensorProto::BFLOAT16);
      *graph.add_initializer() = proto;
    } else {
      inputs.push_back(typed(literal_of(std::move(proto)), graph.input(i).type().tensor_type().elem_type()));
    }
  }
  std::string bytes = model.SerializeAsString();
  program p = import_onnx(std::as_bytes(std::span(bytes.data(), bytes.size())));
  dim_bindings bindings;  // a few cases have named dimensions
  auto parameters = p.main().parameters();
  for (std::size_t i = 0; i < parameters.size(); ++i)
    for (std::size_t d = 0; d < parameters[i].type().rank(); ++d)
      if (!parameters[i].type().dims[d].is_static())
        bindings[parameters[i].type().dims[d].str()] = inputs.at(i).type().dims[d].value();
  program bound = p.bind(bindings);
  auto outputs = evaluate(bound.main(), inputs, spirv::library_runner(bound));
  std::size_t compared = 0;
  for (std::size_t i = 0; i < static_cast<std::size_t>(graph.output_size());
       ++i, ++compared) {  // counts come after them
    auto declared = graph.output(static_cast<int>(i)).type().tensor_type().elem_type();
    std::string wrong =
        difference(outputs[i], typed(literal_of(tensor_at(data / ("output_" + std::to_string(i) + ".pb"))), declared));
    if (!wrong.empty()) throw error(error_kind::mismatch, "output " + std::to_string(i) + " " + wrong);
  }
  if (compared == 0) throw error(error_kind::mismatch, "no outputs were compared");
  into = {constants_from < graph.input_size() ? outcome::passed_with_constants : outcome::passed, ""};
}

report outcome_of(const fs::path& folder) {
  if (auto found = excluded.find(folder.filename().string()); found != excluded.end())
    return {outcome::excluded, found->second};
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

// Measured on libonnx-testdata 1.12.0; they may only rise.
constexpr int least_passed = 742, least_with_constants = 120;

// KILN_ONNX_NODE_CASES names another folder of the same layout, such as one generated by a newer onnx package.
TEST(onnx_backend, node_cases) {
  const char* other = std::getenv("KILN_ONNX_NODE_CASES");
  const fs::path root = other ? fs::path(other) : packaged;
  if (!fs::exists(root)) GTEST_SKIP() << "skipped: " << root << " is absent; install libonnx-testdata";
  std::map<outcome, int> counts;
  std::set<fs::path> folders;
  for (const auto& entry : fs::directory_iterator(root)) folders.insert(entry.path());
  for (const auto& folder : folders) {
    report r = outcome_of(folder);
    ++counts[r.result];
    if (r.result == outcome::refused) std::cout << "refused " << folder.filename().string() << ": " << r.text << "\n";
    if (r.result == outcome::excluded) std::cout << "excluded " << folder.filename().string() << ": " << r.text << "\n";
    if (r.result == outcome::failed) ADD_FAILURE() << folder.filename().string() << ": " << r.text;
  }
  std::cout << "onnx node cases: " << folders.size() << ", passed " << counts[outcome::passed]
            << ", passed with constant operands " << counts[outcome::passed_with_constants] << ", refused by name "
            << counts[outcome::refused] << ", excluded " << counts[outcome::excluded] << ", failed "
            << counts[outcome::failed] << "\n";
  EXPECT_EQ(counts[outcome::failed], 0);
  if (other) return;
  EXPECT_GE(counts[outcome::passed], least_passed);
  EXPECT_GE(counts[outcome::passed] + counts[outcome::passed_with_constants], least_passed + least_with_constants);
}

}  // namespace
}  // namespace kiln
