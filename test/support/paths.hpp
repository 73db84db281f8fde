// Where the sources and the build folder of this program are.
#pragma once

#include <filesystem>

namespace kiln::testing {

// The repository's top folder, and the folder that CMake configured. Absolute paths. They are known to paths.cpp alone:
// as definitions on every test's command line they would keep ccache from finding a test that another clone has
// compiled.
std::filesystem::path source_folder();
std::filesystem::path build_folder();

}  // namespace kiln::testing
