// Native code that other users place in the cache's folders must not be found without consent.
#include <gmock/gmock.h>
#include <sys/stat.h>

#include "fixtures.hpp"
#include "ir/container/container.hpp"

using namespace kiln;
using namespace kiln::testing;
using ::testing::HasSubstr;

namespace {

signing_key key_of_seed(std::uint8_t first) { return signing_key::from_seed({first}); }
std::string name_of(int n) { return entry_file_name(key_number(n).hash(), entry_kind::kernel); }
std::vector<std::byte> entry_of(int n) { return encode_kernel_entry(key_number(n).fields(), payload_number(n)); }

// A user's keys: the user's own key, and that of key_of_seed(1) in the list of trusted keys.
std::shared_ptr<user_keys> user_in(const std::filesystem::path& folder) {
  auto keys = std::make_shared<user_keys>(folder);
  keys->own();
  std::ofstream(folder / "trusted_keys") << key_of_seed(1).public_text();
  ::chmod((folder / "trusted_keys").c_str(), 0644);
  return std::make_shared<user_keys>(folder);
}

void make_layer(const std::filesystem::path& folder) {
  auto cache = kernel_cache::open({folder});
  cache->store(key_number(1), payload_number(1));
  cache->store_raw(key_number(1), payload_number(1));
}

}  // namespace

TEST(consent, a_layer_that_others_can_change_is_not_used) {
  scratch_folder scratch;
  make_layer(scratch / "above/layer");
  ::chmod((scratch / "above").c_str(), 0755);
  std::filesystem::create_symlink(scratch / "above/layer", scratch / "link");
  auto expect = [&](const std::filesystem::path& layer, const std::string& why, const cache_options& more = {}) {
    warnings said;
    cache_options options = more;
    options.read_only_layers = {layer};
    options.warn = said.sink();
    auto cache = kernel_cache::open(options);
    EXPECT_EQ(cache->find(key_number(1)).has_value(), why.empty()) << why;
    EXPECT_EQ(cache->find_mapped(key_number(1)).has_value(), why.empty()) << why;
    EXPECT_EQ(cache->layers().size(), why.empty() ? 1u : 0u);
    ASSERT_EQ(said.lines.size(), why.empty() ? 0u : 1u) << said.lines[0];
    if (!why.empty()) {
      EXPECT_THAT(said.lines[0], HasSubstr(why));
    }
  };
  expect(scratch / "above/layer", "");
  expect(scratch / "link", "");
  struct row {
    const char* at;
    mode_t mode, back;
    const char* why;
  };
  for (const row& r : {row{"above/layer", 0770, 0700, "writable by its group"},
                       row{"above/layer", 0707, 0700, "writable by everybody"},
                       row{"above", 0777, 0755, "which is writable by everybody"},
                       row{"above", 0775, 0755, "which is writable by its group"}})
    for (const char* way : {"above/layer", "link"}) {
      ::chmod((scratch / r.at).c_str(), r.mode);
      expect(scratch / way, r.why);
      ::chmod((scratch / r.at).c_str(), r.back);
    }
  expect(scratch / "none", "cannot be examined");
  if (::geteuid() != 0) GTEST_SKIP() << "skipped: only root can give a folder to another user";
  for (const char* at : {"above/layer", "above"}) {
    ASSERT_EQ(::chown((scratch / at).c_str(), 12345, 12345), 0);
    expect(scratch / "above/layer", "belongs to another user");
    expect(scratch / "above/layer", "belongs to another user", {.consent = {.allow_unsigned = true}});
    ASSERT_EQ(::chown((scratch / at).c_str(), 0, 0), 0);
  }
  ASSERT_EQ(::lchown((scratch / "link").c_str(), 12345, 12345), 0);
  expect(scratch / "link", "link that belongs to another user");
}

