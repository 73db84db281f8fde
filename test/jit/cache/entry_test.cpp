#include "jit/cache/entry.hpp"

#include <gtest/gtest.h>

#include <cstring>

#include "fixtures.hpp"
#include "ir/error.hpp"
#include "jit/cache/checksum.hpp"

using namespace kiln;
using namespace kiln::testing;

namespace {

std::vector<std::byte> prepared_entry(const kernel_key& key, const std::vector<std::byte>& payload) {
  auto entry = encode_prepared_head(key.fields(), payload);
  entry.insert(entry.end(), payload.begin(), payload.end());
  return entry;
}

}  // namespace

TEST(kernel_key, every_field_matters) {
  kernel_key base = key_number(1);
  std::set<content_hash> hashes{base.hash()};
  auto changed = [&](auto edit) {
    kernel_key key = base;
    edit(key);
    EXPECT_TRUE(hashes.insert(key.hash()).second);
  };
  changed([](kernel_key& k) { k.payload = "00"; });
  changed([](kernel_key& k) { k.inputs[0].dims[0] = 2; });
  changed([](kernel_key& k) { k.inputs[0].type = element_type::bf16; });
  changed([](kernel_key& k) { k.inputs.push_back(k.outputs[0]); });
  changed([](kernel_key& k) { std::swap(k.inputs, k.outputs); });
  changed([](kernel_key& k) { k.configuration["tile_m"] = 8; });
  changed([](kernel_key& k) { k.configuration["tile_m"] = 16; });
  changed([](kernel_key& k) { k.target = "x86-64-v3"; });
  changed([](kernel_key& k) { k.code = "2"; });
  changed([](kernel_key& k) { k.llvm = "2"; });
  changed([](kernel_key& k) { k.driver = "1"; });
  changed([](kernel_key& k) { k.constants = "1"; });
  EXPECT_EQ(hashes.size(), 13u);
  EXPECT_EQ(key_number(1).hash(), base.hash());
}

// If this fails, old entries are no longer found, so every user must compile again. Make sure that the change is worth
// it.
TEST(kernel_key, golden_hash) {
  key_fields expected{{"payload", key_number(1).payload},
                      {"inputs", "f32[1, 3, 7]"},
                      {"outputs", "f16[3]"},
                      {"configuration", "tile_m=8 unroll=2"},
                      {"target", "x86-64-v4 +avx512f"},
                      {"code", "1"},
                      {"llvm", "22.1.0"},
                      {"driver", ""},
                      {"constants", ""}};
  kernel_key key = key_number(1);
  key.configuration = {{"unroll", 2}, {"tile_m", 8}};
  EXPECT_EQ(key.fields(), expected);
  EXPECT_EQ(key.hash().hex(), "f55c639e06affd0631d4bcecd14a5034207226eea0c0a3b5c1f0a642000671c7");
}

