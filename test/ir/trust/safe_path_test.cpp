#include "ir/trust/safe_path.hpp"

#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include "test/support/scratch_folder.hpp"

using namespace kiln;
using namespace kiln::testing;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

namespace {

constexpr std::uint32_t somebody_else = 12345;

// A view of the file system in which some files appear with another owner or mode, so that tests need not be root.
struct pretended {
  std::filesystem::path path;
  std::uint32_t owner, mode;
};
path_reader reader_with(std::vector<pretended> others) {
  path_reader reader = posix_path_reader();
  reader.examine = [others = std::move(others), real = reader.examine](const std::filesystem::path& path,
                                                                       path_facts& facts) {
    int code = real(path, facts);
    for (const pretended& p : others)
      if (p.path == path) facts.owner = p.owner, facts.mode = p.mode;
    return code;
  };
  return reader;
}

}  // namespace

TEST(safe_path, who_can_change_what_lies_there) {
  scratch_folder scratch;
  const std::uint32_t me = ::geteuid();
  std::filesystem::create_directories(scratch / "a/b/c");
  ::chmod((scratch / "a").c_str(), 0755);
  ::chmod((scratch / "a/b").c_str(), 0755);
  ::chmod((scratch / "a/b/c").c_str(), 0700);
  EXPECT_THAT(refuse_path(scratch / "a/b/c"), IsEmpty());
  struct row {
    const char* at;
    std::uint32_t owner, mode;
    const char* why;
  };
  for (const row& r :
       {row{"a/b/c", me, 0770, "is writable by its group"}, row{"a/b/c", me, 0702, "is writable by everybody"},
        row{"a/b/c", somebody_else, 0700, "belongs to another user"},
        row{"a/b", me, 0777, "which is writable by everybody"}, row{"a/b", me, 0775, "which is writable by its group"},
        row{"a/b", somebody_else, 0755, "which belongs to another user"},
        row{"a", me, 0777, "which is writable by everybody"}, row{"a", me, 0775, "which is writable by its group"},
        row{"a", somebody_else, 0755, "which belongs to another user"},
        row{"a", somebody_else, 01755, "which belongs to another user"}})
    EXPECT_THAT(refuse_path(scratch / "a/b/c", reader_with({{scratch / r.at, r.owner, r.mode}})), HasSubstr(r.why))
        << r.at << " " << r.mode;
  for (const row& r : {row{"a/b/c", 0, 0700, ""}, row{"a/b/c", me, 0755, ""}, row{"a/b", 0, 0755, ""},
                       row{"a", me, 01777, ""}, row{"a", 0, 01775, ""}})
    EXPECT_THAT(refuse_path(scratch / "a/b/c", reader_with({{scratch / r.at, r.owner, r.mode}})), IsEmpty())
        << r.at << " " << r.mode;
}

// A link leads through folders that are not in its own path; each of them must be checked.
TEST(safe_path, links_are_followed_one_by_one) {
  scratch_folder scratch;
  const std::uint32_t me = ::geteuid();
  for (const char* folder : {"from", "way", "there", "there/end"}) {
    std::filesystem::create_directories(scratch / folder);
    ::chmod((scratch / folder).c_str(), 0700);
  }
  std::filesystem::create_symlink(scratch / "way/second", scratch / "from/first");
  std::filesystem::create_symlink("../there/./end", scratch / "way/second");
  std::filesystem::create_symlink(scratch / "from/round", scratch / "from/round");
  const auto path = scratch / "from/first";
  EXPECT_THAT(refuse_path(path), IsEmpty());
  for (const char* on_the_way : {"from", "way", "there"})
    EXPECT_THAT(refuse_path(path, reader_with({{scratch / on_the_way, me, 0777}})),
                HasSubstr((scratch / on_the_way).string() + ", which is writable by everybody"));
  EXPECT_THAT(refuse_path(path, reader_with({{scratch / "there/end", somebody_else, 0700}})),
              HasSubstr("belongs to another user"));
  EXPECT_THAT(refuse_path(path, reader_with({{scratch / "from/first", somebody_else, 0777}})),
              HasSubstr("link that belongs to another user"));
  EXPECT_THAT(refuse_path(path, reader_with({{scratch / "way/second", somebody_else, 0777}})),
              HasSubstr("link that belongs to another user"));
  EXPECT_THAT(refuse_path(scratch / "from/first/x"), HasSubstr("cannot be examined"));
  EXPECT_THAT(refuse_path(scratch / "from/round"), HasSubstr("cannot be examined"));
  EXPECT_THAT(refuse_path(scratch / "from/.././from/first"), IsEmpty());
}
