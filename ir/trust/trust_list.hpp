// Lists of trusted keys, and roots that delegate to such a list. Both are text; a reader of trusted keys takes either.
//
//   kiln-public-key-1 HEX [expires=2027-01-31] [comment]     a key that may sign; the day is its last one, in UTC
//   kiln-revoked-key-1 HEX [comment]                         a key that counts no more, whoever lists it
//
// Blank lines and lines that begin with # are ignored. A root begins with these lines, followed by lines as above:
//
//   kiln-trust-root-1
//   version 3                        grows with every change
//   expires 2027-06-30               the last day on which the root is used
//   threshold 1                      how many of its root keys must sign it
//   root-key HEX [comment]           a key that may sign this root and the next one
//
// and ends with lines `signature HEX HEX` (key, Ed25519 signature) of "Kiln trust root 1\n" and all lines before the
// first of them. A root replaces another one only if its version is higher and both their root keys have signed it: so
// keys can be rotated, and an old root cannot come back. These are the roles root and targets of TUF (The Update
// Framework, 1.0) in one file. Values; any thread. Reading throws error{corrupted, untrusted} that names `file`.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "ir/trust/keys.hpp"

namespace kiln {

std::optional<std::chrono::sys_days> parse_date(std::string_view text);  // "2027-01-31"
std::string date_text(std::chrono::sys_days day);
bool has_passed(std::chrono::sys_days last_day);  // by this machine's clock, in UTC

struct listed_key {
  public_key key{};
  std::optional<std::chrono::sys_days> expires = {};
  std::string comment = {};
};

struct trust_list {
  std::vector<listed_key> keys = {}, revoked = {};
};

struct trust_root {
  std::uint64_t version = 1;
  std::chrono::sys_days expires{};
  std::uint64_t threshold = 1;
  std::vector<listed_key> roots;
  trust_list delegated;
  std::string signed_text;       // what the signatures cover; made by the reader and by text_of
  std::set<public_key> signers;  // of valid signatures, whoever they are
};

// A list that is no root.
trust_list read_list(const std::string& text, const std::string& file);
bool is_root(std::string_view text);
// Reads a root and checks its signatures, but not who made them: require_signed does that.
trust_root read_root(const std::string& text, const std::string& file);
// Throws error{untrusted} unless `threshold` of the root's own keys have signed it.
void require_signed(const trust_root& root, const std::string& file);
// Throws error{untrusted} unless `next` may replace `now`.
void require_successor(const trust_root& now, const trust_root& next, const std::string& file);
// The lines that are to be signed.
std::string text_of(const trust_root& root);
// The line that is appended to `signed_text`.
std::string root_signature(const std::string& signed_text, const signing_key& key);

}  // namespace kiln
