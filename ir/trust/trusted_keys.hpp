// The keys that may sign native code, from a list or from a root (trust_list.hpp). A value; any thread. Reading throws
// error{missing_file, corrupted, untrusted}.
#pragma once

#include <chrono>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "ir/trust/keys.hpp"

namespace kiln {

class trusted_keys {
 public:
  // Reads a list or a root (trust_list.hpp). Refuses a file that others than this user and root can change or replace
  // (safe_path.hpp), and a root that has expired.
  static trusted_keys read(const std::filesystem::path& file);
  static trusted_keys of_text(const std::string& text, const std::string& file);
  explicit trusted_keys(const std::set<public_key>& keys = {}) {
    for (const public_key& key : keys) insert(key);
  }
  // Whether the key is listed, has not expired and is not revoked.
  bool contains(const public_key& key) const { return listed(key) && why_not(key).empty(); }
  bool listed(const public_key& key) const { return keys_.contains(key); }
  // "expired on 2027-01-31" or "was revoked"; "" for other keys.
  std::string why_not(const public_key& key) const;
  void insert(const public_key& key, std::optional<std::chrono::sys_days> expires = {}) { keys_[key] = expires; }
  void revoke(const public_key& key) { revoked_.insert(key); }

 private:
  std::map<public_key, std::optional<std::chrono::sys_days>> keys_;  // the last day on which the key counts
  std::set<public_key> revoked_;                                     // whoever lists them
};

}  // namespace kiln
