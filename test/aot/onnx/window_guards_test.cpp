// Open sizes for which a window does not fit into its image.
#include <gtest/gtest.h>

#include "test/aot/onnx/open_models.hpp"

namespace {

using namespace kiln;
using namespace kiln::test;

// A pooling of 2 halves three times: 8 pixels become 1, and 7 become none.
TEST(window_guards, images_that_are_too_small_for_a_window_are_refused) {
  model_builder m;
  m.input("x", float_type, {"1", "1", "n", "8"}).output("y");
  std::string from = "x";
  for (const char* to : {"a", "b", "c"}) {
    auto& pool = m.node("MaxPool", {from}, {to});
    m.attribute(pool, "kernel_shape", std::vector<std::int64_t>{2, 2});
    m.attribute(pool, "strides", std::vector<std::int64_t>{2, 2});
    from = to;
  }
  m.node("GlobalAveragePool", {from}, {"y"});
  program p = m.import();
  EXPECT_EQ(run(p, {counting({1, 1, 8, 8})}).to_doubles(), (std::vector<double>{63}));
  std::string why = refusal([&] { run(p, {counting({1, 1, 7, 8})}); });
  EXPECT_NE(why.find("a window of 2 does not fit"), std::string::npos) << why;
}

}  // namespace
