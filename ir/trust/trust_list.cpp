#include "ir/trust/trust_list.hpp"

#include <algorithm>
#include <array>

#include "ir/error.hpp"
#include "ir/trust/text_lines.hpp"

namespace kiln {
namespace {

constexpr std::string_view root_label = "kiln-trust-root-1", key_label = "kiln-public-key-1",
                           revoked_label = "kiln-revoked-key-1", root_key_label = "root-key",
                           expires_label = "expires=", domain = "Kiln trust root 1\n";

// "HEX [expires=DATE] [comment]", after the label.
std::optional<listed_key> parse_key(std::string_view rest) {
  listed_key result;
  const auto key = key_of_hex(take_word(rest));
  if (!key) return std::nullopt;
  result.key = *key;
  std::string_view after = rest;
  if (const std::string_view word = take_word(after); word.starts_with(expires_label)) {
    result.expires = parse_date(word.substr(expires_label.size()));
    if (!result.expires) return std::nullopt;
    rest = after;
  }
  rest.remove_prefix(std::min(rest.find_first_not_of(" \t"), rest.size()));
  result.comment = rest;
  return result;
}

// The lines of a text with their numbers, without blank ones and comments.
struct numbered_lines {
  std::vector<std::pair<int, std::string_view>> lines;
  explicit numbered_lines(std::string_view text) {
    for (int number = 1; !text.empty(); ++number) {
      std::string_view line = text.substr(0, text.find('\n'));
      text.remove_prefix(std::min(line.size() + 1, text.size()));
      if (line.ends_with('\r')) line.remove_suffix(1);
      if (line.find_first_not_of(" \t") != std::string_view::npos && !line.starts_with('#'))
        lines.emplace_back(number, line);
    }
  }
};

[[noreturn]] void refuse_line(const std::string& file, int number, const char* what) {
  throw error(error_kind::corrupted, file + ": line " + std::to_string(number) + " is not " + what);
}

// Takes the line if it is one of a list.
bool take_list_line(trust_list& list, std::string_view line, const std::string& file, int number) {
  const std::string_view label = take_word(line);
  if (label != key_label && label != revoked_label) return false;
  const auto key = parse_key(line);
  if (!key) refuse_line(file, number, "a public key");
  (label == key_label ? list.keys : list.revoked).push_back(*key);
  return true;
}

std::size_t count_signers(const trust_root& by, const trust_root& of) {
  std::set<public_key> found;
  for (const listed_key& k : by.roots)
    if (of.signers.contains(k.key)) found.insert(k.key);
  return found.size();
}

// Reads "LABEL VALUE", which must come next.
template <class Value>
Value read_field(const numbered_lines& all, std::size_t& at, std::string_view label, const char* what,
                 const std::string& file, std::optional<Value> (*parse)(std::string_view)) {
  if (at == all.lines.size()) throw error(error_kind::corrupted, file + ": ends before its " + std::string(label));
  auto [number, line] = all.lines[at++];
  const bool labelled = take_word(line) == label;
  const auto value = parse(take_word(line));
  if (!labelled || !value || !take_word(line).empty()) refuse_line(file, number, what);
  return *value;
}

}  // namespace

std::optional<std::chrono::sys_days> parse_date(std::string_view text) {
  if (text.size() != 10 || text[4] != '-' || text[7] != '-') return std::nullopt;
  const auto year = parse_number<unsigned>(text.substr(0, 4)), month = parse_number<unsigned>(text.substr(5, 2)),
             day = parse_number<unsigned>(text.substr(8));
  if (!year || !month || !day) return std::nullopt;
  const std::chrono::year_month_day date{std::chrono::year(static_cast<int>(*year)), std::chrono::month(*month),
                                         std::chrono::day(*day)};
  if (!date.ok()) return std::nullopt;
  return std::chrono::sys_days(date);
}

std::string date_text(std::chrono::sys_days day) {
  const std::chrono::year_month_day date(day);
  auto digits = [](unsigned number, std::size_t count) {
    const std::string text = std::to_string(number);
    return std::string(count - std::min(count, text.size()), '0') + text;
  };
  return digits(static_cast<unsigned>(static_cast<int>(date.year())), 4) + "-" +
         digits(static_cast<unsigned>(date.month()), 2) + "-" + digits(static_cast<unsigned>(date.day()), 2);
}

bool has_passed(std::chrono::sys_days last_day) {
  return std::chrono::floor<std::chrono::days>(std::chrono::system_clock::now()) > last_day;
}

trust_list read_list(const std::string& text, const std::string& file) {
  trust_list list;
  for (auto [number, line] : numbered_lines(text).lines)
    if (!take_list_line(list, line, file, number)) refuse_line(file, number, "a public key");
  if (list.keys.empty()) throw error(error_kind::corrupted, file + ": contains no public key");
  return list;
}

bool is_root(std::string_view text) {
  const numbered_lines all(text.substr(0, text.find(root_label) == std::string_view::npos ? 0 : text.size()));
  return !all.lines.empty() && all.lines.front().second == root_label;
}

trust_root read_root(const std::string& text, const std::string& file) {
  if (!is_root(text)) throw error(error_kind::corrupted, file + ": is no root of trust");
  trust_root root;
  // A signature covers the bytes before the first line of signatures.
  std::size_t end = text.find("\nsignature ");
  end = end == std::string::npos ? text.size() : end + 1;
  root.signed_text = text.substr(0, end);
  const numbered_lines all(root.signed_text), signatures(std::string_view(text).substr(end));
  std::size_t at = 1;
  root.version = read_field<std::uint64_t>(all, at, "version", "a version", file, parse_number<std::uint64_t>);
  root.expires = read_field<std::chrono::sys_days>(all, at, "expires", "a day of expiry", file, parse_date);
  root.threshold = read_field<std::uint64_t>(all, at, "threshold", "a threshold", file, parse_number<std::uint64_t>);
  std::set<public_key> distinct;
  for (; at < all.lines.size(); ++at) {
    auto [number, line] = all.lines[at];
    if (take_list_line(root.delegated, line, file, number)) continue;
    if (take_word(line) != root_key_label) refuse_line(file, number, "one of a root of trust");
    const auto key = parse_key(line);
    if (!key || key->expires) refuse_line(file, number, "a root key");
    root.roots.push_back(*key);
    distinct.insert(key->key);
  }
  if (root.threshold == 0 || root.threshold > distinct.size())
    throw error(error_kind::corrupted, file + ": its threshold does not fit its root keys");
  for (auto [number, line] : signatures.lines) {
    const auto signer = signer_of_line(domain, root.signed_text, line);
    if (!signer) refuse_line(file, number, "a signature of this root");
    root.signers.insert(*signer);
  }
  return root;
}

void require_signed(const trust_root& root, const std::string& file) {
  if (const std::size_t have = count_signers(root, root); have < root.threshold)
    throw error(error_kind::untrusted, file + ": " + std::to_string(have) +
                                           " of its root keys have signed this root, and " +
                                           std::to_string(root.threshold) + " must (kiln trust sign)");
}

void require_successor(const trust_root& now, const trust_root& next, const std::string& file) {
  require_signed(next, file);
  if (next.version <= now.version)
    throw error(error_kind::untrusted, file + ": has version " + std::to_string(next.version) +
                                           ", and the root that is there has version " + std::to_string(now.version));
  if (const std::size_t have = count_signers(now, next); have < now.threshold)
    throw error(error_kind::untrusted, file + ": " + std::to_string(have) +
                                           " root keys of the root that is there have signed it, and " +
                                           std::to_string(now.threshold) + " must");
}

std::string text_of(const trust_root& root) {
  std::string text = std::string(root_label) + "\nversion " + std::to_string(root.version) + "\nexpires " +
                     date_text(root.expires) + "\nthreshold " + std::to_string(root.threshold) + "\n";
  auto add = [&](std::string_view label, const std::vector<listed_key>& keys) {
    for (const listed_key& k : keys)
      text += std::string(label) + " " + to_hex(k.key) +
              (k.expires ? " " + std::string(expires_label) + date_text(*k.expires) : "") +
              (k.comment.empty() ? "" : " " + k.comment) + "\n";
  };
  add(root_key_label, root.roots);
  add(key_label, root.delegated.keys);
  add(revoked_label, root.delegated.revoked);
  return text;
}

std::string root_signature(const std::string& signed_text, const signing_key& key) {
  return signature_line(domain, signed_text, key);
}

}  // namespace kiln
