// The digests that represent the back ends in cache keys. A change of any covered source changes the digest, wherever
// the source tree is. Sources of other back ends, and sources that do not affect code, do not change it.
#include "jit/code_digest.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <sstream>
#include <vector>

#include "aot/pipeline.hpp"
#include "ir/ops/elementwise.hpp"
#include "jit/cache/kernel_cache.hpp"
#include "jit/cache/maintenance.hpp"
#include "jit/compile_bytecode.hpp"
#include "jit/targets.hpp"
#include "test/support/paths.hpp"
#include "test/support/scratch_folder.hpp"

using namespace kiln;

namespace {

namespace fs = std::filesystem;
using digests = std::map<std::string, std::string>;            // back end → digest
using covered = std::map<std::string, std::set<std::string>>;  // back end → "source:PATH"

std::string text_of(const fs::path& file) {
  std::ifstream in(file);
  return {std::istreambuf_iterator<char>(in), {}};
}

class code_digest_test : public ::testing::Test {
 protected:
  // Returns the digests that the build's script computes for the sources in `tree`.
  digests digest(const fs::path& tree, covered* lists = nullptr) {
    const fs::path output = folder / "digests.cpp";
    const std::string build = kiln::testing::build_folder();
    const std::string command = std::string("'") + KILN_CMAKE + "' -DMANIFEST=" + build +
                                "/jit/code_digests.manifest -DSOURCE_DIR=" + tree.string() + " -DBINARY_DIR=" + build +
                                " -DOUTPUT=" + output.string() + " -DLIST_FILES=ON -P " +
                                kiln::testing::source_folder().string() + "/cmake/code_digest.cmake > " +
                                (folder / "said").string() + " 2>&1";
    EXPECT_EQ(std::system(command.c_str()), 0) << text_of(folder / "said");
    digests result;
    std::ifstream in(output);
    for (std::string line; std::getline(in, line);) {
      std::istringstream words(line);
      std::string nothing, back_end, value;
      if (line.starts_with("    {\"") && std::getline(words, nothing, '"') && std::getline(words, back_end, '"') &&
          std::getline(words, nothing, '"') && std::getline(words, value, '"'))
        result[back_end] = value;
    }
    for (const auto& [back_end, value] : result) {
      std::ifstream files(folder / ("digests.cpp." + back_end + ".txt"));
      for (std::string line; lists && std::getline(files, line);)
        if (line.starts_with("source:")) (*lists)[back_end].insert(line.substr(0, line.find(' ')));
    }
    return result;
  }

  kiln::testing::scratch_folder folder;
};

// Flips a bit of the file's last byte.
void change_one_byte(const fs::path& file) {
  std::string text = text_of(file);
  ASSERT_FALSE(text.empty()) << file;
  text.back() = static_cast<char>(text.back() ^ 1);
  std::ofstream(file, std::ios::binary | std::ios::trunc) << text;
}

}  // namespace

TEST_F(code_digest_test, one_byte_of_a_source_changes_the_digests_of_the_back_ends_that_depend_on_it) {
  const fs::path tree = folder / "tree";
  fs::create_directories(tree);
  for (const char* part : {"ir", "mlir_bridge", "spirv", "jit", "runtime"})
    fs::copy(kiln::testing::source_folder() / part, tree / part, fs::copy_options::recursive);
  covered lists;
  const digests before = digest(tree, &lists);
  digests built;
  for (const code_digest_row& row : code_digests()) built.emplace(row.back_end, row.digest);
  EXPECT_EQ(before, built) << "a digest depends on where the sources lie, or the build is older than the sources";
  ASSERT_EQ(before.size(), 4u);

  // For every set of back ends that share sources, tests the first and the last file.
  std::map<std::set<std::string>, std::vector<std::string>> sharing;
  std::set<std::string> all;
  for (const auto& [back_end, files] : lists) all.insert(files.begin(), files.end());
  for (const std::string& file : all) {
    std::set<std::string> back_ends;
    for (const auto& [back_end, files] : lists)
      if (files.contains(file)) back_ends.insert(back_end);
    sharing[back_ends].push_back(file);
  }
  for (const char* alone : {"cpu", "amd", "nvidia", "spirv"}) EXPECT_TRUE(sharing.contains({alone})) << alone;
  for (const auto& [back_ends, files] : sharing)
    for (const std::string& file : {files.front(), files.back()}) {
      const fs::path changed = tree / file.substr(std::string("source:").size());
      const std::string original = text_of(changed);
      change_one_byte(changed);
      for (const auto& [back_end, value] : digest(tree))
        EXPECT_EQ(value != before.at(back_end), back_ends.contains(back_end)) << back_end << " after " << file;
      std::ofstream(changed, std::ios::binary | std::ios::trunc) << original;
    }

  for (const char* outside : {"ir/container/container.cpp", "ir/trust/keys.cpp", "jit/cache/kernel_cache.cpp",
                              "runtime/plan.cpp", "jit/compile_bytecode.cpp"})
    change_one_byte(tree / outside);
  EXPECT_EQ(digest(tree), before);
}

TEST_F(code_digest_test, a_cache_of_another_digest_is_not_read_and_explain_names_the_code) {
  program source;
  module& main = source.main();
  const shape type{element_type::f32, {4, 8}};
  auto x = main.add_parameter("x", type);
  main.set_outputs({main.add(elementwise{scalar_function::exp}, {x})}, {"y"});
  program portable = compile(std::move(source));
  const target_row target = find_target("x86-64-v3");
  const std::vector<wanted_kernel> wanted = wanted_kernels(portable, target);
  ASSERT_EQ(wanted.size(), 1u);

  auto cache = kernel_cache::open({.folder = folder / "cache"});
  kernel_key of_another = wanted[0].key;
  of_another.code = std::string(64, '0');
  const std::vector<std::byte> payload(100, std::byte{1});
  cache->store(of_another, payload);
  EXPECT_TRUE(cache->find(of_another));
  EXPECT_FALSE(cache->find(wanted[0].key));

  jit_options options{.target = target, .cache = cache.get()};
  jit_report report;
  compile_bytecode(portable, options, &report);
  EXPECT_EQ(report.hits, 0u);
  EXPECT_EQ(report.misses, 1u);
  compile_bytecode(portable, options, &report);
  EXPECT_EQ(report.hits, 1u);

  auto other = kernel_cache::open({.folder = folder / "other"});
  other->store(of_another, payload);
  const cache_explanation why = explain_cache({folder / "other"}, wanted[0].key);
  EXPECT_FALSE(why.hit);
  ASSERT_TRUE(why.nearest);
  ASSERT_EQ(why.differences.size(), 1u);
  EXPECT_EQ(why.differences[0].field, "code");
  EXPECT_EQ(why.differences[0].wanted, compiler_code(target_family::cpu));
  EXPECT_EQ(why.differences[0].found, std::string(64, '0'));
}

TEST(code_digest, names_the_reader_of_spirv_too) {
  for (target_family family : {target_family::cpu, target_family::amdgpu, target_family::nvidia}) {
    const std::string code = compiler_code(family);
    EXPECT_EQ(code.size(), 64u);
    const std::string spirv = compiler_code(family, code_format::amdgcnspirv);
    EXPECT_EQ(spirv.size(), 129u);
    EXPECT_TRUE(spirv.ends_with(" " + code));
  }
  EXPECT_NE(compiler_code(target_family::amdgpu), compiler_code(target_family::nvidia));
}
