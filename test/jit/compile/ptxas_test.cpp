// jit/ptxas with stand-in programs for ptxas: which programs are found, which are skipped, and how their results are
// used.
#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "ir/error.hpp"
#include "jit/ptxas.hpp"

namespace kiln::test {
namespace {

namespace fs = std::filesystem;

class ptxas_in_folders : public testing::Test {
 protected:
  void SetUp() override {
    root = fs::path(testing::TempDir()) / ("kiln_ptxas_" + std::to_string(getpid()) + "_" +
                                           testing::UnitTest::GetInstance()->current_test_info()->name());
  }
  void TearDown() override { fs::remove_all(root); }

  // Returns a folder with a ptxas that prints `version` for --version, and otherwise runs `command`.
  fs::path folder(const std::string& name, const std::string& version, const std::string& command = "cat") {
    fs::create_directories(root / name);
    fs::path file = root / name / "ptxas";
    std::ofstream(file) << "#!/bin/sh\nif [ \"$1\" = --version ]; then echo 'Cuda compilation tools, release "
                        << version.substr(0, version.rfind('.')) << ", V" << version << "'; exit; fi\n"
                        << command << "\n";
    chmod(file.c_str(), 0755);
    return root / name;
  }
  fs::path root;
};

std::span<const std::byte> bytes_of(const std::string& text) { return std::as_bytes(std::span(text)); }

TEST_F(ptxas_in_folders, the_first_that_the_driver_can_run_is_taken) {
  auto newer = folder("newer", "13.0.88"), fitting = folder("fitting", "12.8.93"), older = folder("older", "11.8.1"),
       mute = folder("mute", "12.1.1");
  std::ofstream(mute / "ptxas") << "#!/bin/sh\nexit 1\n";
  auto found = find_ptxas("12.8", {root / "absent", mute, newer, fitting, older});
  ASSERT_TRUE(found);
  EXPECT_EQ(found->version, "12.8.93");
  EXPECT_EQ(found->executable, (fitting / "ptxas").string());
  EXPECT_EQ(find_ptxas("13.0", {newer, fitting})->version, "13.0.88");
  EXPECT_FALSE(find_ptxas("12.2", {newer, fitting}));
  EXPECT_FALSE(find_ptxas("12.10", {}));
  EXPECT_TRUE(find_ptxas("12.10", {fitting}));
}

TEST_F(ptxas_in_folders, ptx_goes_in_and_a_cubin_comes_out) {
  auto tool = find_ptxas("12.8", {folder("good", "12.8.93", "{ echo \"$1 $2 $3\"; cat; } > \"$4\"")});
  ASSERT_TRUE(tool);
  std::string ptx = ".version 8.0\n.target sm_90a\n.address_size 64\n";
  ptx.push_back('\0');
  auto cubin = assemble_ptx(*tool, bytes_of(ptx));
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(cubin.data()), cubin.size()),
            "-arch=sm_90a - -o\n" + ptx.substr(0, ptx.size() - 1));
  const std::string elf = "\177ELF and more";
  EXPECT_EQ(assemble_ptx(*tool, bytes_of(elf)).size(), elf.size());
}

TEST_F(ptxas_in_folders, the_toolkits_makes_a_cubin) {
  auto tool = find_ptxas("99.0", ptxas_folders());
  if (!tool) GTEST_SKIP() << "no ptxas on this machine";
  auto cubin = assemble_ptx(
      *tool, bytes_of(".version 7.8\n.target sm_80\n.address_size 64\n.visible .entry nothing() { ret; }\n"));
  ASSERT_GT(cubin.size(), 4u);
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(cubin.data()), 4), "\177ELF");
}

TEST_F(ptxas_in_folders, a_refusal_is_an_error_with_its_words) {
  auto tool = find_ptxas("12.8", {folder("bad", "12.8.93", "echo 'ptxas fatal: no such instruction' >&2; exit 255")});
  ASSERT_TRUE(tool);
  try {
    assemble_ptx(*tool, bytes_of(".target sm_90\n"));
    FAIL();
  } catch (const error& e) {
    EXPECT_EQ(e.kind(), error_kind::compile_failed);
    EXPECT_THAT(e.what(), testing::HasSubstr("no such instruction"));
  }
  EXPECT_THROW(assemble_ptx(*tool, bytes_of("no target")), error);
}

TEST_F(ptxas_in_folders, the_driver_takes_over_and_the_result_says_who_made_it) {
  std::vector<std::string> warnings;
  auto assembled = [&](const char* script) {
    auto tool = find_ptxas("12.8", {folder(std::to_string(warnings.size()) + "tool", "12.8.93", script)});
    return assemble_ptx_or(
        tool.value(), bytes_of(".target sm_90\n"), "ptxas", "refused",
        [](std::span<const std::byte>) { return std::vector<std::byte>(3, std::byte{7}); },
        [&](const std::string& why) { warnings.push_back(why); });
  };
  EXPECT_EQ(assembled("while [ \"$1\" != -o ]; do shift; done; echo made > \"$2\"").by, "ptxas");
  EXPECT_TRUE(warnings.empty());
  const assembled_object refused = assembled("echo 'ptxas fatal: no such instruction' >&2; exit 255");
  EXPECT_EQ(refused.by, "refused");
  EXPECT_EQ(refused.bytes, std::vector<std::byte>(3, std::byte{7}));
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_THAT(warnings[0], testing::HasSubstr("no such instruction; the driver compiles it"));
}

}  // namespace
}  // namespace kiln::test
