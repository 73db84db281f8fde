// The table of error kinds. docs/errors.md shows it, and a test compares the two.
#pragma once

#include <array>
#include <string_view>

#include "ir/error.hpp"
#include "ir/sequence_errors.hpp"

namespace kiln {

struct error_kind_row {
  error_kind kind;
  std::string_view name;
  int exit_code;            // docs/errors.md tells what each means
  std::string_view status;  // of the C interface, as kiln_status_name() spells it
  std::string_view meaning;
};

inline constexpr std::array<error_kind_row, 25> error_kinds{{
    {error_kind::usage, "usage", 2, "usage", "The caller asked for something that makes no sense."},
    {error_kind::mismatch, "mismatch", 1, "mismatch", "What was checked does not hold."},
    {error_kind::missing_file, "missing_file", 3, "missing_file", "A named file is not there or cannot be read."},
    {error_kind::truncated, "truncated", 3, "damaged_file", "A file ends before its contents do."},
    {error_kind::corrupted, "corrupted", 3, "damaged_file", "Bytes do not match their hash or their schema."},
    {error_kind::newer_version, "newer_version", 3, "newer_version", "A newer Kiln wrote the file."},
    {error_kind::invalid_model, "invalid_model", 3, "damaged_file",
     "A model breaks its own rules (shapes, types, topology)."},
    {error_kind::unsupported, "unsupported", 3, "unsupported", "Valid, but nothing that this Kiln can do."},
    {error_kind::untrusted, "untrusted", 3, "untrusted",
     "No trusted key has signed the native code or the HIP kernels of custom operators."},
    {error_kind::io, "io", 3, "io", "The operating system refused to read or write."},
    {error_kind::not_native, "not_native", 4, "not_native", "A kernel that is not finalized was asked to run."},
    {error_kind::compile_failed, "compile_failed", 4, "compile_failed",
     "A code generator, or the compiler of a driver, gave up."},
    {error_kind::timed_out, "timed_out", 4, "timed_out", "Work ran past its time limit."},
    {error_kind::out_of_memory, "out_of_memory", 4, "out_of_memory",
     "Memory of the host or of a device is used up, or the system starts no more threads."},
    {error_kind::no_driver, "no_driver", 4, "no_driver", "The GPU's driver is not installed or does not work."},
    {error_kind::no_device, "no_device", 4, "no_device", "The driver works, but has no such device."},
    {error_kind::wrong_device, "wrong_device", 4, "wrong_device", "The device is here, but cannot run this code."},
    {error_kind::device_lost, "device_lost", 4, "device_lost",
     "The device stopped working, or another process holds it."},
    {error_kind::not_built_in, "not_built_in", 4, "not_built_in",
     "This build or process lacks a component, such as the compiler."},
    {error_kind::not_cached, "not_cached", 4, "not_cached",
     "Only cached kernels were allowed, and one is not in the cache."},
    {error_kind::unreachable, "unreachable", 4, "unreachable", "A server does not answer."},
    {error_kind::internal, "internal", 4, "internal", "A broken invariant of Kiln itself."},
    {invalid_shape, "invalid_shape", 5, "invalid_shape",
     "A size is outside of its range, contradicts another input, or breaks a rule of the model; or an input has "
     "another "
     "rank or type."},
    {invalid_sequence, "invalid_sequence", 6, "invalid_sequence",
     "A language model was given an id outside of its vocabulary, an empty prompt, or a mask that contradicts the "
     "prompt."},
    {context_full, "context_full", 6, "context_full",
     "A sequence has no room for more ids: the context or the positions of the language model are used up."},
}};

// Rows are indexed by their kind.
static_assert([] {
  for (std::size_t i = 0; i < error_kinds.size(); ++i)
    if (error_kinds[i].kind != static_cast<error_kind>(i)) return false;
  return error_kinds.back().kind == context_full;
}());

}  // namespace kiln
