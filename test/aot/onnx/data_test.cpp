// Sources of weights: raw bytes, typed fields, external files.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "ir/error.hpp"
#include "test/aot/onnx/model_builder.hpp"

namespace kiln {
namespace {

namespace fs = std::filesystem;
using test::float_type;
using test::model_builder;

class external_data : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / ("kiln_onnx_" + std::to_string(::getpid()) + "_" +
                                           testing::UnitTest::GetInstance()->current_test_info()->name());
    fs::create_directories(folder_ / "inner");
  }
  void TearDown() override { fs::remove_all(folder_); }

  void write(const fs::path& name, const std::string& bytes) {
    std::ofstream(folder_ / name, std::ios::binary) << bytes;
  }
  static std::string bytes_of(const std::vector<float>& values) {
    return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)};
  }

  // y = x + w, where w [3] is stored in `location`.
  program import_with(const std::string& location, const std::vector<std::pair<std::string, std::string>>& keys = {},
                      const import_options& options = {}) {
    model_builder m;
    m.input("x", float_type, {"3"}).output("y");
    auto& w = m.tensor("w", float_type, {3});
    w.set_data_location(::onnx::TensorProto::EXTERNAL);
    auto put = [&](const std::string& key, const std::string& value) {
      auto& entry = *w.add_external_data();
      entry.set_key(key);
      entry.set_value(value);
    };
    put("location", location);
    for (const auto& [key, value] : keys) put(key, value);
    m.node("Add", {"x", "w"}, {"y"});
    write("inner/model.onnx", m.bytes());
    return import_onnx(folder_ / "inner" / "model.onnx", options);
  }
  void expect_error(error_kind kind, const std::string& part, const std::string& location,
                    const std::vector<std::pair<std::string, std::string>>& keys = {}) {
    try {
      import_with(location, keys);
      ADD_FAILURE() << "nothing was thrown for " << location;
    } catch (const error& e) {
      EXPECT_EQ(name(e.kind()), name(kind)) << e.what();
      EXPECT_THAT(e.what(), testing::HasSubstr(part));
      EXPECT_THAT(e.what(), testing::HasSubstr("initializer 'w'"));
    }
  }
  static std::vector<double> run(const program& p) {
    std::vector<literal> inputs{literal::of<float>({element_type::f32, {3}}, {1, 2, 3})};
    return evaluate(p.main(), inputs)[0].to_doubles();
  }
  fs::path folder_;
};

TEST_F(external_data, is_mapped_from_the_models_folder) {
  write("inner/w.bin", "pad!" + bytes_of({10, 20, 30}));
  EXPECT_EQ(run(import_with("w.bin", {{"offset", "4"}, {"length", "12"}})), (std::vector<double>{11, 22, 33}));
}

TEST_F(external_data, may_lie_unaligned) {
  write("inner/w.bin", "x" + bytes_of({10, 20, 30}));
  EXPECT_EQ(run(import_with("w.bin", {{"offset", "1"}})), (std::vector<double>{11, 22, 33}));
}

TEST_F(external_data, outlives_the_file) {
  write("inner/w.bin", bytes_of({10, 20, 30}));
  program p = import_with("w.bin");
  fs::remove(folder_ / "inner" / "w.bin");
  EXPECT_EQ(run(p), (std::vector<double>{11, 22, 33}));
}

TEST_F(external_data, is_looked_for_in_another_folder_when_told_so) {
  write("w.bin", bytes_of({1, 1, 1}));
  import_options options;
  options.external_weights = folder_;
  EXPECT_EQ(run(import_with("w.bin", {}, options)), (std::vector<double>{2, 3, 4}));
}

TEST_F(external_data, is_refused_by_name_where_something_is_wrong) {
  write("secret.bin", bytes_of({10, 20, 30}));
  write("inner/w.bin", bytes_of({10, 20, 30}));
  fs::create_symlink(folder_ / "secret.bin", folder_ / "inner" / "link.bin");
  expect_error(error_kind::missing_file, "nothing.bin", "nothing.bin");
  expect_error(error_kind::invalid_model, "leaves the folder", "../secret.bin");
  expect_error(error_kind::invalid_model, "leaves the folder", (folder_ / "secret.bin").string());
  expect_error(error_kind::invalid_model, "leaves the folder", "link.bin");
  expect_error(error_kind::invalid_model, "leaves the folder", "");
  expect_error(error_kind::invalid_model, "leaves the folder", ".");
  expect_error(error_kind::truncated, "12 bytes", "w.bin", {{"offset", "8"}});
  expect_error(error_kind::truncated, "12 bytes", "w.bin", {{"offset", "18446744073709551610"}});
  expect_error(error_kind::invalid_model, "needs 12 bytes", "w.bin", {{"length", "8"}});
  expect_error(error_kind::invalid_model, "offset '-4'", "w.bin", {{"offset", "-4"}});
}

