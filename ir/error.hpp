// The one exception type of Kiln: what kind of thing went wrong, which thing, and what to do about it.
// Thrown inside; turned into exit codes by tools/ and into return codes at the C boundary.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

namespace kiln {

enum class error_kind {
  usage,           // the caller asked for something that makes no sense
  mismatch,        // what was checked does not hold
  missing_file,    // a named file is not there or cannot be read
  truncated,       // a file ends before its contents do
  corrupted,       // bytes do not match their hash or their schema
  newer_version,   // written by a Kiln that knows more than this one
  invalid_model,   // a model breaks its own rules (shape, type, topology)
  unsupported,     // valid, but not something that this Kiln can do
  io,              // the operating system refused a read or write
  not_native,      // a portable code object was asked to run
  compile_failed,  // a code generator gave up
  timed_out,       // a compile or a launch ran past its limit
  absent,          // a device or component that is needed is not here
  internal,        // a broken invariant of ours
};

// The kind's name as it is printed and as it appears in JSON, e.g. "truncated".
std::string_view name(error_kind kind);

// The process exit code of CLI.md for an error of this kind (1, 2, 3 or 4).
int exit_code(error_kind kind);

class error : public std::runtime_error {
 public:
  error(error_kind kind, std::string message) : std::runtime_error(std::move(message)), kind_(kind) {}
  error_kind kind() const { return kind_; }

 private:
  error_kind kind_;
};

}  // namespace kiln
