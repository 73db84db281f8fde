// Large tensors are removed from the serialized model, and everything else is unchanged.
#include "aot/onnx/detach_tensors.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>

#include "aot/onnx/external_data.hpp"
#include "aot/onnx/import.hpp"
#include "aot/onnx/model_file.hpp"
#include "ir/error.hpp"
#include "test/aot/onnx/model_builder.hpp"

namespace kiln::onnx_import {
namespace {

std::optional<std::string> detach(const std::string& model) { return detach_tensors(std::as_bytes(std::span(model))); }
std::string detached(const std::string& model) { return detach(model).value(); }

::onnx::ModelProto with_initializer(std::size_t bytes) {
  ::onnx::ModelProto model;
  model.set_ir_version(8);
  auto& tensor = *model.mutable_graph()->add_initializer();
  tensor.set_name("w");
  tensor.set_data_type(::onnx::TensorProto::UINT8);
  tensor.add_dims(static_cast<std::int64_t>(bytes));
  tensor.set_raw_data(std::string(bytes, 'x'));
  model.mutable_graph()->add_node()->set_op_type("Relu");
  return model;
}

TEST(detach_tensors, small_tensors_stay) {
  std::string model = with_initializer(1000).SerializeAsString();
  EXPECT_EQ(detached(model), model);
}

// onnxruntime's model builder writes the field data_location with its default value.
TEST(detach_tensors, that_say_where_their_data_was_are_detached_too) {
  ::onnx::ModelProto model = with_initializer(100'000);
  model.mutable_graph()->mutable_initializer(0)->set_data_location(::onnx::TensorProto::DEFAULT);
  ::onnx::ModelProto read;
  ASSERT_TRUE(read.ParseFromString(detached(model.SerializeAsString())));
  EXPECT_EQ(read.graph().initializer(0).data_location(), ::onnx::TensorProto::EXTERNAL);
  EXPECT_EQ(read.graph().initializer(0).external_data_size(), 3);
}

TEST(detach_tensors, large_tensors_become_ranges_of_the_file) {
  std::string model = with_initializer(100'000).SerializeAsString();
  ::onnx::ModelProto read;
  ASSERT_TRUE(read.ParseFromString(detached(model)));
  EXPECT_EQ(read.graph().node(0).op_type(), "Relu");
  const auto& tensor = read.graph().initializer(0);
  EXPECT_EQ(tensor.name(), "w");
  EXPECT_FALSE(tensor.has_raw_data());
  EXPECT_EQ(tensor.data_location(), ::onnx::TensorProto::EXTERNAL);
  std::map<std::string, std::string> entries;
  for (const auto& e : tensor.external_data()) entries[e.key()] = e.value();
  EXPECT_EQ(entries["location"], own_file_location);
  EXPECT_EQ(entries["length"], "100000");
  EXPECT_EQ(model.substr(std::stoul(entries["offset"]), 100'000), std::string(100'000, 'x'));
}

TEST(detach_tensors, tensors_inside_attributes_and_bodies) {
  ::onnx::ModelProto model;
  auto& branch = *model.mutable_graph()->add_node()->add_attribute()->mutable_g();
  branch.add_node()->add_attribute()->mutable_t()->set_raw_data(std::string(70'000, 'y'));
  model.add_functions()->add_node()->add_attribute()->mutable_t()->set_raw_data(std::string(80'000, 'z'));
  EXPECT_LT(detached(model.SerializeAsString()).size(), 1000U);
}

TEST(detach_tensors, malformed_models_are_left_to_the_parser) {
  std::string model = with_initializer(100'000).SerializeAsString();
  for (std::size_t size : {std::size_t{1}, model.size() / 2, model.size() - 1})
    EXPECT_EQ(detach(model.substr(0, size)), std::nullopt);
  EXPECT_EQ(detach("no protobuf"), std::nullopt);
  EXPECT_EQ(detached(""), "");
}

// A file of a terabyte that takes no space on its disk: nothing of it may be copied.
TEST(detach_tensors, sparse_files_are_refused_at_once) {
  const auto path = std::filesystem::temp_directory_path() / fmt::format("kiln-sparse-{}.onnx", ::getpid());
  std::ofstream(path).close();
  std::filesystem::resize_file(path, std::uintmax_t{1} << 40);
  EXPECT_EQ(detach_tensors(mapped_file::open(path, "model")->bytes()), std::nullopt);
  EXPECT_THROW(import_onnx(path), error);
  EXPECT_THROW(external_data_files(path), error);
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace kiln::onnx_import
