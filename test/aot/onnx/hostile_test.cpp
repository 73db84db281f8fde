// Truncated or damaged files, and models that violate ONNX's rules, cause a typed error that names the problem, never a
// crash.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <random>

#include "ir/error.hpp"
#include "ir/ops/all.hpp"
#include "test/aot/onnx/model_builder.hpp"

namespace kiln {
namespace {

using test::bool_type;
using test::float_type;
using test::graph_builder;
using test::int64_type;
using test::model_builder;

program import_bytes(const std::string& bytes) {
  return import_onnx(std::as_bytes(std::span(bytes.data(), bytes.size())));
}

void expect_error(error_kind kind, const std::string& part, const model_builder& m) {
  try {
    m.import();
    ADD_FAILURE() << "nothing was thrown, expected '" << part << "'";
  } catch (const error& e) {
    EXPECT_EQ(name(e.kind()), name(kind)) << e.what();
    EXPECT_THAT(e.what(), testing::HasSubstr(part));
  }
}

model_builder small_model() {
  model_builder m;
  m.input("x", float_type, {"batch", "3", "8", "8"}).output("y");
  m.floats("w", {4, 3, 3, 3}, std::vector<float>(108, 0.5f));
  m.floats("b", {4}, {1, 2, 3, 4});
  m.integers("shape", {2}, {0, -1});
  m.attribute(m.node("Conv", {"x", "w", "b"}, {"c"}), "pads", std::vector<std::int64_t>{1, 1, 1, 1});
  m.node("Relu", {"c"}, {"r"});
  m.node("Reshape", {"r", "shape"}, {"y"});
  return m;
}

TEST(hostile, every_truncation_is_an_error) {
  std::string bytes = small_model().bytes();
  std::size_t truncated = 0;
  for (std::size_t n = 0; n < bytes.size(); ++n) {
    try {
      import_bytes(bytes.substr(0, n));
      ADD_FAILURE() << "a model cut after " << n << " of " << bytes.size() << " bytes was imported";
    } catch (const error& e) {
      truncated += e.kind() == error_kind::truncated;
      EXPECT_TRUE(e.kind() == error_kind::truncated || e.kind() == error_kind::invalid_model)
          << n << ": " << name(e.kind()) << ": " << e.what();
    }
  }
  // Only a cut between two fields gives a valid file.
  EXPECT_GT(truncated, bytes.size() - 20);
}

TEST(hostile, other_files_are_corrupted_models) {
  for (const std::string& text : {std::string("hello, world\n"), std::string("PK\x03\x04zip zip zip"),
                                  std::string(64, '\xff'), std::string(64, '\0')}) {
    try {
      import_bytes(text);
      ADD_FAILURE() << "imported";
    } catch (const error& e) {
      EXPECT_EQ(name(e.kind()), name(error_kind::corrupted)) << e.what();
    }
  }
}

TEST(hostile, damaged_bytes_never_crash) {
  std::string bytes = small_model().bytes();
  std::mt19937 random(7);
  int refused = 0;
  for (int round = 0; round < 3000; ++round) {
    std::string damaged = bytes;
    for (unsigned k = 0, changes = 1 + random() % 4; k < changes; ++k)
      damaged[random() % damaged.size()] = static_cast<char>(random());
    try {
      import_bytes(damaged);
    } catch (const error&) {
      ++refused;
    }
  }
  EXPECT_GT(refused, 300);
}

TEST(hostile, damaged_node_cases_never_crash) {
  namespace fs = std::filesystem;
  const fs::path root = "/usr/share/libonnx-testdata/data/node";
  if (!fs::exists(root)) GTEST_SKIP() << "skipped: " << root << " is absent; install libonnx-testdata";
  const char* text = std::getenv("KILN_FUZZ_ROUNDS");  // more rounds for a long run
  int rounds = text ? std::atoi(text) : 4, refused = 0, imported = 0;
  std::mt19937 random(11);
  for (const auto& entry : fs::directory_iterator(root)) {
    std::ifstream file(entry.path() / "model.onnx", std::ios::binary);
    std::string bytes{std::istreambuf_iterator<char>(file), {}};
    for (int round = 0; round < rounds; ++round) {
      std::string damaged = bytes;
      for (unsigned k = 0, changes = 1 + random() % 3; k < changes; ++k) {
        char& c = damaged[random() % damaged.size()];
        constexpr signed char special[] = {0, 1, 2, 3, 7, 8, 127, -1, -128};
        c = static_cast<char>(random() % 2 ? special[random() % sizeof special] : c ^ (1 << random() % 8));
      }
      try {
        import_bytes(damaged);
        ++imported;
      } catch (const error&) {
        ++refused;
      }
    }
  }
  std::cout << imported << " damaged models were imported, " << refused << " refused\n";
  EXPECT_GT(refused, imported / 4);
}

TEST(hostile, a_missing_file_is_named) {
  try {
    import_onnx(std::filesystem::path("/nonexistent/model.onnx"));
    FAIL() << "nothing was thrown";
  } catch (const error& e) {
    EXPECT_EQ(e.kind(), error_kind::missing_file);
    EXPECT_THAT(e.what(), testing::HasSubstr("/nonexistent/model.onnx"));
  }
}

TEST(hostile, cycles_and_missing_inputs_name_the_node) {
  model_builder cycle;
  cycle.input("x", float_type, {"2"}).output("a");
  cycle.node("Add", {"x", "b"}, {"a"});
  cycle.node("Relu", {"a"}, {"b"});
  expect_error(error_kind::invalid_model, "node 'Relu_node' (Relu): input 'a' is not produced", cycle);
  model_builder self;
  self.input("x", float_type, {"2"}).output("a");
  self.node("Add", {"x", "a"}, {"a"});
  expect_error(error_kind::invalid_model, "input 'a' is not produced", self);
  model_builder few;
  few.input("x", float_type, {"2"}).output("a");
  few.node("Add", {"x"}, {"a"});
  expect_error(error_kind::invalid_model, "node 'Add_node' (Add): input 1 is missing", few);
  model_builder result;
  result.input("x", float_type, {"2"}).output("nothing");
  expect_error(error_kind::invalid_model, "graph output 'nothing'", result);
}

TEST(hostile, messages_stay_one_line) {
  model_builder m;
  m.input("x", float_type, {"2"}).output("y");
  m.node("Fo\no", {"x"}, {"y"}).set_name("a\r\nb");
  expect_error(error_kind::unsupported, R"(node 'a\r\nb' (Fo\no))", m);
}

TEST(hostile, duplicate_names_are_refused) {
  model_builder twice;
  twice.input("x", float_type, {"2"}).output("a");
  twice.node("Relu", {"x"}, {"a"});
  twice.node("Abs", {"x"}, {"a"});
  expect_error(error_kind::invalid_model, "'a' is defined twice", twice);
  model_builder inputs;
  inputs.input("x", float_type, {"2"}).input("x", float_type, {"2"}).output("x");
  expect_error(error_kind::invalid_model, "'x' is defined twice", inputs);
  model_builder weights;
  weights.output("w");
  weights.floats("w", {1}, {1});
  weights.floats("w", {1}, {2});
  expect_error(error_kind::invalid_model, "'w' is defined twice", weights);
}

TEST(hostile, wrong_shapes_name_the_node) {
  model_builder product;
  product.input("x", float_type, {"2", "3"}).input("w", float_type, {"4", "5"}).output("y");
  product.node("MatMul", {"x", "w"}, {"y"});
  expect_error(error_kind::invalid_model, "node 'MatMul_node' (MatMul)", product);
  model_builder image;
  image.input("x", float_type, {"1", "3", "8", "8"}).input("w", float_type, {"4", "2", "3", "3"}).output("y");
  image.node("Conv", {"x", "w"}, {"y"});
  expect_error(error_kind::invalid_model, "node 'Conv_node' (Conv)", image);
  model_builder sum;
  sum.input("x", float_type, {"2", "3"}).input("w", float_type, {"4"}).output("y");
  sum.node("Add", {"x", "w"}, {"y"});
  expect_error(error_kind::invalid_model, "node 'Add_node' (Add)", sum);
  model_builder negative;
  negative.input("x", float_type, {"-2"}).output("x");
  expect_error(error_kind::invalid_model, "negative dimension", negative);
}

TEST(hostile, huge_sizes_are_not_allocated) {
  model_builder fill;
  fill.output("y");
  fill.integers("shape", {3}, {1 << 30, 1 << 30, 7});
  fill.node("ConstantOfShape", {"shape"}, {"y"});
  try {
    // This is valid as long as it is not run.
    fill.import();
  } catch (const error& e) {
    EXPECT_EQ(name(e.kind()), name(error_kind::invalid_model)) << e.what();
  }
  model_builder window;
  window.input("x", float_type, {"1", "1", "8", "8"}).output("y");
  window.attribute(window.node("MaxPool", {"x"}, {"y"}), "kernel_shape",
                   std::vector<std::int64_t>{INT64_MAX, INT64_MAX});
  expect_error(error_kind::invalid_model, "kernel_shape must be from 1 to", window);
  model_builder parts;
  parts.input("x", float_type, {"8"}).output("y");
  parts.attribute(parts.node("Split", {"x"}, {"y"}), "split", std::vector<std::int64_t>{INT64_MAX, INT64_MAX});
  parts.model.mutable_opset_import(0)->set_version(11);
  expect_error(error_kind::invalid_model, "node 'Split_node'", parts);
}

TEST(hostile, attributes_of_the_wrong_type_are_refused) {
  model_builder m;
  m.input("x", float_type, {"2", "2"}).output("y");
  m.attribute(m.node("Softmax", {"x"}, {"y"}), "axis", std::vector<std::int64_t>{1});
  expect_error(error_kind::invalid_model, "attribute 'axis' has the wrong type", m);
}

TEST(hostile, graphs_nested_without_end_are_refused) {
  model_builder m;
  m.input("x", float_type, {"2"}).input("c", bool_type, {}).output("y");
  ::onnx::GraphProto* at = m.model.mutable_graph();
  for (int depth = 0; depth < 20; ++depth) {  // protobuf itself refuses about 33 levels of If
    auto& branch = *at->add_node();
    branch.set_op_type("If");
    branch.add_input("c");
    branch.add_output(depth ? "y" + std::to_string(depth) : "y");
    auto& no = graph_builder::body(branch, "else_branch");
    auto& flat = *no.add_node();
    flat.set_op_type("Relu");
    flat.add_input("x");
    flat.add_output("e" + std::to_string(depth));
    no.add_output()->set_name("e" + std::to_string(depth));
    at = &graph_builder::body(branch, "then_branch");
    at->add_output()->set_name("y" + std::to_string(depth + 1));
  }
  auto& last = *at->add_node();
  last.set_op_type("Relu");
  last.add_input("x");
  last.add_output("y20");
  program p = m.import();  // deep, but legal
  EXPECT_EQ(p.modules().size(), 41u);
}

// Functions F0 to F(depth - 1). Each calls the next one `fan` times.
model_builder function_bomb(int depth, int fan) {
  model_builder m;
  auto& opset = *m.model.add_opset_import();
  opset.set_domain("f");
  opset.set_version(1);
  m.input("x", float_type, {"2"}).output("y");
  m.node("F0", {"x"}, {"y"}).set_domain("f");
  for (int i = 0; i < depth; ++i) {
    auto& f = *m.model.add_functions();
    f.set_domain("f");
    f.set_name("F" + std::to_string(i));
    f.add_input("a");
    f.add_output("v" + std::to_string(fan));
    for (const auto& o : m.model.opset_import()) *f.add_opset_import() = o;
    for (int k = 0; k < fan; ++k) {
      auto& n = *f.add_node();
      n.set_op_type(i + 1 < depth ? "F" + std::to_string(i + 1) : "Relu");
      if (i + 1 < depth) n.set_domain("f");
      n.add_input(k == 0 ? "a" : "v" + std::to_string(k));
      n.add_output("v" + std::to_string(k + 1));
    }
  }
  return m;
}

TEST(hostile, functions_that_expand_without_end_are_refused) {
  EXPECT_NO_THROW(function_bomb(3, 10).import());
  expect_error(error_kind::unsupported, "65536 nodes", function_bomb(30, 2));
  const import_options few{.max_nodes = 4000};
  EXPECT_THROW(function_bomb(10, 8).import(few), error);
  EXPECT_THROW(function_bomb(3, 10).import(few), error);
  EXPECT_NO_THROW(function_bomb(3, 9).import(few));
}

TEST(hostile, functions_that_repeat_large_constants_are_refused) {
  model_builder m = function_bomb(3, 36);
  auto& leaf = *m.model.mutable_functions(2);
  auto& n = *leaf.mutable_node(0);
  n.set_op_type("Constant");
  n.clear_input();
  auto& a = *n.add_attribute();
  a.set_name("value");
  a.set_type(::onnx::AttributeProto::TENSOR);
  a.mutable_t()->set_data_type(float_type);
  a.mutable_t()->add_dims(1 << 21);
  a.mutable_t()->set_raw_data(std::string(1 << 23, '\1'));
  expect_error(error_kind::unsupported, "MiB", m);
}

TEST(hostile, nodes_in_bodies_count) {
  model_builder m;
  m.input("x", float_type, {"2"}).input("flag", bool_type, {}).output("y");
  auto& choice = m.node("If", {"flag"}, {"y"});
  for (const char* branch : {"then_branch", "else_branch"}) {
    graph_builder body(graph_builder::body(choice, branch));
    std::string last = "x";
    for (int i = 0; i < 60; ++i) {
      std::string next = branch + std::to_string(i);
      body.node("Relu", {last}, {next});
      last = next;
    }
    body.output(last);
  }
  EXPECT_NO_THROW(m.import({.max_nodes = 121}));
  EXPECT_THROW(m.import({.max_nodes = 120}), error);
}

TEST(hostile, tensors_of_thousands_of_dimensions) {
  model_builder m;
  m.output("y");
  m.floats("w", std::vector<std::int64_t>(5000, 1), {1});
  m.node("Identity", {"w"}, {"y"});
  expect_error(error_kind::unsupported, "5000 dimensions", m);
  model_builder in;
  in.input("x", float_type, std::vector<std::string>(5000, "1")).output("y");
  in.node("Relu", {"x"}, {"y"});
  expect_error(error_kind::unsupported, "5000 dimensions", in);
}

// Every node folds to a constant of 256 KiB; all constants together would take tens of gigabytes.
TEST(hostile, folding_at_import_is_bounded) {
  model_builder m;
  m.output("y");
  m.floats("w", {1 << 16}, [] {
    std::vector<float> values(1 << 16);
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
    return values;
  }());
  std::string last = "w";
  for (int i = 0; i < 5000; ++i) {
    std::string next = "v" + std::to_string(i);
    m.node("Neg", {last}, {next});
    last = next;
  }
  m.node("Identity", {last}, {"y"});
  program p = m.import();
  std::size_t operations = 0;
  for (const instruction& i : p.main().instructions()) operations += i.op().is<elementwise>();
  EXPECT_GT(operations, 3000u);
}

}  // namespace
}  // namespace kiln
