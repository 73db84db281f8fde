#include "ir/trust/trust_list.hpp"

#include <gmock/gmock.h>

#include "ir/error.hpp"
#include "ir/trust/trusted_keys.hpp"

using namespace kiln;
using ::testing::HasSubstr;

namespace {

signing_key key_of_seed(std::uint8_t first) { return signing_key::from_seed({first}); }
public_key half(std::uint8_t first) { return key_of_seed(first).public_half(); }

std::chrono::sys_days day(const char* text) { return parse_date(text).value(); }

void expect_refused(const std::string& text, error_kind kind, const char* words) {
  try {
    trusted_keys::of_text(text, "list");
    ADD_FAILURE() << "accepted, though it should not be: " << words << "\n" << text;
  } catch (const error& e) {
    EXPECT_EQ(e.kind(), kind) << e.what();
    EXPECT_THAT(e.what(), HasSubstr(words));
  }
}

trust_root root_of(std::uint64_t version, std::vector<std::uint8_t> roots, std::uint64_t threshold = 1) {
  trust_root root;
  root.version = version;
  root.expires = day("2999-12-31");
  root.threshold = threshold;
  for (std::uint8_t r : roots) root.roots.push_back({.key = half(r)});
  root.delegated.keys.push_back({.key = half(100), .comment = "farm"});
  return root;
}

std::string signed_by(const trust_root& root, std::vector<std::uint8_t> keys) {
  std::string text = text_of(root);
  const std::string to_sign = text;
  for (std::uint8_t k : keys) text += root_signature(to_sign, key_of_seed(k));
  return text;
}

}  // namespace

TEST(trust_list, days) {
  EXPECT_EQ(date_text(day("2024-02-29")), "2024-02-29");
  for (const char* far : {"0001-01-01", "1969-12-31", "2999-12-31", "9999-12-31"}) EXPECT_EQ(date_text(day(far)), far);
  for (const char* bad : {"", "2023-02-29", "2024-13-01", "2024-00-01", "24-01-01", "2024-1-1", "2024-01-01x",
                          "-024-01-01", "2024/01/01", "2024-01--1"})
    EXPECT_FALSE(parse_date(bad)) << bad;
  EXPECT_TRUE(has_passed(day("2020-01-01")));
  EXPECT_FALSE(has_passed(day("2999-01-01")));
  EXPECT_FALSE(has_passed(std::chrono::floor<std::chrono::days>(std::chrono::system_clock::now())));
}

TEST(trust_list, keys_expire_and_are_revoked) {
  const std::string text = "# a fleet\n\nkiln-public-key-1 " + to_hex(half(1)) + "\r\nkiln-public-key-1 " +
                           to_hex(half(2)) + " expires=2020-01-31 the old farm\nkiln-public-key-1 " + to_hex(half(3)) +
                           " expires=2999-01-31 farm\nkiln-public-key-1 " + to_hex(half(4)) +
                           " a laptop\nkiln-revoked-key-1 " + to_hex(half(4)) + " stolen\n";
  trusted_keys keys = trusted_keys::of_text(text, "list");
  EXPECT_TRUE(keys.contains(half(1)));
  EXPECT_FALSE(keys.contains(half(2)));
  EXPECT_EQ(keys.why_not(half(2)), "expired on 2020-01-31");
  EXPECT_TRUE(keys.contains(half(3)));
  EXPECT_FALSE(keys.contains(half(4)));
  EXPECT_EQ(keys.why_not(half(4)), "was revoked");
  EXPECT_FALSE(keys.contains(half(5)));
  EXPECT_EQ(keys.why_not(half(5)), "");
  keys.insert(half(4));
  EXPECT_FALSE(keys.contains(half(4))) << "a revoked key stays revoked, whoever lists it";
  const trust_list list = read_list(text, "list");
  EXPECT_EQ(list.keys.at(2).comment, "farm");
  expect_refused("kiln-public-key-1 " + to_hex(half(1)) + " expires=soon\n", error_kind::corrupted, "line 1");
  expect_refused("\nkiln-revoked-key-1 00\n", error_kind::corrupted, "line 2");
  expect_refused("kiln-revoked-key-1 " + to_hex(half(1)) + "\n", error_kind::corrupted, "no public key");
}

