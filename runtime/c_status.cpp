#include "runtime/c_status.hpp"

#include <array>
#include <cstring>

#include "ir/trust/native_consent.hpp"
#include "runtime/compiler_library.hpp"

namespace kiln::c_interface {
namespace {

// Indexed by kiln_status.
constexpr std::array<const char*, KILN_UNREACHABLE + 1> status_names{
    "ok",        "usage",         "missing_file", "damaged_file", "newer_version", "unsupported",    "not_native",
    "io",        "out_of_memory", "internal",     "untrusted",    "mismatch",      "compile_failed", "timed_out",
    "no_driver", "no_device",     "wrong_device", "device_lost",  "not_built_in",  "not_cached",     "unreachable"};

struct row {
  error_kind kind;
  kiln_status status;
};
constexpr row statuses[] = {
    {error_kind::usage, KILN_USAGE},
    {error_kind::missing_file, KILN_MISSING_FILE},
    {error_kind::truncated, KILN_DAMAGED_FILE},
    {error_kind::corrupted, KILN_DAMAGED_FILE},
    {error_kind::invalid_model, KILN_DAMAGED_FILE},
    {error_kind::newer_version, KILN_NEWER_VERSION},
    {error_kind::unsupported, KILN_UNSUPPORTED},
    {error_kind::not_native, KILN_NOT_NATIVE},
    {error_kind::io, KILN_IO},
    {error_kind::absent, KILN_OUT_OF_MEMORY},
};

// Of fixed size, so that even out-of-memory has room for its message.
thread_local char last_error[1024] = "";

}  // namespace

kiln_status fail(kiln_status status, const char* message) noexcept {
  std::strncpy(last_error, message, sizeof last_error - 1);
  return status;
}

kiln_status fail(const error& e) noexcept {
  if (dynamic_cast<const untrusted_native*>(&e)) return fail(KILN_UNTRUSTED, e.what());
  if (dynamic_cast<const missing_compiler*>(&e)) return fail(KILN_NOT_BUILT_IN, e.what());
  for (const row& r : statuses)
    if (r.kind == e.kind()) return fail(r.status, e.what());
  return fail(KILN_INTERNAL, e.what());
}

}  // namespace kiln::c_interface

extern "C" {

const char* kiln_status_name(kiln_status status) {
  auto i = static_cast<std::size_t>(status);
  return i < kiln::c_interface::status_names.size() ? kiln::c_interface::status_names[i] : "unknown";
}

const char* kiln_last_error(void) { return kiln::c_interface::last_error; }

}  // extern "C"
