#include "ir/trust/native_consent.hpp"

namespace kiln {

bool native_consent::trusts(const std::optional<public_key>& signer) const {
  if (allow_unsigned) return true;
  if (!signer) return false;
  return only ? only->contains(*signer) : user && user->trusts(*signer);
}

std::string native_consent::complaint(const std::optional<public_key>& signer) const {
  std::string text = signer ? "is signed by " + to_hex(*signer) + ", which is not trusted" : "is not signed";
  if (signer && !allow_unsigned)
    if (const std::string why = only   ? only->why_not(*signer)
                                : user ? user->trusted().why_not(*signer)
                                       : "";
        !why.empty())
      text = "is signed by " + to_hex(*signer) + ", whose key " + why;
  if (std::string why = only || !user ? std::string() : user->why(); !why.empty()) text += " (" + why + ")";
  return text;
}

}  // namespace kiln
