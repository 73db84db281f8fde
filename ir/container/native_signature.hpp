// The signature of code in a file that needs consent (signed_native.hpp), native code and HIP kernels of custom
// operators: who made it, and making it anew.
#pragma once

#include <filesystem>
#include <optional>

#include "ir/container/container.hpp"
#include "ir/trust/keys.hpp"

namespace kiln {

struct native_consent;

struct native_signature {
  bool native = false;  // whether the program has code that needs consent
  std::optional<public_key> signer = {};
};

// Verifies the file and its signature. Throws what read_program throws, except that any signer will do.
native_signature read_native_signature(const std::filesystem::path& file);

// The form of a decoder that updates its caches in place, as read_steps(file) gives it, where `consent` trusts who
// signed its custom operators.
std::optional<program> read_steps(const std::filesystem::path& file, const native_consent& consent,
                                  weight_check check = weight_check::at_once);

// Signs the code of a file that needs consent and replaces the file, if it has any. Returns whether it has. Everything
// else is copied byte for byte.
bool sign_native_code(const std::filesystem::path& file, const signing_key& key);

}  // namespace kiln
