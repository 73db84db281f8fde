#include "jit/cache/transfer.hpp"

#include <archive.h>
#include <archive_entry.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "fixtures.hpp"
#include "jit/cache/archive.hpp"
#include "jit/cache/maintenance.hpp"

using namespace kiln;
using namespace kiln::testing;

namespace {

std::string name_of(int n) { return entry_file_name(key_number(n).hash(), entry_kind::kernel); }
signing_key key_of_seed(std::uint8_t first) { return signing_key::from_seed({first}); }

std::vector<std::byte> bytes_of(std::string_view text) {
  auto bytes = std::as_bytes(std::span(text.data(), text.size()));
  return {bytes.begin(), bytes.end()};
}

// Four kernels (one with packed weights), two tuning records, a temporary file, and files that do not belong here.
void fill(const std::filesystem::path& folder) {
  auto cache = kernel_cache::open({folder});
  for (int n = 0; n < 4; ++n) cache->store(key_number(n), payload_number(n, 500));
  cache->store_raw(key_number(0), payload_number(0, 5000));
  std::filesystem::create_directory(folder / "records");
  write_bytes(folder / "records/a.kernel.json", bytes_of("{\"a\": 1}"));
  write_bytes(folder / "records/b.graph.json", bytes_of("{}"));
  write_bytes(folder / "records/.hidden", bytes_of("no"));
  write_bytes(folder / ".tmp-1-2", bytes_of("half"));
  write_bytes(folder / "notes.txt", bytes_of("mine"));
}

std::map<std::string, std::vector<std::byte>> contents(const std::filesystem::path& folder) {
  std::map<std::string, std::vector<std::byte>> files;
  for (const auto& e : std::filesystem::recursive_directory_iterator(folder))
    if (e.is_regular_file()) files[std::filesystem::relative(e.path(), folder).string()] = read_bytes(e.path());
  return files;
}

}  // namespace

TEST(cache_transfer, folder_and_archive_hold_the_same) {
  scratch_folder scratch;
  fill(scratch / "c");
  cache_copy done = copy_cache(scratch / "c", scratch / "out.tar.zst");
  EXPECT_EQ(done.copied, 5u);
  EXPECT_EQ(done.records, 2u);
  EXPECT_EQ(done.damaged + done.untrusted + done.other + done.present, 0u);
  copy_cache(scratch / "c", scratch / "folder");
  copy_cache(scratch / "out.tar.zst", scratch / "imported");
  EXPECT_EQ(contents(scratch / "imported"), contents(scratch / "folder"));
  EXPECT_EQ(contents(scratch / "folder").size(), 7u);
  EXPECT_EQ(contents(scratch / "folder").at(name_of(2)), read_bytes(scratch / "c" / name_of(2)));
  copy_cache(scratch / "folder", scratch / "again.tar.zst");
  EXPECT_EQ(read_bytes(scratch / "again.tar.zst"), read_bytes(scratch / "out.tar.zst"))
      << "the same entries make the same archive";
  done = copy_cache(scratch / "out.tar.zst", scratch / "imported");
  EXPECT_EQ(done.present, 5u);
  EXPECT_EQ(done.copied + done.records, 0u);
  auto cache = kernel_cache::open({scratch / "imported"});
  EXPECT_EQ(cache->find(key_number(3)), payload_number(3, 500));
  EXPECT_TRUE(std::ranges::equal(cache->find_mapped(key_number(0))->bytes, payload_number(0, 5000)));
  EXPECT_EQ(cache_stats(scratch / "imported").records, 2u);
  EXPECT_THROW(copy_cache(scratch / "missing", scratch / "x"), error);
  EXPECT_THROW(copy_cache(scratch / "missing.tar.zst", scratch / "x"), error);
  EXPECT_THROW(copy_cache(scratch / "c", scratch / "no/such/out.tar.zst"), error);
}

TEST(cache_transfer, records_are_merged) {
  scratch_folder scratch;
  fill(scratch / "c");
  fill(scratch / "d");
  write_bytes(scratch / "d/records/a.kernel.json", bytes_of("2"));
  EXPECT_EQ(copy_cache(scratch / "c", scratch / "d").records, 0u);
  EXPECT_EQ(read_bytes(scratch / "d/records/a.kernel.json"), bytes_of("2")) << "what is there stays";
  transfer_options options;
  options.merge_record = [](const std::string& name, std::span<const std::byte> arriving,
                            std::span<const std::byte> there) -> std::optional<std::vector<std::byte>> {
    if (name == "b.graph.json") throw error(error_kind::corrupted, "no record");
    std::vector<std::byte> both(there.begin(), there.end());
    both.insert(both.end(), arriving.begin(), arriving.end());
    return both;
  };
  for (const char* to : {"d", "e"}) {
    cache_copy done = copy_cache(scratch / "c", scratch / to, options);
    EXPECT_EQ(done.records, 1u);
    EXPECT_EQ(done.damaged, 1u);
  }
  EXPECT_EQ(read_bytes(scratch / "d/records/a.kernel.json"), bytes_of("2{\"a\": 1}"));
  EXPECT_EQ(read_bytes(scratch / "e/records/a.kernel.json"), bytes_of("{\"a\": 1}"));
}

