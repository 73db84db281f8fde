// Tables of the documents that come from the code. A document holds one between the lines "<!-- table NAME -->" and
// "<!-- end of table -->". The test fails when the two differ; run it with KILN_WRITE_TABLES=1 to write the document.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>

#include "test/support/paths.hpp"

namespace kiln::testing {

// `file` is a path below the top folder, `table` whole lines.
inline void expect_documented(const std::string& file, const std::string& name, const std::string& table) {
  const std::filesystem::path path = source_folder() / file;
  std::ifstream in(path);
  std::string text{std::istreambuf_iterator<char>(in), {}};
  const std::string first = "<!-- table " + name + " -->\n", last = "<!-- end of table -->\n";
  const std::size_t begin = text.find(first);
  ASSERT_NE(begin, std::string::npos) << file << " has no table '" << name << "'";
  const std::size_t from = begin + first.size(), to = text.find(last, from);
  ASSERT_NE(to, std::string::npos) << file << ": the table '" << name << "' does not end";
  if (text.substr(from, to - from) == table) return;
  if (const char* write = std::getenv("KILN_WRITE_TABLES"); write && *write) {
    text.replace(from, to - from, table);
    std::ofstream(path) << text;
    return;
  }
  ADD_FAILURE() << file << ": the table '" << name << "' is not what the code says; run this test again with "
                << "KILN_WRITE_TABLES=1 and commit the document. It should be:\n"
                << table;
}

}  // namespace kiln::testing