TEST(trust_list, a_root_delegates) {
  const std::string text = signed_by(root_of(1, {1}), {1});
  EXPECT_TRUE(trusted_keys::of_text(text, "root").contains(half(100)));
  EXPECT_FALSE(trusted_keys::of_text(text, "root").contains(half(1))) << "a root key signs roots, not code";
  EXPECT_EQ(text_of(read_root(text, "root")), text.substr(0, text.find("signature ")));
  // As many signatures of its own root keys as it says, each counted once.
  expect_refused(signed_by(root_of(1, {1}), {}), error_kind::untrusted, "0 of its root keys");
  expect_refused(signed_by(root_of(1, {1}), {2}), error_kind::untrusted, "0 of its root keys");
  expect_refused(signed_by(root_of(1, {1}), {100}), error_kind::untrusted, "0 of its root keys");
  expect_refused(signed_by(root_of(1, {1, 2}, 2), {1, 1}), error_kind::untrusted, "1 of its root keys");
  EXPECT_TRUE(trusted_keys::of_text(signed_by(root_of(1, {1, 2}, 2), {2, 1}), "root").contains(half(100)));
  expect_refused(signed_by(root_of(1, {1, 1}, 2), {1}), error_kind::corrupted, "threshold");
  expect_refused(signed_by(root_of(1, {1}, 0), {1}), error_kind::corrupted, "threshold");
  trust_root old = root_of(1, {1});
  old.expires = day("2020-01-01");
  expect_refused(signed_by(old, {1}), error_kind::untrusted, "expired on 2020-01-01");
}

TEST(trust_list, every_byte_of_a_root_is_signed) {
  const std::string text = signed_by(root_of(7, {1}), {1});
  for (std::size_t at = 0; at < text.size(); ++at)
    for (char bit : {1, 32}) {
      std::string changed = text;
      changed[at] = static_cast<char>(changed[at] ^ bit);
      try {
        const trusted_keys keys = trusted_keys::of_text(changed, "root");
        // Case of hex digits and the last line's end do not matter; the keys are the same.
        EXPECT_TRUE(keys.contains(half(100))) << at;
        EXPECT_GE(at, text.find("signature ")) << changed;
      } catch (const error& e) {
        EXPECT_TRUE(e.kind() == error_kind::corrupted || e.kind() == error_kind::untrusted);
      }
    }
  for (std::size_t size = 0; size + 1 < text.size(); ++size)
    EXPECT_THROW(trusted_keys::of_text(text.substr(0, size), "root"), error) << size;
  expect_refused(text + "kiln-public-key-1 " + to_hex(half(5)) + "\n", error_kind::corrupted, "signature");
}

TEST(trust_list, roots_are_rotated_and_never_come_back) {
  auto read = [](const std::string& text) { return read_root(text, "root"); };
  const trust_root first = read(signed_by(root_of(1, {1}), {1}));
  struct {
    const char* what;
    std::string next;
    bool accepted;
  } rows[] = {
      {"the next version", signed_by(root_of(2, {1}), {1}), true},
      {"a later version", signed_by(root_of(9, {1}), {1}), true},
      {"other root keys, signed by old and new", signed_by(root_of(2, {2}), {1, 2}), true},
      {"the same version", signed_by(root_of(1, {1}), {1}), false},
      {"an older version", signed_by(root_of(0, {1}), {1}), false},
      {"other root keys, signed by them alone", signed_by(root_of(2, {2}), {2}), false},
      {"other root keys, signed by the old ones alone", signed_by(root_of(2, {2}), {1}), false},
      {"not signed", signed_by(root_of(2, {1}), {}), false},
      {"signed by a key that may sign code only", signed_by(root_of(2, {100}), {100}), false},
  };
  for (const auto& row : rows) {
    if (row.accepted) EXPECT_NO_THROW(require_successor(first, read(row.next), "root")) << row.what;
    else EXPECT_THROW(require_successor(first, read(row.next), "root"), error) << row.what;
  }
  // The threshold of the old root counts, too.
  const trust_root two = read(signed_by(root_of(1, {1, 2}, 2), {1, 2}));
  EXPECT_THROW(require_successor(two, read(signed_by(root_of(2, {1}), {1})), "root"), error);
  EXPECT_NO_THROW(require_successor(two, read(signed_by(root_of(2, {1}), {1, 2})), "root"));
}