TEST(cache_transfer, signs_and_requires_signatures) {
  scratch_folder scratch;
  fill(scratch / "c");
  kernel_cache::open({.folder = scratch / "c", .sign_with = key_of_seed(2)})
      ->store(key_number(1), payload_number(1, 500));
  trusted_keys trust({key_of_seed(1).public_half()});
  EXPECT_EQ(copy_cache(scratch / "c", scratch / "none", {.consent = native_consent{.only = trust}}).untrusted, 5u);
  EXPECT_EQ(copy_cache(scratch / "c", scratch / "signed.tar.zst", {.sign_with = key_of_seed(1)}).copied, 5u);
  cache_copy done = copy_cache(scratch / "signed.tar.zst", scratch / "new", {.consent = native_consent{.only = trust}});
  EXPECT_EQ(done.copied, 5u);
  auto cache = kernel_cache::open({.read_only_layers = {scratch / "new"}, .consent = {.only = trust}});
  for (int n = 0; n < 4; ++n) EXPECT_EQ(cache->find(key_number(n)), payload_number(n, 500));
  EXPECT_TRUE(std::ranges::equal(cache->find_mapped(key_number(0))->bytes, payload_number(0, 5000)));
  EXPECT_EQ(copy_cache(scratch / "c", scratch / "new", {.sign_with = key_of_seed(1)}).present, 5u);
  EXPECT_EQ(copy_cache(scratch / "c", scratch / "new").present, 5u)
      << "a signature is not lost to an entry without one";
  EXPECT_EQ(copy_cache(scratch / "c", scratch / "new", {.sign_with = key_of_seed(3)}).copied, 5u);
  EXPECT_EQ(verify_cache(scratch / "new", false).damaged.size(), 0u);
}

TEST(cache_transfer, hostile_members_stay_outside) {
  scratch_folder scratch;
  {
    archive_writer out(scratch / "evil.tar.zst");
    auto entry = encode_kernel_entry(key_number(1).fields(), payload_number(1));
    for (const std::string& name :
         {std::string("../evil"), std::string("/tmp/kiln-evil"), std::string("records/../../evil"),
          std::string("records/.hidden"), std::string("records/a/b"), std::string("notes.txt"), name_of(1) + "/x",
          "x/" + name_of(1)})
      out.add(name, entry);
    // Intact, but under the name of another entry.
    out.add(name_of(2), entry);
    out.add(name_of(3), payload_number(3));
    out.add("./" + name_of(1), entry);
    out.close();
  }
  cache_copy done = copy_cache(scratch / "evil.tar.zst", scratch / "into/c");
  EXPECT_EQ(done.copied, 1u);
  EXPECT_EQ(done.damaged, 2u);
  EXPECT_EQ(done.other, 8u);
  EXPECT_EQ(contents(scratch / "into").size(), 1u);
  EXPECT_FALSE(std::filesystem::exists(scratch / "evil") || std::filesystem::exists("/tmp/kiln-evil"));
}

// Importing a damaged archive fails or gives fewer entries, and every imported entry is intact.
TEST(cache_transfer, every_truncation_and_flipped_byte_of_an_archive) {
  scratch_folder scratch;
  kernel_cache::open({scratch / "c"})->store(key_number(1), payload_number(1, 100));
  copy_cache(scratch / "c", scratch / "good.tar.zst");
  const auto good = read_bytes(scratch / "good.tar.zst"), entry = read_bytes(scratch / "c" / name_of(1));
  std::size_t refused = 0, whole = 0;
  auto import = [&](const std::vector<std::byte>& bytes) {
    std::filesystem::remove_all(scratch / "d");
    write_bytes(scratch / "bad.tar.zst", bytes);
    try {
      copy_cache(scratch / "bad.tar.zst", scratch / "d");
    } catch (const error& e) {
      ASSERT_TRUE(e.kind() == error_kind::truncated || e.kind() == error_kind::corrupted) << e.what();
      ++refused;
    }
    for (const auto& [name, found] : contents(scratch / "d")) {
      ASSERT_EQ(name, name_of(1));
      ASSERT_EQ(found, entry);
      ++whole;
    }
  };
  for (std::size_t size = 0; size < good.size(); ++size)
    import({good.begin(), good.begin() + static_cast<std::ptrdiff_t>(size)});
  EXPECT_GT(refused, good.size() * 9 / 10);
  for (std::size_t at = 0; at < good.size(); ++at) {
    auto bytes = good;
    bytes[at] ^= std::byte{0x10};
    import(bytes);
  }
  std::printf("%zu damaged archives: %zu refused, %zu gave the entry all the same\n", 2 * good.size(), refused, whole);
}

