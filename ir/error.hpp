// Kiln's exception type. It carries the kind of error and a message that names the cause and the remedy. tools/ turns
// it into exit codes, the C boundary into return codes.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

namespace kiln {

enum class error_kind {
  usage,           // the request makes no sense
  mismatch,        // a verification failed
  missing_file,    // a named file does not exist or cannot be read
  truncated,       // a file ends early
  corrupted,       // bytes do not match their hash or their schema
  newer_version,   // the file was written by a newer Kiln
  invalid_model,   // a model is inconsistent (shape, type, topology)
  unsupported,     // valid, but this Kiln cannot do it
  io,              // a system call for reading or writing failed
  not_native,      // a portable code object cannot run
  compile_failed,  // a code generator failed
  timed_out,       // a compilation or launch exceeded its time limit
  absent,          // a required device or component is not available
  internal,        // an invariant of Kiln is broken: a bug
};

// The kind's name in messages and in JSON, e.g. "truncated".
std::string_view name(error_kind kind);

// The process exit code for an error of this kind (1, 2, 3 or 4; see CLI.md).
int exit_code(error_kind kind);

class error : public std::runtime_error {
 public:
  error(error_kind kind, std::string message) : std::runtime_error(std::move(message)), kind_(kind) {}
  error_kind kind() const { return kind_; }

 private:
  error_kind kind_;
};

}  // namespace kiln
