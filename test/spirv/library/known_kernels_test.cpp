// Kiln's own kernels are known by their identity, whatever their attributes; a kernel that differs in anything else is
// not.
#include "ir/trust/known_kernels.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <map>

#include "spirv/library/library.hpp"
#include "spirv/operands.hpp"

namespace kiln::spirv {
namespace {

const object& kernel(std::string_view name) {
  for (const object& o : library())
    if (o.name == name) return o;
  throw error(error_kind::usage, "no such kernel");
}

}  // namespace

// A kernel that changes gets a new row, and keeps the old one where a release had it.
TEST(known_kernels, every_kernel_of_the_library_is_in_the_table) {
  std::string missing;
  for (const object& o : library()) {
    const auto payload = serialize(o);
    if (!is_known_kernel(payload)) missing += "{\"" + o.name + "\", \"" + kernel_identity(payload).hex() + "\"},\n";
  }
  EXPECT_EQ(missing, "") << "add these rows to ir/trust/known_kernels.inc";
}

TEST(known_kernels, attributes_do_not_matter) {
  object o = kernel("TopK");
  for (auto& [name, value] : o.attributes) value = std::int64_t{1234567};
  o.attributes.emplace_back(left_out_input(3), std::int64_t{1});
  EXPECT_TRUE(is_known_kernel(serialize(o)));
}

TEST(known_kernels, anything_else_does) {
  const std::map<std::string, std::function<void(object&)>> changes{
      {"domain", [](object& o) { o.domain = "kiln2"; }},
      {"name", [](object& o) { o.name = "TopKK"; }},
      {"restriction", [](object& o) { o.restrictions.clear(); }},
      {"type", [](object& o) { o.restrictions.at(0).type = "int8"; }},
      {"requirement", [](object& o) { o.requirements.pop_back(); }},
      {"result", [](object& o) { o.results.at(0).dims = "dims(1)"; }},
      {"scratch", [](object& o) { o.scratch.push_back("8"); }},
      {"symbol", [](object& o) { o.launches.at(0).symbol += "_"; }},
      {"rule", [](object& o) { o.launches.at(0).rule = launch_rule::per_element; }},
      {"count", [](object& o) { o.launches.at(0).count.at(0) += " + 1"; }},
      {"block", [](object& o) { o.launches.at(0).block.at(0) = "1024"; }},
      {"shared memory", [](object& o) { o.launches.at(0).shared_bytes = "64"; }},
      {"threads", [](object& o) { o.launches.at(0).max_threads = 512; }},
      {"argument", [](object& o) { o.launches.at(0).parameters.back().expression = "99"; }},
      {"buffer", [](object& o) { std::swap(o.launches.at(0).parameters.at(0), o.launches.at(0).parameters.at(1)); }},
      {"another launch", [](object& o) { o.launches.push_back(o.launches.at(0)); }},
      {"code", [](object& o) { o.words.back() ^= std::byte{1}; }},
      {"code of another", [](object& o) { o.words = kernel("Sort").words; }},
  };
  for (const auto& [what, change] : changes) {
    object o = kernel("TopK");
    change(o);
    EXPECT_FALSE(is_known_kernel(serialize(o))) << what;
  }
}

TEST(known_kernels, every_byte_of_a_payload) {
  const object& o = kernel("TopK");
  const auto good = serialize(o);
  object without_values = o;
  without_values.attributes.clear();
  for (std::size_t at = 0; at < good.size(); at += at < 4096 ? 1 : 97) {
    auto payload = good;
    payload[at] ^= std::byte{0x10};
    if (!is_known_kernel(payload)) continue;
    // Still known: then only attributes or bytes that nobody reads differ.
    object read = deserialize_object(payload);
    read.attributes.clear();
    EXPECT_EQ(read, without_values) << "byte " << at;
  }
  EXPECT_FALSE(is_known_kernel({}));
  EXPECT_FALSE(is_known_kernel(std::span(good).first(good.size() / 2)));
  EXPECT_TRUE(is_hip_kernel(good));
}

// A hostile file states shapes and attributes beside a known kernel for which the kernel would leave its tensors.
TEST(known_kernels, operands_that_do_not_fit_are_refused) {
  auto f32 = [](std::vector<dim> dims) { return shape{element_type::f32, std::move(dims)}; };
  auto i64 = [](std::vector<dim> dims) { return shape{element_type::i64, std::move(dims)}; };
  auto refused = [](object o, const std::vector<shape>& inputs, std::vector<shape> outputs = {}) {
    try {
      if (outputs.empty()) outputs = infer(o, inputs);
      check_operands(o, inputs, outputs);
      return false;
    } catch (const error& e) {
      EXPECT_EQ(e.kind(), error_kind::invalid_model) << e.what();
      return true;
    }
  };
  const object& scatter = kernel("ScatterElements");
  EXPECT_FALSE(refused(scatter, {f32({4, 5}), i64({2, 5}), f32({2, 5})}));
  EXPECT_TRUE(refused(scatter, {f32({4, 5}), i64({2, 6}), f32({2, 6})})) << "indices wider than the data";
  EXPECT_TRUE(refused(scatter, {f32({4, 5}), i64({2, 5}), f32({1, 5})})) << "fewer updates than indices";
  EXPECT_TRUE(refused(scatter, {f32({4, 5}), i64({2, 5}), {element_type::u8, {2, 5}}})) << "updates of another type";
  EXPECT_TRUE(refused(scatter, {f32({4, 5}), i64({2, 5})})) << "no updates";
  EXPECT_TRUE(refused(scatter, {f32({4, 5}), i64({2, 5}), f32({2, 5})}, {f32({4, 4})})) << "a smaller result";
  EXPECT_TRUE(refused(scatter, {f32({4, 5}), i64({2, 5}), f32({2, 5})}, {f32({4, 5}), f32({1})})) << "two results";
  object along = scatter;
  for (auto& [name, value] : along.attributes)
    if (name == "axis") value = std::int64_t{7};
  EXPECT_TRUE(refused(along, {f32({4, 5}), i64({2, 5}), f32({2, 5})})) << "an axis that does not exist";

  const object& boxes = kernel("NonMaxSuppression");
  EXPECT_FALSE(refused(boxes, {f32({1, 6, 4}), f32({1, 2, 6})}));
  EXPECT_TRUE(refused(boxes, {f32({1, 6, 3}), f32({1, 2, 6})}));
  EXPECT_TRUE(refused(boxes, {f32({1, 6, 4}), f32({2, 2, 6})})) << "scores of more images";
  EXPECT_TRUE(refused(boxes, {f32({1, 6, 4}), f32({1, 2, 5})})) << "scores of fewer boxes";

  const object& grid = kernel("GridSample");
  EXPECT_FALSE(refused(grid, {f32({1, 2, 3, 3}), f32({1, 4, 4, 2})}));
  EXPECT_TRUE(refused(grid, {f32({2, 2, 3, 3}), f32({1, 4, 4, 2})}));
  EXPECT_TRUE(refused(grid, {f32({1, 2, 3, 3}), f32({1, 4, 4, 1})}));

  EXPECT_TRUE(refused(kernel("Resize"), {f32({1, 1, 0, 3})})) << "rows of nothing";
  EXPECT_TRUE(refused(kernel("RoiAlign"), {f32({1, 1, 0, 3}), f32({1, 4}), i64({1})}));
  EXPECT_FALSE(refused(kernel("RoiAlign"), {f32({1, 1, 3, 3}), f32({1, 4}), i64({1})}));
  EXPECT_TRUE(refused(kernel("TopK"), {f32({})}));

  object left_out = kernel("NonZero");
  left_out.attributes.emplace_back(left_out_input(0), std::int64_t{1});
  EXPECT_TRUE(refused(left_out, {f32({3})})) << "an input that is there, and is said not to be";
}

}  // namespace kiln::spirv