TEST(consent, an_entry_that_others_can_change_is_not_used) {
  scratch_folder scratch;
  for (const char* place : {"own", "layer"}) {
    make_layer(scratch / place);
    make_layer(scratch / "outside");
    const auto entry = scratch / place / name_of(1),
               prepared = scratch / place / entry_file_name(key_number(1).hash(), entry_kind::prepared);
    auto expect = [&](bool found, const char* what) {
      warnings said;
      cache_options options{.warn = said.sink()};
      if (std::string(place) == "own") options.folder = scratch / place;
      else options.read_only_layers = {scratch / place};
      auto cache = kernel_cache::open(options);
      EXPECT_EQ(cache->find(key_number(1)).has_value(), found) << place << " " << what;
      EXPECT_EQ(cache->find_mapped(key_number(1)).has_value(), found) << place << " " << what;
      EXPECT_EQ(said.lines.size(), found ? 0u : 1u) << place << " " << what;
    };
    expect(true, "as it was made");
    for (mode_t mode : {0660, 0606, 0666}) {
      for (const auto& file : {entry, prepared}) ::chmod(file.c_str(), mode);
      expect(false, "its mode");
    }
    for (const auto& file : {entry, prepared}) ::chmod(file.c_str(), 0644);
    expect(true, "others may read");
    if (::geteuid() == 0) {
      for (const auto& file : {entry, prepared}) ASSERT_EQ(::chown(file.c_str(), 12345, 12345), 0);
      expect(false, "its owner");
      // The same through a hard link: the owner of the file counts, not that of the name.
      for (const auto& file : {entry, prepared}) {
        std::filesystem::create_hard_link(file, scratch / "kept");
        std::filesystem::remove(file);
        std::filesystem::create_hard_link(scratch / "kept", file);
        std::filesystem::remove(scratch / "kept");
      }
      expect(false, "a hard link to another user's file");
    }
    for (const auto& file : {entry, prepared}) {
      std::filesystem::remove(file);
      std::filesystem::create_symlink(scratch / "outside" / file.filename(), file);
    }
    expect(false, "a symbolic link");
  }
}

TEST(consent, the_own_folder_has_safe_parents) {
  scratch_folder scratch;
  std::filesystem::create_directories(scratch / "above/below");
  auto usable = [&] {
    return kernel_cache::open({.folder = scratch / "above/below/cache", .warn = [](const std::string&) {}})->writable();
  };
  ::chmod((scratch / "above/below").c_str(), 0755);
  for (auto [mode, good] : {std::pair<mode_t, bool>{0775, false}, {0777, false}, {01777, true}, {0755, true}}) {
    ::chmod((scratch / "above").c_str(), mode);
    EXPECT_EQ(usable(), good) << mode;
  }
  if (::geteuid() != 0) GTEST_SKIP() << "skipped: only root can give a folder to another user";
  ASSERT_EQ(::chown((scratch / "above").c_str(), 12345, 12345), 0);
  EXPECT_FALSE(usable());
}

// The rules for the signer are the same for an embedded and a remote entry.
TEST(consent, embedded_and_remote_entries_need_a_trusted_signature) {
  scratch_folder scratch;
  auto user = user_in(scratch / "config");
  const signing_key own = *user->own(), farm = key_of_seed(1), stranger = key_of_seed(2);
  program p;
  p.main().set_outputs({p.main().add_parameter("x", {element_type::f32, {2}})}, {"y"});
  struct row {
    const char* what;
    std::vector<std::byte> entry;
    bool found;
  };
  auto moved = signed_entry(entry_of(2), own), patched = signed_entry(entry_of(1), own), borrowed = entry_of(1);
  patched[patched.size() - signature_bytes - 1] ^= std::byte{1};
  borrowed.insert(borrowed.end(), moved.end() - signature_bytes, moved.end());
  auto relabelled = signed_entry(entry_of(1), stranger);
  std::copy_n(reinterpret_cast<const std::byte*>(own.public_half().data()), 32, relabelled.end() - 96);
  const std::vector<row> rows{{"signed by nobody", entry_of(1), false},
                              {"signed by a stranger", signed_entry(entry_of(1), stranger), false},
                              {"a stranger's signature under the user's name", relabelled, false},
                              {"signed by the user", signed_entry(entry_of(1), own), true},
                              {"signed by the farm", signed_entry(entry_of(1), farm), true},
                              {"the user's entry of another key", moved, false},
                              {"the user's signature of another entry", borrowed, false},
                              {"other code under the user's signature", patched, false},
                              {"cut short", std::vector(moved.begin(), moved.begin() + 150), false}};
  for (const row& r : rows) {
    write_options options;
    options.extras.objects.push_back({key_number(1).hash(), {}, r.entry});
    write_program(p, scratch / "m.kiln", options);
    auto remote = std::make_shared<memory_layer>();
    remote->entries[name_of(1)] = r.entry;
    warnings said;
    const cache_options embedded{
        .warn = said.sink(), .embedded = embedded_entries::read(scratch / "m.kiln"), .consent = {.user = user}};
    EXPECT_EQ(kernel_cache::open(embedded)->find(key_number(1)).has_value(), r.found) << "embedded: " << r.what;
    const cache_options over_network{
        .folder = scratch / "own", .warn = said.sink(), .remote = remote, .consent = {.user = user}};
    auto cache = kernel_cache::open(over_network);
    EXPECT_EQ(cache->find(key_number(1)).has_value(), r.found) << "remote: " << r.what;
    EXPECT_EQ(std::filesystem::exists(scratch / "own" / name_of(1)), r.found) << "copied to the own folder: " << r.what;
    EXPECT_EQ(said.lines.size(), r.found ? 0u : 2u) << r.what;
    std::filesystem::remove(scratch / "own" / name_of(1));
    EXPECT_EQ(kernel_cache::open({.folder = scratch / "own", .warn = said.sink(), .consent = {.user = user}})
                  ->adopt(key_number(1), r.entry, "archive"),
              r.found)
        << r.what;
    std::filesystem::remove(scratch / "own" / name_of(1));
  }
  // Trusts these keys and no others.
  auto remote = std::make_shared<memory_layer>();
  remote->entries[name_of(1)] = signed_entry(entry_of(1), own);
  const native_consent farm_only{.only = trusted_keys({farm.public_half()}), .user = user};
  EXPECT_FALSE(kernel_cache::open({.warn = [](const std::string&) {}, .remote = remote, .consent = farm_only})
                   ->find(key_number(1)));
  remote->entries[name_of(1)] = signed_entry(entry_of(1), farm);
  EXPECT_TRUE(kernel_cache::open({.remote = remote, .consent = farm_only})->find(key_number(1)));
  // With consent, unsigned entries are used, but corrupt ones are not.
  remote->entries[name_of(1)] = entry_of(1);
  EXPECT_TRUE(kernel_cache::open({.remote = remote, .consent = {.allow_unsigned = true}})->find(key_number(1)));
  remote->entries[name_of(1)] = patched;
  EXPECT_FALSE(
      kernel_cache::open({.warn = [](const std::string&) {}, .remote = remote, .consent = {.allow_unsigned = true}})
          ->find(key_number(1)));
}

