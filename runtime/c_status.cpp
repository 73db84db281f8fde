#include "runtime/c_status.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include "ir/error_kinds.hpp"

namespace kiln::c_interface {
namespace {

// Indexed by kiln_status.
constexpr std::array<const char*, KILN_CONTEXT_FULL + 1> status_names{"ok",
                                                                      "usage",
                                                                      "missing_file",
                                                                      "damaged_file",
                                                                      "newer_version",
                                                                      "unsupported",
                                                                      "not_native",
                                                                      "io",
                                                                      "out_of_memory",
                                                                      "internal",
                                                                      "untrusted",
                                                                      "mismatch",
                                                                      "compile_failed",
                                                                      "timed_out",
                                                                      "no_driver",
                                                                      "no_device",
                                                                      "wrong_device",
                                                                      "device_lost",
                                                                      "not_built_in",
                                                                      "not_cached",
                                                                      "unreachable",
                                                                      "invalid_shape",
                                                                      "invalid_sequence",
                                                                      "context_full"};

// Per error_kind: the status that the table of kinds names.
constexpr auto statuses = [] {
  std::array<kiln_status, error_kinds.size()> result{};
  for (std::size_t i = 0; i < result.size(); ++i) {
    const auto found = std::ranges::find(status_names, error_kinds[i].status);
    result[i] = static_cast<kiln_status>(found - status_names.begin());
  }
  return result;
}();
static_assert(std::ranges::all_of(statuses, [](kiln_status s) { return s > KILN_OK && s <= KILN_CONTEXT_FULL; }));

// Of fixed size, so that even out-of-memory has room for its message.
thread_local char last_error[1024] = "";

}  // namespace

kiln_status fail(kiln_status status, const char* message) noexcept {
  std::strncpy(last_error, message, sizeof last_error - 1);
  return status;
}

kiln_status fail(const error& e) noexcept { return fail(statuses[static_cast<std::size_t>(e.kind())], e.what()); }

}  // namespace kiln::c_interface

extern "C" {

const char* kiln_status_name(kiln_status status) {
  auto i = static_cast<std::size_t>(status);
  return i < kiln::c_interface::status_names.size() ? kiln::c_interface::status_names[i] : "unknown";
}

const char* kiln_last_error(void) { return kiln::c_interface::last_error; }

}  // extern "C"
