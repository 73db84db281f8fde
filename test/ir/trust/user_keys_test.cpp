#include "ir/trust/user_keys.hpp"

#include <gmock/gmock.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>

#include "ir/trust/native_consent.hpp"
#include "test/support/scratch_folder.hpp"

using namespace kiln;
using namespace kiln::testing;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

namespace {

unsigned mode_of(const std::filesystem::path& path) {
  struct stat s{};
  return ::stat(path.c_str(), &s) == 0 ? s.st_mode & 07777u : 0;
}

void write_text(const std::filesystem::path& file, const std::string& text) {
  write_bytes(file, std::as_bytes(std::span(text.data(), text.size())));
}

std::size_t files_in(const std::filesystem::path& folder) {
  return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(folder), {}));
}

}  // namespace

TEST(user_keys, the_own_key_is_made_when_it_is_needed) {
  scratch_folder scratch;
  const auto folder = scratch / "config/kiln";
  user_keys keys(folder);
  EXPECT_FALSE(keys.trusts(signing_key::generate().public_half()));
  EXPECT_FALSE(std::filesystem::exists(scratch / "config")) << "looking makes nothing";
  const signing_key* own = keys.own();
  ASSERT_NE(own, nullptr) << keys.why();
  EXPECT_TRUE(keys.trusts(own->public_half()));
  EXPECT_EQ(mode_of(folder), 0700u);
  EXPECT_EQ(mode_of(folder / "key"), 0600u);
  EXPECT_EQ(files_in(folder), 2u) << "no temporaries stay";
  EXPECT_TRUE(trusted_keys::read(folder / "key.pub").contains(own->public_half()));
  user_keys again(folder);
  EXPECT_TRUE(again.trusts(own->public_half()));
  EXPECT_EQ(again.own()->public_half(), own->public_half());
  EXPECT_THAT(again.why(), IsEmpty());
}

TEST(user_keys, those_who_make_it_at_once_get_the_same) {
  scratch_folder scratch;
  for (int round = 0; round < 20; ++round) {
    const auto folder = scratch / ("config" + std::to_string(round));
    int ends[2];
    ASSERT_EQ(::pipe(ends), 0);
    std::vector<pid_t> children;
    for (int i = 0; i < 8; ++i) {
      pid_t child = ::fork();
      if (child == 0) {
        user_keys keys(folder);
        const signing_key* own = keys.own();
        public_key key = own ? own->public_half() : public_key{};
        ::_exit(::write(ends[1], key.data(), key.size()) == static_cast<ssize_t>(key.size()) ? 0 : 1);
      }
      children.push_back(child);
    }
    for (pid_t child : children) ::waitpid(child, nullptr, 0);
    ::close(ends[1]);
    std::set<public_key> seen;
    public_key key;
    while (::read(ends[0], key.data(), key.size()) == static_cast<ssize_t>(key.size())) seen.insert(key);
    ::close(ends[0]);
    ASSERT_EQ(seen.size(), 1u);
    EXPECT_EQ(*seen.begin(), user_keys(folder).own()->public_half());
    EXPECT_EQ(files_in(folder), 2u);
  }
}

TEST(user_keys, others_are_trusted_from_a_list) {
  scratch_folder scratch;
  const auto folder = scratch / "kiln";
  std::filesystem::create_directory(folder);
  ::chmod(folder.c_str(), 0700);
  signing_key farm = signing_key::generate(), stranger = signing_key::generate();
  write_text(folder / "trusted_keys", "# the farm\n" + farm.public_text());
  ::chmod((folder / "trusted_keys").c_str(), 0644);
  user_keys keys(folder);
  EXPECT_TRUE(keys.trusts(farm.public_half()));
  EXPECT_FALSE(keys.trusts(stranger.public_half()));
  EXPECT_FALSE(std::filesystem::exists(folder / "key"));
  // A key list that other users can write is ignored; the user's own key is still trusted.
  ::chmod((folder / "trusted_keys").c_str(), 0664);
  user_keys open_list(folder);
  EXPECT_FALSE(open_list.trusts(farm.public_half()));
  EXPECT_THAT(open_list.why(), HasSubstr("writable by its group"));
  ASSERT_NE(open_list.own(), nullptr);
  EXPECT_TRUE(open_list.trusts(open_list.own()->public_half()));
  EXPECT_THAT(native_consent{.user = std::make_shared<user_keys>(folder)}.complaint(farm.public_half()),
              HasSubstr("which is not trusted"));
}

// Anyone who can replace the key could sign as this user, so the key is neither used nor trusted nor replaced.
TEST(user_keys, a_key_that_others_can_change_is_not_used) {
  scratch_folder scratch;
  const auto folder = scratch / "kiln";
  public_key made = user_keys(folder).own()->public_half();
  auto refused = [&](const char* why) {
    user_keys keys(folder);
    EXPECT_FALSE(keys.trusts(made)) << why;
    EXPECT_EQ(keys.own(), nullptr) << why;
    EXPECT_THAT(keys.why(), HasSubstr(why));
  };
  ::chmod((folder / "key").c_str(), 0640);
  refused("others may read or write");
  ::chmod((folder / "key").c_str(), 0606);
  refused("writable by everybody");
  ::chmod((folder / "key").c_str(), 0600);
  ::chmod(folder.c_str(), 0770);
  refused("writable by its group");
  ::chmod(folder.c_str(), 0700);
  if (::geteuid() == 0) {
    ASSERT_EQ(::chown((folder / "key").c_str(), 12345, 12345), 0);
    refused("belongs to another user");
    ASSERT_EQ(::chown((folder / "key").c_str(), 0, 0), 0);
    ASSERT_EQ(::chown(folder.c_str(), 12345, 12345), 0);
    refused("belongs to another user");
    ASSERT_EQ(::chown(folder.c_str(), 0, 0), 0);
  }
  std::filesystem::rename(folder / "key", folder / "kept");
  std::filesystem::create_directory(scratch / "open");
  ::chmod((scratch / "open").c_str(), 0777);
  std::filesystem::copy_file(folder / "kept", scratch / "open/key");
  std::filesystem::create_symlink(scratch / "open/key", folder / "key");
  refused("which is writable by everybody");
  std::filesystem::remove(folder / "key");
  write_text(folder / "key", "rubbish\n");
  ::chmod((folder / "key").c_str(), 0600);
  refused("is no signing key");
  std::filesystem::rename(folder / "kept", folder / "key");
  EXPECT_TRUE(user_keys(folder).trusts(made));
}

TEST(user_keys, where_nothing_can_be_written_there_is_no_key) {
  user_keys keys("/proc/kiln");
  EXPECT_EQ(keys.own(), nullptr);
  EXPECT_FALSE(keys.why().empty());
  EXPECT_EQ(keys.own(), nullptr);
}
