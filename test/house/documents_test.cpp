// Programs shown in documents must be identical to the programs that tests run.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "test/support/paths.hpp"

namespace {

std::string contents(const std::filesystem::path& file) {
  std::ifstream in(file);
  EXPECT_TRUE(in) << file;
  return {std::istreambuf_iterator<char>(in), {}};
}

TEST(house, the_document_of_the_c_interface_shows_the_examples) {
  const std::filesystem::path root = kiln::testing::source_folder();
  const std::string page = contents(root / "docs/c_api.md");
  for (const char* name : {"run_portable.c", "run_native.c", "run_tuned.c"})
    EXPECT_NE(page.find("```c\n" + contents(root / "examples" / name) + "```\n"), std::string::npos)
        << "docs/c_api.md shows another " << name;
  EXPECT_NE(page.find("```cpp\n" + contents(root / "examples/run_any_size.cpp") + "```\n"), std::string::npos);
}

TEST(house, the_document_about_operators_shows_one_as_it_is) {
  const std::filesystem::path root = kiln::testing::source_folder();
  const std::string page = contents(root / "docs/add_an_operator.md"),
                    source = contents(root / "aot/onnx/ops/unary.cpp");
  int blocks = 0;
  for (std::size_t begin = 0; (begin = page.find("```cpp\n", begin)) != std::string::npos; ++blocks) {
    begin += 7;
    const std::string block = page.substr(begin, page.find("```", begin) - begin);
    EXPECT_NE(source.find(block), std::string::npos) << "docs/add_an_operator.md shows other code:\n" << block;
  }
  EXPECT_GT(blocks, 0);
}

}  // namespace
