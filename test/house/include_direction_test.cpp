// The arrows of docs/architecture.md: which folder may include which. A file that breaks them is named.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <string>

namespace {

namespace fs = std::filesystem;

// Folder → the folders of ours that it may include (besides itself).
const std::map<std::string, std::set<std::string>> may_use{
    {"ir", {}},
    {"mlir_bridge", {"ir"}},
    {"spirv", {"ir"}},
    {"runtime", {"ir"}},
    {"aot", {"ir", "mlir_bridge", "spirv"}},
    {"jit", {"ir", "mlir_bridge", "spirv", "runtime"}},
    {"tools", {"ir", "mlir_bridge", "spirv", "runtime", "aot", "jit"}},
};

// Folders whose files may include LLVM or MLIR at all, and whose headers may not (other folders include those).
const std::set<std::string> without_llvm{"ir", "runtime", "aot", "tools"};

struct include {
  fs::path file;
  std::string target;
};

std::vector<include> includes_of(const std::string& folder) {
  static const std::regex line_form("^\\s*#\\s*include\\s*[<\"]([^>\"]+)[>\"]");
  std::vector<include> found;
  fs::path root = fs::path(KILN_SOURCE_DIR) / folder;
  if (!fs::exists(root)) return found;
  for (const auto& entry : fs::recursive_directory_iterator(root)) {
    auto extension = entry.path().extension();
    if (extension != ".cpp" && extension != ".hpp" && extension != ".h") continue;
    std::ifstream in(entry.path());
    std::string line;
    std::smatch match;
    while (std::getline(in, line))
      if (std::regex_search(line, match, line_form)) found.push_back({entry.path(), match[1]});
  }
  return found;
}

TEST(house, includes_follow_the_arrows) {
  for (const auto& [folder, allowed] : may_use)
    for (const include& i : includes_of(folder)) {
      auto slash = i.target.find('/');
      std::string top = i.target.substr(0, slash);
      if (slash == std::string::npos || top == folder || !may_use.contains(top)) continue;
      EXPECT_TRUE(allowed.contains(top)) << i.file << " includes " << i.target << ", but " << folder << " may not use "
                                         << top;
    }
}

TEST(house, llvm_stays_in_its_folders) {
  for (const std::string& folder : without_llvm)
    for (const include& i : includes_of(folder)) {
      bool llvm = i.target.starts_with("llvm/") || i.target.starts_with("mlir/") || i.target.starts_with("clang/") ||
                  i.target.starts_with("lld/");
      EXPECT_FALSE(llvm) << i.file << " includes " << i.target << ", but " << folder << " must build without LLVM";
    }
}

TEST(house, every_folder_of_the_table_has_sources) {
  for (const auto& [folder, allowed] : may_use) EXPECT_FALSE(includes_of(folder).empty()) << folder;
}

}  // namespace