TEST_F(external_data, needs_a_folder_when_the_model_is_in_memory) {
  model_builder m;
  m.input("x", float_type, {"3"}).output("y");
  auto& w = m.tensor("w", float_type, {3});
  w.set_data_location(::onnx::TensorProto::EXTERNAL);
  auto& entry = *w.add_external_data();
  entry.set_key("location");
  entry.set_value("w.bin");
  m.node("Add", {"x", "w"}, {"y"});
  try {
    m.import();
    FAIL() << "nothing was thrown";
  } catch (const error& e) {
    EXPECT_EQ(e.kind(), error_kind::missing_file) << e.what();
  }
}

TEST(tensors, typed_fields_and_raw_bytes_agree) {
  struct row {
    int type;
    std::vector<std::int32_t> bits;
    std::vector<double> values;
  };
  for (const auto& r :
       {row{3, {-5, 7, 127}, {-5, 7, 127}}, row{2, {200, 0, 1}, {200, 0, 1}},
        row{10, {0x3c00, 0xc000, 0x3800}, {1, -2, 0.5}}, row{16, {0x3f80, 0xc000, 0x3f00}, {1, -2, 0.5}},
        row{9, {1, 0, 1}, {1, 0, 1}}, row{5, {-300, 2, 3}, {-300, 2, 3}}, row{22, {0x7f, 0x03}, {-1, 7, 3}},
        row{21, {0x7f, 0x03}, {15, 7, 3}}}) {
    model_builder m(21);
    m.output("y");
    auto& w = m.tensor("w", r.type, {3});
    for (auto b : r.bits) w.add_int32_data(b);
    auto& cast = m.node("Cast", {"w"}, {"y"});
    m.attribute(cast, "to", 1);
    EXPECT_EQ(evaluate(m.import().main(), {})[0].to_doubles(), r.values) << r.type;
  }
}

TEST(tensors, wrong_sizes_and_types_are_refused) {
  auto import_tensor = [](auto change) {
    model_builder m;
    m.output("y");
    auto& w = m.floats("w", {3}, {1, 2, 3});
    change(w);
    m.node("Relu", {"w"}, {"y"});
    m.import();
  };
  auto expect = [&](error_kind kind, auto change) {
    try {
      import_tensor(change);
      ADD_FAILURE() << "nothing was thrown";
    } catch (const error& e) {
      EXPECT_EQ(name(e.kind()), name(kind)) << e.what();
      EXPECT_THAT(e.what(), testing::HasSubstr("initializer 'w'"));
    }
  };
  expect(error_kind::invalid_model, [](auto& w) { w.set_raw_data("12345"); });
  expect(error_kind::invalid_model, [](auto& w) { w.set_dims(0, -3); });
  expect(error_kind::invalid_model, [](auto& w) { w.set_dims(0, INT64_MAX); });
  expect(error_kind::invalid_model, [](auto& w) { w.set_dims(0, std::int64_t{1} << 62), w.clear_raw_data(); });
  expect(error_kind::invalid_model, [](auto& w) { w.add_dims(INT64_MAX), w.add_dims(INT64_MAX); });
  expect(error_kind::invalid_model, [](auto& w) { w.clear_raw_data(), w.add_float_data(1); });
  expect(error_kind::unsupported, [](auto& w) { w.set_data_type(14); });  // complex64
  // The type is string, but there is no string data.
  expect(error_kind::invalid_model, [](auto& w) { w.set_data_type(8); });
  expect(error_kind::unsupported, [](auto& w) { w.set_data_type(99); });
  expect(error_kind::invalid_model, [](auto& w) { w.set_data_type(0); });
  expect(error_kind::unsupported, [](auto& w) { w.mutable_segment(); });
}

}  // namespace
}  // namespace kiln
