// Every golden file of every version loads, and computes what it computed on the day it was written. When a test here
// fails because bytes or numbers changed, the dialect changed: raise its version (mlir_bridge/dialect/version.hpp), do
// not write the files anew.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "ir/error.hpp"
#include "ir/program.hpp"
#include "mlir_bridge/kernel/kernel_bytecode.hpp"
#include "mlir_bridge/kernel/portable_kernel.hpp"
#include "test/compat/golden_kernels.hpp"
#include "test/mlir_bridge/kernel/sample_fusions.hpp"
#include "test/support/paths.hpp"

namespace kiln::test {
namespace {

namespace fs = std::filesystem;

fs::path folder_of(int version) {
  return kiln::testing::source_folder() / "test/compat" / ("v" + std::to_string(version));
}

std::vector<std::byte> read(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text((std::istreambuf_iterator<char>(file)), {});
  auto view = std::as_bytes(std::span(text));
  return {view.begin(), view.end()};
}

const compiler_context& context() {
  static const compiler_context shared;
  return shared;
}

struct golden {
  int version;
  std::string name;
};

std::vector<golden> all_golden() {
  std::vector<golden> found;
  for (int version = 1; version <= dialect_version(); ++version)
    if (fs::exists(folder_of(version)))
      for (const auto& entry : fs::directory_iterator(folder_of(version)))
        if (entry.path().extension() == ".mlirbc") found.push_back({version, entry.path().stem().string()});
  std::ranges::sort(found, {}, [](const golden& g) { return std::pair(g.version, g.name); });
  return found;
}

double number(const nlohmann::json& value) {
  if (value.is_number()) return value.get<double>();
  return value == "nan" ? NAN : value == "inf" ? INFINITY : -INFINITY;
}

literal from_json(const nlohmann::json& json) {
  shape type{parse_element_type(json.at("type").get<std::string>()).value(), {}};
  for (std::int64_t d : json.at("dims")) type.dims.emplace_back(d);
  std::vector<double> values;
  for (const auto& v : json.at("values")) values.push_back(number(v));
  return literal::from_doubles(type, values);
}

std::vector<literal> literals(const nlohmann::json& list) {
  std::vector<literal> result;
  for (const auto& one : list) result.push_back(from_json(one));
  return result;
}

// Mathematical libraries differ in the last bits of a float; everything else is exact.
void expect_close(const literal& actual, const literal& expected) {
  ASSERT_EQ(actual.type(), expected.type());
  element_type type = expected.type().type;
  double tolerance = !is_float(type) ? 0 : storage_bits(type) >= 32 ? 1e-5 : 1e-2;
  for (std::int64_t i = 0; i < expected.type().element_count(); ++i) {
    double a = actual.at(i), e = expected.at(i);
    if (std::isnan(e) || std::isinf(e))
      EXPECT_TRUE(std::isnan(e) ? std::isnan(a) : a == e) << i << ": " << a << " instead of " << e;
    else EXPECT_NEAR(a, e, tolerance * (1 + std::abs(e))) << i;
  }
}

class golden_file : public ::testing::TestWithParam<golden> {};

TEST_P(golden_file, loads_and_gives_the_same_numbers) {
  auto bytes = read(folder_of(GetParam().version) / (GetParam().name + ".mlirbc"));
  auto expected = nlohmann::json::parse(std::ifstream(folder_of(GetParam().version) / (GetParam().name + ".json")));
  std::vector<literal> inputs = literals(expected.at("inputs")), outputs = literals(expected.at("outputs"));
  ASSERT_FALSE(outputs.empty());

  portable_kernel kernel = portable_kernel::parse(context(), bytes);
  EXPECT_EQ(kernel.symbol(), GetParam().name);
  std::vector<shape> shapes;
  for (const literal& input : inputs) shapes.push_back(input.type());
  kernel.specialize(shapes);
  auto fusion = to_fusion(kernel);
  fusion->validate();
  auto actual = evaluate(*fusion, inputs);
  ASSERT_EQ(actual.size(), outputs.size());
  for (std::size_t i = 0; i < outputs.size(); ++i) expect_close(actual[i], outputs[i]);
}

TEST_P(golden_file, becomes_a_kernel_of_the_current_version) {
  auto bytes = read(folder_of(GetParam().version) / (GetParam().name + ".mlirbc"));
  auto again = write_kernel(*to_fusion(portable_kernel::parse(context(), bytes)), GetParam().name);
  if (GetParam().version >= 3) EXPECT_EQ(again, bytes);
  else EXPECT_NE(again, bytes);
  EXPECT_EQ(print_kernel(again), print_kernel(bytes));
}

INSTANTIATE_TEST_SUITE_P(kernels, golden_file, ::testing::ValuesIn(all_golden()), [](const auto& row) {
  return "v" + std::to_string(row.param.version) + "_" + row.param.name;
});

TEST(compat, every_version_has_golden_files) {
  for (int version = 1; version <= dialect_version(); ++version) {
    std::size_t count = 0;
    for (const golden& g : all_golden()) count += g.version == version;
    EXPECT_GE(count, 2u) << "version " << version << ": run kiln_write_golden " << version << " " << folder_of(version);
  }
}

TEST(compat, what_this_kiln_writes_is_what_it_wrote_at_the_release_of_the_version) {
  for (int version = 3; version <= dialect_version(); ++version)
    for (const auto& [name, bytes] : golden_kernels(version))
      EXPECT_EQ(read(folder_of(version) / (name + ".mlirbc")), bytes) << name;
}

TEST(compat, version_1_is_lifted) {
  auto bytes = read(folder_of(1) / "normalize_reduce.mlirbc");
  std::string raw(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  EXPECT_NE(raw.find("mode"), std::string::npos);
  EXPECT_EQ(raw.find("centered"), std::string::npos);
  std::string text = print_kernel(bytes);
  EXPECT_NE(text.find("kind = \"max\""), std::string::npos) << text;
  EXPECT_NE(text.find("centered = true"), std::string::npos) << text;
  EXPECT_EQ(text.find("mode"), std::string::npos) << text;
}

TEST(compat, the_form_of_version_1_is_refused_in_version_2) {
  auto old = print_kernel(read(folder_of(1) / "mean.mlirbc"));
  old.replace(old.find("kind ="), 4, "mode");
  try {
    portable_kernel::parse(context(), bytecode_of_version(old, 2));
    FAIL() << "accepted";
  } catch (const error& e) {
    EXPECT_EQ(e.kind(), error_kind::corrupted) << e.what();
    EXPECT_NE(std::string(e.what()).find("kind"), std::string::npos) << e.what();
  }
}

TEST(compat, a_newer_version_is_refused_by_its_number) {
  auto bytes = bytecode_of_version(print_kernel(write_kernel(*symbolic_dot_fusion(), "k")),
                                   static_cast<std::uint64_t>(dialect_version()) + 7);
  try {
    portable_kernel::parse(context(), bytes);
    FAIL() << "accepted";
  } catch (const error& e) {
    EXPECT_EQ(e.kind(), error_kind::newer_version);
    EXPECT_NE(std::string(e.what()).find("needs version " + std::to_string(dialect_version() + 7)), std::string::npos)
        << e.what();
    EXPECT_NE(std::string(e.what()).find("up to " + std::to_string(dialect_version())), std::string::npos) << e.what();
  }
  EXPECT_THROW(portable_kernel::parse(context(),
                                      bytecode_of_version(print_kernel(write_kernel(*symbolic_dot_fusion(), "k")), 0)),
               error);
}

TEST(compat, operations_of_other_dialects_are_refused_by_name) {
  std::string text = "kiln.kernel @k(%x: tensor<3xf32>) -> tensor<3xf32> {\n kiln.return %x : tensor<3xf32>\n}\n";
  EXPECT_FALSE(parse_kernel_text(text).empty());
  try {
    portable_kernel::parse(context(), bytecode_of_version("module { " + text + " module @inner { } }", 2));
    FAIL() << "accepted";
  } catch (const error& e) {
    EXPECT_EQ(e.kind(), error_kind::unsupported);
    EXPECT_NE(std::string(e.what()).find("builtin.module"), std::string::npos) << e.what();
  }
}

}  // namespace
}  // namespace kiln::test
