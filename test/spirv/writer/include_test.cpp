// What a HIP source may read with #include and its kin: its own folder and Kiln's headers, whatever way a name takes.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "spirv/hip/hip_compiler.hpp"
#include "test/support/scratch_folder.hpp"

namespace kiln::spirv {
namespace {

namespace fs = std::filesystem;

const std::string secret = "TOPSECRET-12345";
const std::string kernel = "\n#include <hip/hip_runtime.h>\n__global__ void k(float* y) { y[threadIdx.x] = 1; }\n";

class includes : public ::testing::Test {
 protected:
  void SetUp() override {
    fs::create_directories(job() / "sub/deeper");
    fs::create_directory(folder.path() / "job2");
    write(folder.path() / "secret", secret + " is the password\n");
    write(folder.path() / "job2/secret", secret + "\n");
    write(job() / "own.h", "#define OWN 1\n");
    write(job() / "sub/own.h", "#define SUB 1\n#include \"../own.h\"\n");
    fs::create_symlink(folder.path() / "secret", job() / "link.h");
    fs::create_directory_symlink(folder.path(), job() / "up");
    fs::create_symlink(job() / "own.h", job() / "inner.h");
  }
  fs::path job() const { return folder.path() / "job"; }
  static void write(const fs::path& file, const std::string& text) { std::ofstream(file) << text; }
  // Clang's words, or "compiled".
  std::string outcome(const std::string& source, const std::string& root = "") {
    write(job() / "k.hip", source + kernel);
    try {
      result = compile_hip_file((job() / "k.hip").string(), {.include_root = root});
      return "compiled" + result.warnings;
    } catch (const source_error& e) {
      return e.diagnostics();
    }
  }
  testing::scratch_folder folder;
  compiled_source result;
};

TEST_F(includes, reach_the_source_s_own_folder) {
  EXPECT_EQ(
      outcome("#include \"own.h\"\n#include \"sub/own.h\"\n#include \"sub/../inner.h\"\nstatic_assert(OWN && SUB);\n"),
      "compiled");
  EXPECT_EQ(result.included, (std::vector<std::string>{"own.h", "sub/own.h"}));
  EXPECT_EQ(outcome("#include \"" + (job() / "own.h").string() + "\"\nstatic_assert(OWN);\n"), "compiled");
  EXPECT_EQ(outcome("#include \"../job/own.h\"\nstatic_assert(OWN);\n"), "compiled");
}

TEST_F(includes, reach_nothing_else) {
  const std::string file = (folder.path() / "secret").string();
  const std::vector<std::string> ways{
      "#include \"" + file + "\"\n",
      "#include <" + file + ">\n",
      "#include \"../secret\"\n",
      "#include \"sub/../../secret\"\n",
      "#include \"sub/deeper/../../../secret\"\n",
      "#include \"../job2/secret\"\n",
      "#include \"link.h\"\n",
      "#include \"up/secret\"\n",
      "#include \"up/job/../secret\"\n",
      "#include_next \"" + file + "\"\n",
      "#import \"" + file + "\"\n",
      "#define NAME \"" + file + "\"\n#include NAME\n",
      "#define TEXT(x) #x\n#define NAME(x) TEXT(x)\n#include NAME(" + file + ")\n",
      "const unsigned char text[] = {\n#embed \"" + file + "\"\n};\n",
      "const unsigned char text[] = {\n#embed \"link.h\"\n};\n",
      "#include \"//" + file + "\"\n",
      "#include \"/proc/self/environ\"\n",
      "#include \"/proc/self/cwd/../../../../../../" + file + "\"\n",
      "#include \"/dev/stdin\"\n",
      "#include \"-\"\n",
      "#include \"" + folder.path().string() + "\"\n",
      "#include \"/kiln/device/../../" + file + "\"\n",
      "#pragma GCC dependency \"" + file + "\"\n#pragma clang include_alias(\"a.h\", \"" + file +
          "\")\n#include \"a.h\"\n",
      "#pragma include_alias(\"own.h\", \"" + file +
          "\")\n#include \"own.h\"\n#ifndef OWN\n#error replaced\n#endif\n#error reached\n",
  };
  for (const std::string& way : ways) {
    std::string said = outcome(way);
    EXPECT_NE(said.substr(0, 8), "compiled") << way;
    EXPECT_EQ(said.find(secret), std::string::npos) << way << said;
  }
}

TEST_F(includes, ask_about_nothing_else) {
  const std::string file = (folder.path() / "secret").string();
  EXPECT_EQ(outcome("#if !__has_include(\"own.h\")\n#error\n#endif\n"), "compiled");
  for (const std::string& name : {file, std::string("../secret"), std::string("link.h"), std::string("up/secret"),
                                  std::string("/etc/passwd"), std::string("../none")}) {
    EXPECT_EQ(outcome("#if __has_include(\"" + name + "\") || __has_include(<" + name + ">) || __has_embed(\"" + name +
                      "\")\n#error it is there\n#endif\n"),
              "compiled")
        << name;
    // Neither do the words tell a file that is there from one that is not.
    std::string there = outcome("#include \"" + name + "\"\n");
    EXPECT_NE(there.find("file not found"), std::string::npos) << there;
  }
}

TEST_F(includes, assembly_of_a_file_is_none) {
  const std::string incbin = "\"stolen: .incbin \\\"" + (folder.path() / "secret").string() + "\\\"\"";
  for (const std::string& source :
       {"asm(" + incbin + ");\n", "__device__ void f() { asm volatile(" + incbin + "); }\n"}) {
    write(job() / "k.hip", source + "#include <hip/hip_runtime.h>\n__global__ void k(float* y) { y[0] = 1; }\n");
    try {
      auto words = compile_hip_file((job() / "k.hip").string()).words;
      std::string text(reinterpret_cast<const char*>(words.data()), words.size());
      EXPECT_EQ(text.find("TOPSECRET"), std::string::npos);
    } catch (const error& e) {
      EXPECT_EQ(std::string(e.what()).find(secret), std::string::npos);
    }
  }
}

TEST_F(includes, reach_as_far_as_the_root_that_is_given) {
  const std::string source = "#include \"../shared.h\"\nstatic_assert(SHARED);\n";
  write(folder.path() / "shared.h", "#define SHARED 1\n");
  EXPECT_NE(outcome(source).find("file not found"), std::string::npos);
  EXPECT_EQ(outcome(source, folder.path().string()), "compiled");
  EXPECT_EQ(result.included, std::vector<std::string>{"shared.h"});
  EXPECT_NE(outcome("#include \"own.h\"\n", (folder.path() / "none").string()).find("file not found"),
            std::string::npos);
}

}  // namespace
}  // namespace kiln::spirv
