#include "ir/error.hpp"

#include <array>

namespace kiln {
namespace {

struct row {
  std::string_view name;
  int exit_code;
};

// Indexed by error_kind.
constexpr std::array<row, 14> table{{
    {"usage", 2},
    {"mismatch", 1},
    {"missing_file", 3},
    {"truncated", 3},
    {"corrupted", 3},
    {"newer_version", 3},
    {"invalid_model", 3},
    {"unsupported", 3},
    {"io", 3},
    {"not_native", 4},
    {"compile_failed", 4},
    {"timed_out", 4},
    {"absent", 4},
    {"internal", 4},
}};

}  // namespace

std::string_view name(error_kind kind) { return table[static_cast<std::size_t>(kind)].name; }
int exit_code(error_kind kind) { return table[static_cast<std::size_t>(kind)].exit_code; }

}  // namespace kiln