namespace {

// An archive with one member of zeros, which archive_writer would never write: a few kilobytes for each GiB.
void write_bomb(const std::filesystem::path& file, const std::string& name, std::uint64_t bytes) {
  std::unique_ptr<archive, decltype(&::archive_write_free)> out(::archive_write_new(), &::archive_write_free);
  ASSERT_EQ(::archive_write_set_format_pax_restricted(out.get()), ARCHIVE_OK);
  ASSERT_EQ(::archive_write_add_filter_zstd(out.get()), ARCHIVE_OK);
  ASSERT_EQ(::archive_write_open_filename(out.get(), file.c_str()), ARCHIVE_OK);
  std::unique_ptr<archive_entry, decltype(&::archive_entry_free)> entry(::archive_entry_new(), &::archive_entry_free);
  const std::vector<char> zeros(1 << 24);
  for (int member = 0; member < 2; ++member) {
    ::archive_entry_clear(entry.get());
    ::archive_entry_set_pathname(entry.get(), (name + std::to_string(member)).c_str());
    ::archive_entry_set_filetype(entry.get(), AE_IFREG);
    ::archive_entry_set_size(entry.get(), static_cast<la_int64_t>(bytes));
    ASSERT_EQ(::archive_write_header(out.get(), entry.get()), ARCHIVE_OK);
    for (std::uint64_t left = bytes; left > 0; left -= std::min<std::uint64_t>(left, zeros.size()))
      ASSERT_GT(::archive_write_data(out.get(), zeros.data(), std::min<std::uint64_t>(left, zeros.size())), 0);
  }
  ASSERT_EQ(::archive_write_close(out.get()), ARCHIVE_OK);
}

std::string refusal(const std::filesystem::path& archive_file, const std::filesystem::path& to,
                    error_kind kind = error_kind::corrupted) {
  try {
    copy_cache(archive_file, to);
  } catch (const error& e) {
    EXPECT_EQ(e.kind(), kind) << e.what();
    return e.what();
  }
  return "";
}

}  // namespace

TEST(cache_transfer, an_archive_far_larger_than_its_file_is_refused) {
  scratch_folder scratch;
  write_bomb(scratch / "large.tar.zst", name_of(1) + "x",
             // Refused by its header, before any member is read.
             max_member_bytes + 1);
  EXPECT_NE(refusal(scratch / "large.tar.zst", scratch / "to").find("1 GiB"), std::string::npos);
  write_bomb(scratch / "many.tar.zst", "records/x", max_member_bytes - (1 << 24));
  EXPECT_NE(refusal(scratch / "many.tar.zst", scratch / "to").find("too much for its size"), std::string::npos);
}

TEST(cache_transfer, an_archive_must_be_a_regular_file) {
  scratch_folder scratch;
  ASSERT_EQ(::mkfifo((scratch / "pipe.tar.zst").c_str(), 0600), 0);
  EXPECT_NE(refusal(scratch / "pipe.tar.zst", scratch / "to", error_kind::missing_file).find("not a regular file"),
            std::string::npos);
}

TEST(cache_transfer, nobody_can_lay_a_trap_where_an_archive_is_written) {
  scratch_folder scratch;
  fill(scratch / "c");
  write_bytes(scratch / "precious", bytes_of("mine"));
  // The name that an earlier version of this code would have used for the temporary file.
  std::filesystem::create_symlink(scratch / "precious",
                                  scratch / (".tmp-" + std::to_string(::getpid()) + "-out.tar.zst"));
  std::filesystem::create_directory(scratch / "a");
  std::filesystem::create_symlink(scratch / "precious",
                                  // The target may be a symbolic link: it is replaced, not followed.
                                  scratch / "a/out.tar.zst");
  copy_cache(scratch / "c", scratch / "out.tar.zst");
  copy_cache(scratch / "c", scratch / "a/out.tar.zst");
  EXPECT_EQ(read_bytes(scratch / "precious"), bytes_of("mine"));
  EXPECT_FALSE(std::filesystem::is_symlink(scratch / "a/out.tar.zst"));
  EXPECT_EQ(read_bytes(scratch / "a/out.tar.zst"), read_bytes(scratch / "out.tar.zst"));
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(scratch / "a"), {}), 1);
}
