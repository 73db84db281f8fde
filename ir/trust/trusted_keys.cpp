#include "ir/trust/trusted_keys.hpp"

#include "ir/error.hpp"
#include "ir/trust/safe_path.hpp"
#include "ir/trust/trust_list.hpp"

namespace kiln {
namespace {

trusted_keys keys_of_list(const trust_list& list) {
  trusted_keys keys;
  for (const listed_key& k : list.keys) keys.insert(k.key, k.expires);
  for (const listed_key& k : list.revoked) keys.revoke(k.key);
  return keys;
}

}  // namespace

trusted_keys trusted_keys::read(const std::filesystem::path& file) {
  const std::string text = read_trust_text(file);
  // Whoever can change the list or replace it decides whose machine code runs.
  if (std::string why = refuse_path(std::filesystem::absolute(file)); !why.empty())
    throw error(error_kind::untrusted, file.string() + ": this list of trusted keys is not used: it " + why);
  return of_text(text, file.string());
}

std::string trusted_keys::why_not(const public_key& key) const {
  if (revoked_.contains(key)) return "was revoked";
  const auto found = keys_.find(key);
  if (found != keys_.end() && found->second && has_passed(*found->second))
    return "expired on " + date_text(*found->second);
  return {};
}

trusted_keys trusted_keys::of_text(const std::string& text, const std::string& file) {
  if (is_root(text)) {
    const trust_root root = read_root(text, file);
    require_signed(root, file);
    if (has_passed(root.expires))
      throw error(error_kind::untrusted, file + ": this root of trust expired on " + date_text(root.expires) +
                                             "; get a newer one (kiln trust update)");
    return keys_of_list(root.delegated);
  }
  return keys_of_list(read_list(text, file));
}

}  // namespace kiln