TEST(consent, what_this_user_stores_is_signed_and_needs_no_setting_up) {
  scratch_folder scratch;
  auto user = std::make_shared<user_keys>(scratch / "config");
  auto remote = std::make_shared<memory_layer>();
  auto cache = kernel_cache::open({.folder = scratch / "own", .remote = remote, .consent = {.user = user}});
  cache->store(key_number(1), payload_number(1));
  EXPECT_EQ(cache->find(key_number(1)), payload_number(1));
  auto entry = read_bytes(scratch / "own" / name_of(1));
  EXPECT_EQ(signer_of(entry, entry.size() - signature_bytes), user->own()->public_half());
  auto other_machine =
      kernel_cache::open({.remote = remote, .consent = {.user = std::make_shared<user_keys>(scratch / "config")}});
  EXPECT_EQ(other_machine->find(key_number(1)), payload_number(1));
  // The user's own key is tried first.
  kernel_cache::open({.folder = scratch / "own", .sign_with = key_of_seed(1), .consent = {.user = user}})
      ->store(key_number(2), payload_number(2));
  entry = read_bytes(scratch / "own" / name_of(2));
  EXPECT_EQ(signer_of(entry, entry.size() - signature_bytes), key_of_seed(1).public_half());
  // Without keys, everything works unsigned.
  auto keyless =
      kernel_cache::open({.folder = scratch / "own", .consent = {.user = std::make_shared<user_keys>("/proc/kiln")}});
  keyless->store(key_number(3), payload_number(3));
  EXPECT_EQ(keyless->find(key_number(3)), payload_number(3));
  EXPECT_EQ(keyless->counters().errors, 0u);
}

// A user with write access to a signed layer changes an entry after it was verified.
TEST(consent, what_was_verified_does_not_change) {
  scratch_folder scratch;
  kernel_cache::open({.folder = scratch / "layer", .sign_with = key_of_seed(1)})
      ->store(key_number(1), payload_number(1));
  auto head = encode_prepared_head(key_number(1).fields(), payload_number(1, 5000));
  auto raw = payload_number(1, 5000);
  head.insert(head.end(), raw.begin(), raw.end());
  const auto file = scratch / "layer" / entry_file_name(key_number(1).hash(), entry_kind::prepared);
  write_bytes(file, signed_entry(head, key_of_seed(1)));
  auto cache = kernel_cache::open(
      {.read_only_layers = {scratch / "layer"}, .consent = {.only = trusted_keys({key_of_seed(1).public_half()})}});
  auto found = cache->find_mapped(key_number(1));
  ASSERT_TRUE(found);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(found->bytes.data()) % 64, 0u);
  std::filesystem::resize_file(file, 0);
  std::filesystem::resize_file(file, 20000);
  EXPECT_TRUE(std::ranges::equal(found->bytes, raw));
}
