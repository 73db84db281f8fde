// The arrows of docs/architecture.md: which room may include which, and where LLVM's headers may stand. A file that
// breaks them is named.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "test/support/paths.hpp"

namespace {

namespace fs = std::filesystem;

// LLVM's, MLIR's, Clang's and LLD's headers: nowhere, not even through our own headers; in .cpp files alone; or in
// headers of the room as well, which rooms without LLVM cannot include.
enum class llvm { nowhere, sources, headers };

struct room {
  std::set<std::string> may_use;  // besides itself
  llvm headers_of_llvm;
};

const std::set<std::string> doors{"mlir_bridge", "mlir_bridge/kernel", "mlir_bridge/targets"};

std::set<std::string> with_doors(std::set<std::string> others) {
  others.insert(doors.begin(), doors.end());
  return others;
}

// A room is a folder with what lies below it, but for rooms of their own. "mlir_bridge" is the files beside its rooms.
const std::map<std::string, room> rooms{
    {"ir", {{}, llvm::nowhere}},
    {"mlir_bridge/targets", {{"ir"}, llvm::nowhere}},
    {"mlir_bridge/dialect", {{"ir"}, llvm::headers}},
    {"mlir_bridge/kernel", {{"ir", "mlir_bridge/dialect"}, llvm::sources}},
    {"mlir_bridge/codegen", {{"ir", "mlir_bridge/kernel", "mlir_bridge/targets"}, llvm::headers}},
    {"mlir_bridge/back_ends", {{"ir", "mlir_bridge/targets"}, llvm::sources}},
    {"mlir_bridge/cpu", {{"ir", "mlir_bridge/codegen", "mlir_bridge/targets"}, llvm::headers}},
    {"mlir_bridge/gpu", {{"ir", "mlir_bridge/codegen", "mlir_bridge/targets"}, llvm::headers}},
    {"mlir_bridge/kinds", {{"ir", "mlir_bridge/codegen", "mlir_bridge/cpu", "mlir_bridge/gpu"}, llvm::headers}},
    {"mlir_bridge",
     {{"ir", "mlir_bridge/kernel", "mlir_bridge/targets", "mlir_bridge/codegen", "mlir_bridge/cpu", "mlir_bridge/gpu",
       "mlir_bridge/kinds", "mlir_bridge/back_ends"},
      llvm::sources}},
    {"spirv", {{"ir"}, llvm::headers}},
    {"runtime", {{"ir"}, llvm::nowhere}},
    {"aot", {{"ir", "mlir_bridge/kernel", "mlir_bridge/kinds", "spirv"}, llvm::nowhere}},
    {"jit", {with_doors({"ir", "spirv", "runtime"}), llvm::sources}},
    {"session", {{"ir", "runtime", "jit"}, llvm::nowhere}},
    {"generation", {{"ir", "runtime", "session"}, llvm::nowhere}},
    {"python", {{"runtime"}, llvm::nowhere}},
    {"onnxruntime", {{"ir", "runtime"}, llvm::nowhere}},
    {"tools", {with_doors({"ir", "spirv", "runtime", "aot", "jit", "session", "generation"}), llvm::nowhere}},
};

// Headers with LLVM or MLIR in rooms where sources alone may have them: for that room, or for other rooms like it.
const std::set<std::string> internal_headers{
    "mlir_bridge/kernel/portable_kernel_impl.hpp", "mlir_bridge/back_ends/kernel_pipeline.hpp",
    "mlir_bridge/back_ends/amd/damaged_object.hpp", "mlir_bridge/back_ends/printed.hpp", "mlir_bridge/generation.hpp"};

struct source {
  std::vector<std::string> ours;  // what it includes, as paths from the repository's root
  std::vector<std::string> of_llvm;
};

// The longest of the table's folders that holds the file; empty where none does.
std::string room_of(const std::string& file) {
  for (fs::path folder = fs::path(file).parent_path(); !folder.empty(); folder = folder.parent_path())
    if (rooms.contains(folder.string())) return folder.string();
  return {};
}

const std::map<std::string, source>& sources() {
  static const std::map<std::string, source> all = [] {
    static const std::regex form("^\\s*#\\s*include\\s*[<\"]([^>\"]+)[>\"]");
    static const std::regex foreign("^(llvm|mlir|clang|lld|llvm-c|clang-c)/.*");
    std::map<std::string, source> found;
    const fs::path root = kiln::testing::source_folder();
    for (const auto& [folder, r] : rooms) {
      if (folder.find('/') != std::string::npos) continue;
      for (const auto& entry : fs::recursive_directory_iterator(root / folder)) {
        auto extension = entry.path().extension();
        if (extension != ".cpp" && extension != ".hpp" && extension != ".h") continue;
        source& s = found[fs::relative(entry.path(), root).string()];
        std::ifstream in(entry.path());
        std::string line;
        std::smatch match;
        while (std::getline(in, line)) {
          if (line.find("include") == std::string::npos || !std::regex_search(line, match, form)) continue;
          std::string target = match[1];
          if (std::regex_match(target, foreign)) s.of_llvm.push_back(target);
          else if (!room_of(target).empty()) s.ours.push_back(target);
        }
      }
    }
    return found;
  }();
  return all;
}

// The chain of our headers from `file` to one that includes LLVM; empty where there is none.
std::vector<std::string> way_to_llvm(const std::string& file, std::set<std::string>& seen) {
  auto found = sources().find(file);
  if (found == sources().end() || !seen.insert(file).second) return {};
  if (!found->second.of_llvm.empty()) return {file, found->second.of_llvm.front()};
  for (const std::string& next : found->second.ours)
    if (auto way = way_to_llvm(next, seen); !way.empty()) {
      way.insert(way.begin(), file);
      return way;
    }
  return {};
}

bool is_header(const std::string& file) { return !file.ends_with(".cpp"); }

TEST(house, includes_follow_the_arrows) {
  for (const auto& [file, s] : sources())
    for (const std::string& target : s.ours) {
      const std::string from = room_of(file), to = room_of(target);
      EXPECT_TRUE(from == to || rooms.at(from).may_use.contains(to))
          << file << " includes " << target << ", but " << from << " may not use " << to;
    }
}

TEST(house, rooms_form_no_cycle) {
  // A room that nothing left uses is taken away, until none is left.
  std::map<std::string, std::set<std::string>> left;
  for (const auto& [name, r] : rooms) left[name] = r.may_use;
  for (bool taken = true; taken;) {
    taken = false;
    for (auto i = left.begin(); i != left.end();) {
      bool used =
          std::any_of(left.begin(), left.end(), [&](const auto& other) { return other.second.contains(i->first); });
      if (!used) i = left.erase(i), taken = true;
      else ++i;
    }
  }
  for (const auto& [name, uses] : left) ADD_FAILURE() << name << " is in an include cycle of rooms, or used by one";
}

TEST(house, llvm_stays_in_its_rooms) {
  for (const auto& [file, s] : sources()) {
    const llvm allowed = rooms.at(room_of(file)).headers_of_llvm;
    std::set<std::string> seen;
    if (allowed == llvm::headers || (allowed == llvm::sources && (!is_header(file) || internal_headers.contains(file))))
      continue;
    auto way = way_to_llvm(file, seen);
    std::string words;
    for (const std::string& step : way) words += "\n  " + step;
    EXPECT_TRUE(way.empty()) << file << " must not see LLVM's headers:" << words;
  }
}

TEST(house, the_table_is_complete) {
  std::map<std::string, int> files;
  for (const auto& [file, s] : sources()) ++files[room_of(file)];
  for (const auto& [name, r] : rooms) {
    EXPECT_GT(files[name], 0) << name << " has no sources";
    for (const std::string& other : r.may_use) EXPECT_TRUE(rooms.contains(other)) << name << " may use " << other;
  }
  for (const std::string& file : internal_headers) EXPECT_TRUE(sources().contains(file)) << file;
  for (const auto& entry : fs::directory_iterator(kiln::testing::source_folder() / "mlir_bridge"))
    if (entry.is_directory()) {
      EXPECT_TRUE(rooms.contains("mlir_bridge/" + entry.path().filename().string())) << entry.path();
    }
}

// Programs that are run at the top leave nothing there: results belong in build/.
TEST(house, folders_at_the_top_are_known) {
  const std::set<std::string> others{"LICENSES",  "bench",   "cmake", "docs",       "examples",
                                     "packaging", "scripts", "test",  "third_party"};
  for (const auto& entry : fs::directory_iterator(kiln::testing::source_folder())) {
    const std::string name = entry.path().filename().string();
    if (!entry.is_directory() || name.starts_with(".") || name.starts_with("build") || name == "out") continue;
    EXPECT_TRUE(rooms.contains(name) || others.contains(name)) << name;
  }
}

}  // namespace
