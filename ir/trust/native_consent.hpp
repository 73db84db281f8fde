// Decides whether native code from a `.kiln` file (ir/container) or from a cache entry (jit/cache) may run. It may run
// if a trusted key has signed it or if the caller allows unsigned code. A value; any thread.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "ir/trust/trusted_keys.hpp"
#include "ir/trust/user_keys.hpp"

namespace kiln {

struct native_consent {
  std::optional<trusted_keys> only = {};      // trust only these keys
  std::shared_ptr<user_keys> user = nullptr;  // if `only` is not set: trust this user's keys; null: trust nobody
  bool allow_unsigned = false;                // trust everything

  bool trusts(const std::optional<public_key>& signer) const;
  // Explains why the signer is not trusted: "is not signed" or "is signed by HEX, which is not trusted", and why the
  // user's keys could not be read.
  std::string complaint(const std::optional<public_key>& signer) const;
};

}  // namespace kiln
