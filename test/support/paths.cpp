#include "test/support/paths.hpp"

namespace kiln::testing {

std::filesystem::path source_folder() { return KILN_SOURCE_DIR; }
std::filesystem::path build_folder() { return KILN_BINARY_DIR; }

}  // namespace kiln::testing
