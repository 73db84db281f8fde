#include <gmock/gmock.h>

#include <elf.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <limits>
#include <random>

#include "ir/element_type.hpp"
#include "ir/error.hpp"
#include "objects.hpp"
#include "runtime/host_kernel.hpp"
#include "runtime/host_symbols.hpp"
#include "runtime/object_loader.hpp"
#include "runtime/relocation.hpp"

namespace kiln {
namespace {

using ::testing::HasSubstr;

code_image load_one(std::span<const std::byte> bytes) {
  std::span<const std::byte> list[] = {bytes};
  return code_image(list, find_host_symbol);
}

host_kernel function(const code_image& image, std::size_t object, const char* name) {
  return {reinterpret_cast<host_kernel::entry>(const_cast<void*>(image.find(object, name)))};
}

template <class F>
error failure(F f) {
  try {
    f();
  } catch (const error& e) {
    return e;
  }
  ADD_FAILURE() << "nothing was thrown";
  return error(error_kind::internal, "");
}

class relocations : public ::testing::TestWithParam<const char*> {};

TEST_P(relocations, every_kind_gives_the_right_numbers) {
  code_image image = load_one(testing::read_object(GetParam()));
  const float nan = std::numeric_limits<float>::quiet_NaN();

  std::vector<float> in{-1.5f, 0.0f, 0.25f, 3.0f, 80.0f}, out(5, nan);
  void* exp_buffers[] = {in.data(), out.data()};
  function(image, 0, "call_expf")(exp_buffers, 0, 5);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(out[i], std::exp(in[i])) << i;

  std::vector<double> in64{0.5, 1.0, 2.25}, out64(3, nan);
  void* pow_buffers[] = {in64.data(), out64.data()};
  function(image, 0, "call_pow_erf")(pow_buffers, 0, 3);
  for (int i = 0; i < 3; ++i) EXPECT_DOUBLE_EQ(out64[i], std::pow(in64[i], 1.5) + std::erf(in64[i])) << i;

  std::vector<float> tables(24, nan);
  void* table_buffers[] = {tables.data()};
  function(image, 0, "use_tables")(table_buffers, 0, 24);
  for (int i = 0; i < 24; ++i) {
    float x = static_cast<float>(1 << (i % 8)), power = i % 2 ? x * x * x : x * x;
    EXPECT_EQ(tables[i], power + static_cast<float>(1 << (7 - i % 8)) + static_cast<float>(i % 3 + 0.5) +
                             8.0f * static_cast<float>(i))
        << i;
  }

  std::vector<char> from(1000), to(1000, 0);
  for (int i = 0; i < 1000; ++i) from[i] = static_cast<char>(i * 7);
  void* copy_buffers[] = {from.data(), to.data()};
  function(image, 0, "copy_bytes")(copy_buffers, 0, 1000);
  EXPECT_EQ(from, to);
  function(image, 0, "fill_bytes")(copy_buffers, 3, 900);
  EXPECT_EQ(std::count(from.begin(), from.end(), char{0x5A}), 897 + std::count(to.begin(), to.begin() + 3, char{0x5A}) +
                                                                  std::count(to.begin() + 900, to.end(), char{0x5A}));

  std::int32_t state[2] = {};
  void* state_buffers[] = {state};
  function(image, 0, "use_state")(state_buffers, 0, 1);
  EXPECT_EQ(state[0], 12);
  EXPECT_EQ(state[1], 2);
  function(image, 0, "use_state")(state_buffers, 0, 1);
  EXPECT_EQ(state[0], 17);
  EXPECT_EQ(state[1], 4);

  std::vector<float> x{0.5f, -2.0f};
  void* tanh_buffers[] = {x.data()};
  function(image, 0, "address_of_external")(tanh_buffers, 0, 2);
  EXPECT_EQ(x[0], std::tanh(0.5f));
  EXPECT_EQ(x[1], std::tanh(-2.0f));
}

INSTANTIATE_TEST_SUITE_P(objects, relocations,
                         ::testing::Values("relocations", "relocations_plain", "relocations_sections",
                                           "relocations_no_plt"),
                         [](const auto& info) { return std::string(info.param); });

TEST(object_loader, objects_share_a_mapping_and_keep_their_own_symbols_and_data) {
  auto a = testing::read_object("relocations"), b = testing::read_object("relocations_plain");
  std::span<const std::byte> list[] = {a, b, a};
  code_image image(list, find_host_symbol);
  std::int32_t state[2] = {};
  void* buffers[] = {state};
  for (int i = 0; i < 3; ++i) function(image, 0, "use_state")(buffers, 0, 1);
  EXPECT_EQ(state[0], 22);
  function(image, 2, "use_state")(buffers, 0, 1);
  EXPECT_EQ(state[0], 12);
  function(image, 1, "use_state")(buffers, 0, 1);
  EXPECT_EQ(state[0], 12);
}

TEST(object_loader, no_page_is_writable_and_executable) {
  code_image image = load_one(testing::read_object("relocations"));
  auto begin = reinterpret_cast<std::uintptr_t>(image.mapping().data()), end = begin + image.mapping().size();
  std::ifstream maps("/proc/self/maps");
  std::string permissions;
  for (std::string line; std::getline(maps, line);) {
    std::uintptr_t from = 0, to = 0;
    char flags[8] = {};
    ASSERT_EQ(std::sscanf(line.c_str(), "%lx-%lx %7s", &from, &to, flags), 3);
    if (from >= end || to <= begin) continue;
    permissions += std::string(flags) + " ";
    EXPECT_FALSE(flags[1] == 'w' && flags[2] == 'x') << line;
  }
  EXPECT_THAT(permissions, HasSubstr("r-xp"));
  EXPECT_THAT(permissions, HasSubstr("r--p"));
  EXPECT_THAT(permissions, HasSubstr("rw-p"));
}

TEST(object_loader, half_precision_calls_round_like_the_reference) {
  code_image image = load_one(testing::read_object("half"));
  std::mt19937 random(7);
  std::vector<float> in{0.0f, -0.0f, 1.0f, 65504.0f, 65520.0f, 1e-8f, 6.0e-8f, -3.1415926f, INFINITY};
  for (int i = 0; i < 20000; ++i) {
    std::uint32_t bits = random();
    float x;
    std::memcpy(&x, &bits, 4);
    if (!std::isnan(x)) in.push_back(x);
  }
  std::size_t n = in.size();
  std::vector<std::uint16_t> half(n, 0x7E01), brain(n, 0x7FC1);
  std::vector<float> back(n, NAN);
  void* buffers[] = {in.data(), half.data(), brain.data(), back.data()};
  function(image, 0, "halves")(buffers, 0, static_cast<std::int64_t>(n));
  for (std::size_t i = 0; i < n; ++i) {
    ASSERT_EQ(half[i], f32_to_f16(in[i])) << in[i];
    ASSERT_EQ(brain[i], f32_to_bf16(in[i])) << in[i];
    ASSERT_EQ(back[i], f16_to_f32(half[i])) << in[i];
  }
  // Just above the middle between two f16 numbers, by less than f32 can represent: rounding twice would round down to
  // even.
  std::vector<double> tricky{1.0 + std::ldexp(1.0, -11) + std::ldexp(1.0, -40), 1.0 + std::ldexp(1.0, -11),
                             -1.0 - std::ldexp(1.0, -11) - std::ldexp(1.0, -40),
                             1.0 + std::ldexp(1.0, -8) + std::ldexp(1.0, -40)};
  std::vector<std::uint16_t> half64(4, 0x7E01), brain64(4, 0x7FC1);
  void* buffers64[] = {tricky.data(), half64.data(), brain64.data()};
  function(image, 0, "doubles")(buffers64, 0, 4);
  EXPECT_EQ(half64[0], 0x3C01);
  EXPECT_EQ(half64[1], 0x3C00);
  EXPECT_EQ(half64[2], 0xBC01);
  EXPECT_EQ(brain64[3], 0x3F81);
}

TEST(object_loader, names_a_function_that_is_not_allowed) {
  error e = failure([] { load_one(testing::read_object("forbidden")); });
  EXPECT_EQ(e.kind(), error_kind::unsupported);
  EXPECT_THAT(e.what(), HasSubstr("'system'"));
}

TEST(object_loader, refuses_static_constructors_and_the_large_code_model) {
  error constructor = failure([] { load_one(testing::read_object("constructor")); });
  EXPECT_EQ(constructor.kind(), error_kind::unsupported);
  EXPECT_THAT(constructor.what(), HasSubstr(".init_array"));
  error large = failure([] { load_one(testing::read_object("relocations_large")); });
  EXPECT_EQ(large.kind(), error_kind::unsupported);
  EXPECT_THAT(large.what(), HasSubstr("relocation type"));
}

TEST(object_loader, names_a_missing_function) {
  code_image image = load_one(testing::read_object("relocations"));
  error e = failure([&] { image.find(0, "no_such_kernel"); });
  EXPECT_EQ(e.kind(), error_kind::corrupted);
  EXPECT_THAT(e.what(), HasSubstr("'no_such_kernel'"));
  EXPECT_EQ(failure([&] { image.find(1, "call_expf"); }).kind(), error_kind::corrupted);
  EXPECT_EQ(failure([&] { image.find(0, "square"); }).kind(), error_kind::corrupted);  // static
}

TEST(object_loader, another_machine_is_refused_by_number) {
  auto bytes = testing::read_object("relocations");
  const std::uint16_t machine = host_machine == EM_AARCH64 ? EM_X86_64 : EM_AARCH64;
  std::memcpy(bytes.data() + offsetof(Elf64_Ehdr, e_machine), &machine, 2);
  error e = failure([&] { load_one(bytes); });
  EXPECT_EQ(e.kind(), error_kind::unsupported);
  EXPECT_THAT(e.what(), HasSubstr("machine " + std::to_string(machine)));
}

// Either the object still loads, or a typed error says why not. Anything else would be a crash (run under ASan, too).
enum class verdict { loaded, refused };
verdict attempt(std::span<const std::byte> bytes) {
  // A copy of exactly this size, so that a sanitizer detects a read past the end.
  std::vector<std::byte> exact(bytes.begin(), bytes.end());
  try {
    load_one(exact);
    return verdict::loaded;
  } catch (const error& e) {
    EXPECT_TRUE(e.kind() == error_kind::corrupted || e.kind() == error_kind::unsupported) << e.what();
    return verdict::refused;
  }
}

TEST(object_loader, truncated_objects_are_refused) {
  auto bytes = testing::read_object("relocations");
  std::size_t refused = 0, tried = 0;
  for (std::size_t n = 0; n < bytes.size(); n += n < 200 ? 1 : 37, ++tried)
    refused += attempt(std::span(bytes).first(n)) == verdict::refused;
  EXPECT_EQ(refused, tried);  // section headers lie at the end
}

TEST(object_loader, flipped_bytes_never_crash_it) {
  for (const char* name : {"relocations", "tensors"}) {
    auto original = testing::read_object(name);
    Elf64_Ehdr header;
    std::memcpy(&header, original.data(), sizeof header);
    std::size_t refused = 0, tried = 0;
    auto flip = [&](std::size_t offset, std::byte mask) {
      auto bytes = original;
      bytes[offset] ^= mask;
      ++tried;
      refused += attempt(bytes) == verdict::refused;
    };
    for (std::size_t i = 0; i < sizeof header; ++i)
      for (int bit = 0; bit < 8; ++bit) flip(i, static_cast<std::byte>(1 << bit));
    for (std::size_t i = header.e_shoff; i < original.size(); ++i)
      for (unsigned mask : {0x01u, 0x80u, 0xFFu}) flip(i, static_cast<std::byte>(mask));
    // Relocations, symbols and everything else.
    std::mt19937 random(11);
    for (int i = 0; i < 4000; ++i) flip(random() % original.size(), static_cast<std::byte>(1 + random() % 255));
    for (int s = 0; s < header.e_shnum; ++s) {
      Elf64_Shdr section;
      std::memcpy(&section, original.data() + header.e_shoff + static_cast<std::size_t>(s) * sizeof section,
                  sizeof section);
      if (section.sh_type != SHT_RELA && section.sh_type != SHT_SYMTAB) continue;
      for (std::size_t i = 0; i < section.sh_size; ++i) flip(section.sh_offset + i, std::byte{0xFF});
    }
    EXPECT_GT(refused, tried / 20) << name;
    std::printf("%s: %zu damaged objects, %zu refused\n", name, tried, refused);
  }
}

TEST(host_symbols, only_the_list_resolves) {
  for (const char* name : {"expf", "erf", "memcpy", "fmodf", "__truncsfbf2", "sincosf", "fmaf"})
    EXPECT_NE(find_host_symbol(name), nullptr) << name;
  for (const char* name : {"system", "dlopen", "malloc", "", "exp ", "free"})
    EXPECT_EQ(find_host_symbol(name), nullptr) << name;
}

}  // namespace
}  // namespace kiln
