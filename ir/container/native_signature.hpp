// The signature of native code that lies in a file already (signed_native.hpp): who made it, and making it anew.
#pragma once

#include <filesystem>
#include <optional>

#include "ir/trust/keys.hpp"

namespace kiln {

struct native_signature {
  bool native = false;  // whether the program has native code objects
  std::optional<public_key> signer = {};
};

// Verifies the file and its signature. Throws what read_program throws, except that any signer will do.
native_signature read_native_signature(const std::filesystem::path& file);

// Signs the native code of a file and replaces the file, if it has any. Returns whether it has. Everything else is
// copied byte for byte.
bool sign_native_code(const std::filesystem::path& file, const signing_key& key);

}  // namespace kiln
