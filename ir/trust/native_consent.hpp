// Whether native code that comes from outside may run: that of a `.kiln` file (ir/container), and of cache entries
// (jit/cache). It may where a trusted key has signed it, or where the caller has said that nobody needs to. A value;
// any thread.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "ir/error.hpp"
#include "ir/trust/keys.hpp"
#include "ir/trust/user_keys.hpp"

namespace kiln {

struct native_consent {
  std::optional<trusted_keys> only = {};      // these keys and no others
  std::shared_ptr<user_keys> user = nullptr;  // otherwise those of this user; null: nobody
  bool allow_unsigned = false;                // whatever it is

  bool trusts(const std::optional<public_key>& signer) const;
  // What is wrong with this signer: "is not signed", "is signed by HEX, which is not trusted", and why the user's keys
  // could not be read.
  std::string complaint(const std::optional<public_key>& signer) const;
};

// The kind is error_kind::unsupported.
class untrusted_native : public error {
 public:
  explicit untrusted_native(std::string message) : error(error_kind::unsupported, std::move(message)) {}
};

}  // namespace kiln
