// What is printed, and what is parsed, goes through one place each. A line that does not is named.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "test/support/paths.hpp"

namespace {

namespace fs = std::filesystem;

struct rule {
  std::regex pattern;
  std::set<std::string> allowed;  // files
  const char* instead;
};

const std::vector<rule> rules{
    {std::regex(
         R"(\bfmt::print\b|\bstd::print|\bf?printf\s*\(|\bf?puts\s*\(|\bfwrite\s*\(|\bputc|\bstd::c(out|err|log)\b|\bperror\s*\(|STDERR_FILENO,|STDOUT_FILENO,)"),
     {"tools/terminal.cpp", "spirv/library/compile_library.cpp" /* a tool of the build */,
      "tools/main.cpp" /* opens the streams */, "tools/farm_child.cpp" /* speaks to its parent */,
      "jit/compile_worker.cpp" /* the same */, "jit/worker_host.cpp" /* opens a worker's streams */,
      "session/compile_worker_main.cpp" /* has one message */},
     "print(), note() or print_lines() of tools/terminal.hpp, which make text from outside printable"},
    {std::regex(R"(json::parse\b|json::accept\b|\bsax_parse\b|\bfrom_(cbor|msgpack|ubjson|bson)\b)"),
     {"ir/json.cpp"},
     "parse_json() of ir/json.hpp, which is bounded"},
    {std::regex(R"(\bset_pattern\b|\bset_default_logger\b)"),
     {"tools/terminal.cpp"},
     "start_log() of tools/terminal.hpp"},
};

const std::vector<std::string> folders{"ir",  "mlir_bridge", "spirv",      "runtime", "aot",
                                       "jit", "session",     "generation", "tools"};

TEST(house, output_and_parsing_go_through_one_place) {
  std::size_t files = 0;
  for (const std::string& folder : folders)
    for (const auto& entry : fs::recursive_directory_iterator(kiln::testing::source_folder() / folder)) {
      auto extension = entry.path().extension();
      if (extension != ".cpp" && extension != ".hpp") continue;
      ++files;
      const std::string name = fs::relative(entry.path(), kiln::testing::source_folder()).string();
      std::ifstream in(entry.path());
      std::string line;
      for (int number = 1; std::getline(in, line); ++number) {
        const std::string code = line.substr(0, line.find("//"));
        if (code.find('(') == std::string::npos && code.find("std::c") == std::string::npos)
          continue;  // a regular expression on every line takes seconds
        for (const rule& r : rules)
          if (!r.allowed.contains(name) && std::regex_search(code, r.pattern))
            ADD_FAILURE() << name << ":" << number << ": use " << r.instead << "\n" << line;
      }
    }
  EXPECT_GT(files, 300u);
}

}  // namespace
