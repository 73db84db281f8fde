// ONNX's own backend node tests (Debian package libonnx-testdata): import, run through the reference, compare.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <set>

#include "aot/onnx/import.hpp"
#include "aot/onnx/tensors.hpp"
#include "ir/error.hpp"

namespace kiln {
namespace {

namespace fs = std::filesystem;
const fs::path root = "/usr/share/libonnx-testdata/data/node";

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

enum class outcome { passed, passed_with_constants, refused, failed };

struct report {
  outcome result;
  std::string text;
};

// Runs a case; with `fixed`, every input but the first is an initializer, as it is in real models where operators take shapes,
// axes and the like as inputs.
void run_case(const fs::path& folder, bool fixed, report& into) {
  ::onnx::ModelProto model;
  if (!model.ParseFromString(contents(folder / "model.onnx"))) throw error(error_kind::corrupted, "model does not parse");
  fs::path data = folder / "test_data_set_0";
  std::vector<literal> inputs;
  auto& graph = *model.mutable_graph();
  for (int i = 0; i < graph.input_size(); ++i) {
    auto proto = tensor_at(data / ("input_" + std::to_string(i) + ".pb"));
    if (fixed && i > 0) {
      proto.set_name(graph.input(i).name());
      *graph.add_initializer() = proto;
    } else if (graph.input(i).type().has_tensor_type()) {
      inputs.push_back(literal_of(std::move(proto)));
    }
  }
  std::string bytes = model.SerializeAsString();
  program p = import_onnx(std::as_bytes(std::span(bytes.data(), bytes.size())));
  dim_bindings bindings;  // a few cases have named dimensions
  auto parameters = p.main().parameters();
  for (std::size_t i = 0; i < parameters.size(); ++i)
    for (std::size_t d = 0; d < parameters[i].type().rank(); ++d)
      if (!parameters[i].type().dims[d].is_static()) bindings[parameters[i].type().dims[d].str()] = inputs.at(i).type().dims[d].value();
  program bound = p.bind(bindings);
  auto outputs = evaluate(bound.main(), inputs);
  std::size_t compared = 0;
  for (std::size_t i = 0; i < outputs.size(); ++i, ++compared) {
    std::string wrong = difference(outputs[i], literal_of(tensor_at(data / ("output_" + std::to_string(i) + ".pb"))));
    if (!wrong.empty()) throw error(error_kind::mismatch, "output " + std::to_string(i) + " " + wrong);
  }
  if (compared == 0) throw error(error_kind::mismatch, "no outputs were compared");
  into = {fixed ? outcome::passed_with_constants : outcome::passed, ""};
}

report outcome_of(const fs::path& folder) {
  report r{outcome::failed, ""};
  for (bool fixed : {false, true}) {
    try {
      run_case(folder, fixed, r);
      return r;
    } catch (const error& e) {
      bool by_name = e.kind() == error_kind::unsupported;
      if (!fixed || !by_name) r = {by_name ? outcome::refused : outcome::failed, std::string(name(e.kind())) + ": " + e.what()};
      if (!by_name) return r;
    } catch (const std::exception& e) {
      return {outcome::failed, e.what()};
    }
  }
  return r;
}

// Measured on libonnx-testdata 1.12.0; they may only rise.
constexpr int least_passed = 0, least_with_constants = 0;

TEST(onnx_backend, node_cases) {
  if (!fs::exists(root)) GTEST_SKIP() << "skipped: " << root << " is absent; install libonnx-testdata";
  std::map<outcome, int> counts;
  std::set<fs::path> folders;
  for (const auto& entry : fs::directory_iterator(root)) folders.insert(entry.path());
  for (const auto& folder : folders) {
    report r = outcome_of(folder);
    ++counts[r.result];
    if (r.result == outcome::refused) std::cout << "refused " << folder.filename().string() << ": " << r.text << "\n";
    if (r.result == outcome::failed) ADD_FAILURE() << folder.filename().string() << ": " << r.text;
  }
  std::cout << "onnx node cases: " << folders.size() << ", passed " << counts[outcome::passed] << ", passed with constant operands " << counts[outcome::passed_with_constants]
            << ", refused by name " << counts[outcome::refused] << ", failed " << counts[outcome::failed] << "\n";
  EXPECT_EQ(counts[outcome::failed], 0);
  EXPECT_GE(counts[outcome::passed], least_passed);
  EXPECT_GE(counts[outcome::passed] + counts[outcome::passed_with_constants], least_passed + least_with_constants);
}

}  // namespace
}  // namespace kiln
