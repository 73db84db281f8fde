#include "ir/trust/native_consent.hpp"

namespace kiln {

bool native_consent::trusts(const std::optional<public_key>& signer) const {
  if (allow_unsigned) return true;
  if (!signer) return false;
  return only ? only->contains(*signer) : user && user->trusts(*signer);
}

std::string native_consent::complaint(const std::optional<public_key>& signer) const {
  std::string text = signer ? "is signed by " + to_hex(*signer) + ", which is not trusted" : "is not signed";
  if (std::string why = only || !user ? std::string() : user->why(); !why.empty()) text += " (" + why + ")";
  return text;
}

}  // namespace kiln
