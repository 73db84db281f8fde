// The list of configuration names (mlir_bridge/kernel/configuration_names.cpp) is what the generators read.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <string>

#include "test/support/paths.hpp"

namespace {

namespace fs = std::filesystem;

std::string text_of(const fs::path& file) {
  std::ifstream in(file);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::set<std::string> all_matches(const std::string& text, const std::regex& pattern) {
  std::set<std::string> found;
  for (std::sregex_iterator i(text.begin(), text.end(), pattern), end; i != end; ++i) found.insert((*i)[1]);
  return found;
}

TEST(house, configuration_names_are_those_that_generators_read) {
  const fs::path top = kiln::testing::source_folder(), list = top / "mlir_bridge/kernel/configuration_names.cpp";
  const std::string source = text_of(list);
  const std::set<std::string> names = all_matches(source.substr(source.find("names{")), std::regex("\"([a-z_0-9]+)\""));
  EXPECT_GT(names.size(), 40u);
  // choose(configuration, "tile_m", 8), set(tile.m, configuration, "tile_m") and the like.
  const std::regex reading("configuration,\\s*\"([a-z_0-9]+)\"");
  std::set<std::string> read, mentioned;
  for (const char* folder : {"mlir_bridge", "jit"})
    for (const auto& entry : fs::recursive_directory_iterator(top / folder)) {
      const auto extension = entry.path().extension();
      if (entry.path() == list || (extension != ".cpp" && extension != ".hpp")) continue;
      const std::string text = text_of(entry.path());
      if (text.find("configuration, ") != std::string::npos || text.find("configuration,\n") != std::string::npos)
        read.merge(all_matches(text, reading));
      for (const std::string& name : names)
        if (text.find('"' + name + '"') != std::string::npos) mentioned.insert(name);
    }
  for (const std::string& name : read) EXPECT_TRUE(names.contains(name)) << "'" << name << "' is missing in " << list;
  for (const std::string& name : names)
    EXPECT_TRUE(mentioned.contains(name)) << "'" << name << "' of " << list << " is read nowhere";
}

}  // namespace
