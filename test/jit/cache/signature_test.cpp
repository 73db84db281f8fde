#include "jit/cache/signature.hpp"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include <map>

#include "fixtures.hpp"
#include "ir/error.hpp"

using namespace kiln;
using namespace kiln::testing;
using ::testing::HasSubstr;

namespace {

signing_key key_of_seed(std::uint8_t first) {
  std::array<std::uint8_t, 32> seed{};
  seed[0] = first;
  return signing_key::from_seed(seed);
}

std::string hex(std::span<const std::byte> bytes) {
  std::string text;
  for (std::byte b : bytes)
    text += "0123456789abcdef"[static_cast<int>(b) >> 4], text += "0123456789abcdef"[static_cast<int>(b) & 15];
  return text;
}

void write_text(const std::filesystem::path& file, const std::string& text) {
  write_bytes(file, std::as_bytes(std::span(text.data(), text.size())));
}

}  // namespace

// The signature that OpenSSL computes for the same seed and message (openssl pkeyutl -sign -rawin). If the format
// changes, the domain and the magic must change, too.
TEST(signature, golden_bytes) {
  key_fields fields{{"ab", "c"}};
  std::vector<std::byte> payload{std::byte{7}};
  auto entry = encode_prepared_head(fields, payload);
  entry.push_back(payload[0]);
  auto with = signed_entry(entry, key_of_seed(1));
  ASSERT_EQ(with.size(), entry.size() + signature_bytes);
  EXPECT_TRUE(std::equal(entry.begin(), entry.end(), with.begin()));
  auto block = std::span(with).subspan(entry.size());
  EXPECT_EQ(hex(block.first(8)), "894b4c4e530d0a1a");
  EXPECT_EQ(hex(block.subspan(8, 32)), to_hex(key_of_seed(1).public_half()));
  EXPECT_EQ(hex(block.subspan(8, 32)), "cecc1507dc1ddd7295951c290888f095adb9044d1b73d696e6df065d683bd4fc");
  EXPECT_EQ(hex(block.subspan(40)),
            "1adbc364e95935c7e41842fff59eec1e02e4cf340388bd0c265620b9366daddae2e63a6e3ffa028c5ba3cc92b3e668d3439764b1ca"
            "b77c447858b7f2a9247501");
  EXPECT_EQ(signer_of(with, entry.size()), key_of_seed(1).public_half());
  EXPECT_EQ(signer_of(entry, entry.size()), std::nullopt);
}

TEST(signature, every_truncation_and_flip_is_noticed) {
  auto entry = signed_entry(encode_kernel_entry(key_number(1).fields(), payload_number(1, 60)), key_of_seed(1));
  EXPECT_EQ(decode_kernel_entry(entry, key_number(1).hash()), payload_number(1, 60));
  EXPECT_EQ(signed_entry(entry, key_of_seed(1)), entry) << "not signed twice";
  std::size_t unsigned_size = entry.size() - signature_bytes;
  for (std::size_t size = 0; size < entry.size(); ++size)
    if (size != unsigned_size) {
      ASSERT_THROW(verify_entry(std::span(entry).first(size)), error) << size;
    }
  for (std::size_t bit = 0; bit < entry.size() * 8; ++bit) {
    auto damaged = entry;
    damaged[bit / 8] ^= std::byte(1u << (bit % 8));
    ASSERT_THROW(verify_entry(damaged), error) << bit;
    ASSERT_THROW(decode_kernel_entry(damaged, key_number(1).hash()), error) << bit;
  }
}