TEST(cache_entry, round_trip) {
  for (std::size_t size : {0, 1, 300, 70'001}) {
    auto payload = payload_number(1, size);
    auto entry = encode_kernel_entry(key_number(1).fields(), payload);
    EXPECT_EQ(decode_kernel_entry(entry, key_number(1).hash()), payload);
    EXPECT_EQ(verify_entry(entry).fields, key_number(1).fields());
    auto prepared = prepared_entry(key_number(1), payload);
    auto view = decode_prepared_entry(prepared, key_number(1).hash());
    EXPECT_TRUE(std::ranges::equal(view, payload));
    EXPECT_EQ((view.data() - prepared.data()) % 4096, 0);
  }
}

// Bump entry_version when this changes.
TEST(cache_entry, golden_header) {
  key_fields fields{{"ab", "c"}};
  std::vector<std::byte> payload{std::byte{7}};
  auto head = encode_prepared_head(fields, payload);
  ASSERT_EQ(head.size(), 4096u);
  std::string hex;
  for (std::byte b : std::span(head).first(155))
    hex += "0123456789abcdef"[static_cast<int>(b) >> 4], hex += "0123456789abcdef"[static_cast<int>(b) & 15];
  EXPECT_EQ(hex.substr(0, 32),
            "894b4c4e450d0a1a"
            "01000000"
            "01000000");
  EXPECT_EQ(hex.substr(32, 64), hash_of(fields).hex());
  EXPECT_EQ(hex.substr(96, 48),
            "0b000000"
            "00000000"
            "0100000000000000"
            "0100000000000000");
  EXPECT_EQ(hex.substr(144, 64), blake3(payload).hex());
  EXPECT_EQ(hex.substr(208, 16), "c5143b288fcb8706");  // XXH3 of the payload's XXH3
  EXPECT_EQ(hex.substr(288),
            "02000000"
            "6162"
            "01000000"
            "63");
  EXPECT_EQ(entry_version, 1u);
}

TEST(cache_entry, another_key_is_refused) {
  auto payload = payload_number(1);
  auto entry = encode_kernel_entry(key_number(1).fields(), payload);
  EXPECT_THROW(decode_kernel_entry(entry, key_number(2).hash()), error);
  EXPECT_THROW(decode_prepared_entry(entry, key_number(1).hash()), error);
  EXPECT_THROW(decode_kernel_entry(prepared_entry(key_number(1), payload), key_number(1).hash()), error);
}

TEST(cache_entry, every_truncation_and_flip_is_noticed) {
  auto payload = payload_number(1, 60);
  for (const auto& entry :
       {encode_kernel_entry(key_number(1).fields(), payload), prepared_entry(key_number(1), payload)}) {
    for (std::size_t size = 0; size < entry.size(); ++size)
      EXPECT_THROW(verify_entry(std::span(entry).first(size)), error) << size;
    auto damaged = entry;
    damaged.push_back(std::byte{0});
    EXPECT_THROW(verify_entry(damaged), error);
    for (std::size_t bit = 0; bit < entry.size() * 8; ++bit) {
      damaged = entry;
      damaged[bit / 8] ^= std::byte(1u << (bit % 8));
      EXPECT_THROW(verify_entry(damaged), error) << bit;
    }
  }
}

// Prepared weights of a trusted folder are checked by their checksum, or by BLAKE3 where an entry has none.
TEST(cache_entry, damage_is_noticed_in_a_trusted_folder) {
  constexpr auto trusted = signature_check::shape_only;
  const content_hash key = key_number(1).hash();
  for (std::size_t size : {1, 60, (1 << 20) + 5}) {
    auto entry = prepared_entry(key_number(1), payload_number(1, size));
    EXPECT_NO_THROW(decode_prepared_entry(entry, key, trusted));
    EXPECT_NE(decode_entry_head(entry).checksum, 0u);
    const std::size_t bits = entry.size() * 8, step = std::max<std::size_t>(1, bits / 40'000);
    for (std::size_t bit = 0; bit < bits; bit += step) {
      entry[bit / 8] ^= std::byte(1u << (bit % 8));
      EXPECT_THROW(decode_prepared_entry(entry, key, trusted), error) << bit;
      entry[bit / 8] ^= std::byte(1u << (bit % 8));
    }
  }
  auto without = prepared_entry(key_number(1), payload_number(1, 60));
  std::fill_n(without.begin() + 104, 8, std::byte{0});
  const content_hash frame = blake3([&] {
    std::vector<std::byte> covered(without.begin(), without.begin() + 112);
    covered.insert(covered.end(), without.begin() + entry_header_bytes,
                   without.begin() + static_cast<std::ptrdiff_t>(entry_head_bytes(without)));
    return covered;
  }());
  std::ranges::copy(std::as_bytes(std::span(frame.bytes)), without.begin() + 112);
  EXPECT_EQ(decode_entry_head(without).checksum, 0u);
  EXPECT_NO_THROW(decode_prepared_entry(without, key, trusted));
  without.back() ^= std::byte{1};
  EXPECT_THROW(decode_prepared_entry(without, key, trusted), error);
}

TEST(checksum, pieces_are_read_in_order) {
  constexpr std::size_t piece = 1 << 20;
  std::vector<std::byte> bytes = payload_number(3, 9 * piece + 17);  // large enough for a second thread
  const std::uint64_t whole = checksum_of(bytes);
  EXPECT_EQ(checksum_of(bytes), whole);
  std::swap_ranges(bytes.begin(), bytes.begin() + piece, bytes.begin() + piece);
  EXPECT_NE(checksum_of(bytes), whole);
  EXPECT_NE(checksum_of(std::span(bytes).first(bytes.size() - 1)), checksum_of(bytes));
  EXPECT_NE(checksum_of({}), 0u);
}

TEST(cache_entry, newer_version_is_named) {
  auto entry = encode_kernel_entry(key_number(1).fields(), payload_number(1));
  entry[8] = std::byte{9};
  try {
    verify_entry(entry);
    FAIL();
  } catch (const error& e) {
    EXPECT_EQ(e.kind(), error_kind::newer_version);
  }
}

// Entries with valid frames and invalid sizes must be refused before memory is allocated.
TEST(cache_entry, sizes_are_bounded) {
  const auto entry = encode_kernel_entry(key_number(1).fields(), payload_number(1, 6 << 20));
  auto with_raw_size = [&](std::uint64_t bytes) {
    auto changed = entry;
    for (std::size_t i = 0; i < 8; ++i) changed[64 + i] = static_cast<std::byte>(bytes >> (8 * i));
    std::vector<std::byte> covered(changed.begin(), changed.begin() + 112);
    const std::size_t head = entry_head_bytes(changed);
    covered.insert(covered.end(), changed.begin() + entry_header_bytes,
                   changed.begin() + static_cast<std::ptrdiff_t>(head));
    const content_hash hash = blake3(covered);
    std::memcpy(changed.data() + 112, hash.bytes.data(), hash.bytes.size());
    return changed;
  };
  EXPECT_EQ(decode_kernel_entry(with_raw_size(6 << 20), key_number(1).hash()).size(), 6u << 20);
  EXPECT_NO_THROW(decode_entry_head(with_raw_size(max_kernel_bytes)));
  for (std::uint64_t bytes : {max_kernel_bytes + 1, std::uint64_t{5} << 30, std::uint64_t{1} << 62})
    EXPECT_THROW(decode_entry_head(with_raw_size(bytes)), error) << bytes;
  EXPECT_THROW(decode_kernel_entry(with_raw_size(max_kernel_bytes), key_number(1).hash()), error)
      << "the frame says otherwise";
}
