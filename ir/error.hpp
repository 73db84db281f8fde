// The one exception type of Kiln: what kind of thing went wrong, which thing, and what to do about it. The message
// reads "THING: what is wrong; what to do". Thrown inside; tools/ turns it into an exit code, the C interface into a
// status (ir/error_kinds.hpp).
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
  newer_version,   // written by a Kiln that knows more than this one
  invalid_model,   // a model breaks its own rules (shape, type, topology)
  unsupported,     // valid, but not something that this Kiln can do
  untrusted,       // native code that no trusted key has signed
  io,              // the operating system refused a read or write
  not_native,      // a portable code object was asked to run
  compile_failed,  // a code generator gave up
  timed_out,       // a compile or a launch ran past its limit
  out_of_memory,   // memory of the host or of a device, or another resource of the system, is used up
  no_driver,       // the driver of a GPU is not installed or does not work
  no_device,       // the driver works, and has no such device
  wrong_device,    // the device is here, and cannot run this code
  device_lost,     // the device stopped working, or another process holds it
  not_built_in,    // this build or process lacks a component, such as the compiler
  not_cached,      // only cached kernels were allowed, and one is missing
  unreachable,     // a server does not answer
  internal,        // a broken invariant of ours
};

// The kind's name in messages and in JSON, e.g. "truncated".
std::string_view name(error_kind kind);

// The exit code of a process that ends with an error of this kind: 1, 2, 3 or 4.
int exit_code(error_kind kind);
// The inverse of name(); `internal` for a name that no kind has.
error_kind error_kind_named(std::string_view name);

class error : public std::runtime_error {
 public:
  error(error_kind kind, std::string message) : std::runtime_error(std::move(message)), kind_(kind) {}
  error_kind kind() const { return kind_; }

 private:
  error_kind kind_;
};

}  // namespace kiln