TEST(signature, key_files) {
  scratch_folder scratch;
  signing_key made = signing_key::generate();
  EXPECT_NE(made.public_half(), signing_key::generate().public_half());
  made.write(scratch / "key");
  struct stat status{};
  ASSERT_EQ(::stat((scratch / "key").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
  EXPECT_EQ(signing_key::read(scratch / "key").public_half(), made.public_half());
  EXPECT_TRUE(trusted_keys::read(scratch / "key.pub").contains(made.public_half()));
  EXPECT_FALSE(trusted_keys::read(scratch / "key.pub").contains(key_of_seed(1).public_half()));
  EXPECT_THROW(made.write(scratch / "key"), error) << "a key is never overwritten";
  ::chmod((scratch / "key").c_str(), 0640);
  EXPECT_THROW(signing_key::read(scratch / "key"), error) << "others can read it";
  write_text(scratch / "list", "# the build farm\n\nkiln-public-key-1 " + to_hex(made.public_half()) +
                                   " farm\nkiln-public-key-1 " + to_hex(key_of_seed(1).public_half()) + "\r\n");
  auto trust = trusted_keys::read(scratch / "list");
  EXPECT_TRUE(trust.contains(made.public_half()) && trust.contains(key_of_seed(1).public_half()));
  const std::string digits = to_hex(made.public_half());
  for (const std::string& bad :
       {std::string(), "# only a comment\n" + std::string(), "kiln-public-key-1 " + digits.substr(1) + "\n",
        "kiln-public-key-1 " + digits + "00\n", "kiln-public-key-2 " + digits + "\n",
        "kiln-signing-key-1 " + digits + "\n", "kiln-public-key-1 zz" + digits.substr(2) + "\n"}) {
    write_text(scratch / "bad", bad);
    EXPECT_THROW(trusted_keys::read(scratch / "bad"), error) << bad;
  }
  EXPECT_THROW(trusted_keys::read(scratch / "missing"), error);
  EXPECT_THROW(signing_key::read(scratch / "key.pub"), error);
}

// A layer with one entry by each kind of signer: only entries of the trusted signer are used, and there is one warning.
TEST(signature, layers_that_must_be_signed) {
  scratch_folder scratch;
  trusted_keys trust({key_of_seed(1).public_half()});
  kernel_cache::open({.folder = scratch / "layer", .sign_with = key_of_seed(1)})
      ->store(key_number(1), payload_number(1));
  kernel_cache::open({.folder = scratch / "layer", .sign_with = key_of_seed(2)})
      ->store(key_number(2), payload_number(2));
  auto unsigned_cache = kernel_cache::open({.folder = scratch / "layer"});
  unsigned_cache->store(key_number(3), payload_number(3));
  unsigned_cache->store_raw(key_number(3), payload_number(3));
  for (int n : {1, 2, 3})
    EXPECT_EQ(unsigned_cache->find(key_number(n)), payload_number(n))
        << "where no signature is required none is missed";
  warnings said;
  auto cache = kernel_cache::open({.folder = scratch / "own",
                                   .read_only_layers = {scratch / "layer"},
                                   .warn = said.sink(),
                                   .consent = {.only = trust}});
  EXPECT_EQ(cache->find(key_number(1)), payload_number(1));
  EXPECT_FALSE(cache->find(key_number(2)));
  EXPECT_FALSE(cache->find(key_number(3)));
  EXPECT_FALSE(cache->find_mapped(key_number(3)));
  ASSERT_EQ(said.lines.size(), 1u);
  EXPECT_THAT(said.lines[0], HasSubstr("without a trusted signature"));
  EXPECT_THAT(said.lines[0], HasSubstr(to_hex(key_of_seed(2).public_half())));
  EXPECT_EQ(cache->counters().untrusted, 3u);
  EXPECT_EQ(cache->counters().repaired, 0u);
  // The signature of another entry is not valid for this one.
  auto name = [](int n) { return entry_file_name(key_number(n).hash(), entry_kind::kernel); };
  auto good = read_bytes(scratch / "layer" / name(1)), bare = read_bytes(scratch / "layer" / name(3));
  bare.insert(bare.end(), good.end() - signature_bytes, good.end());
  write_bytes(scratch / "layer" / name(3), bare);
  EXPECT_FALSE(cache->find(key_number(3)));
  EXPECT_EQ(said.lines.size(), 2u);
  // Entries that this user made are trusted, signed or not.
  cache->store(key_number(4), payload_number(4));
  EXPECT_EQ(cache->find(key_number(4)), payload_number(4));
}
