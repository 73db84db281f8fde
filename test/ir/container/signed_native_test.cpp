// Native code objects in a file are read only if a trusted key has signed exactly this program.
#include "ir/container/signed_native.hpp"

#include <gmock/gmock.h>

#include "forge.hpp"
#include "ir/container/native_signature.hpp"
#include "ir/native_kernel.hpp"
#include "ir/trust/native_consent.hpp"

using namespace kiln;
using namespace kiln::testing;
using container::section_kind;
using ::testing::HasSubstr;

namespace {

signing_key key_of_seed(std::uint8_t first) { return signing_key::from_seed({first}); }
native_consent trusting(std::uint8_t first) { return {.only = trusted_keys({key_of_seed(first).public_half()})}; }

program native_program(const char* symbol = "kernel", std::int64_t rows = 2) {
  program p;
  native_kernel kernel;
  kernel.object.resize(64, std::byte{7});
  kernel.launches.push_back({.symbol = symbol, .arguments = {{buffer_kind::input, 0}, {buffer_kind::output, 0}}});
  shape type{element_type::f32, {rows, 3}};
  value x = p.main().add_parameter("x", type);
  value w = p.main().add_constant(ramp(type));
  p.main().set_outputs(
      {p.main().add(
           code_object::make(symbol, code_format::native, p.add_kernel(serialize(kernel)), "x86-64-v3", {type}), {x}),
       w},
      {"y", "w"});
  return p;
}

// A kernel in amdgcnspirv that is none of Kiln's own. `stated`: its format, as the file says.
program custom_program(code_format stated, std::int64_t rows = 2) {
  program p;
  std::vector<std::byte> payload(64, std::byte{1});
  const std::string_view magic = "KSPV";
  std::ranges::copy(std::as_bytes(std::span(magic)), payload.begin() + 4);
  shape type{element_type::f32, {rows, 3}};
  value x = p.main().add_parameter("x", type);
  p.main().set_outputs({p.main().add(code_object::make("mine", stated, p.add_kernel(payload), "", {type}), {x})},
                       {"y"});
  return p;
}

void expect_untrusted(const std::filesystem::path& file, const native_consent& consent, const char* why) {
  try {
    read_program(file, consent);
    ADD_FAILURE() << "read in spite of: " << why;
  } catch (const error& e) {
    EXPECT_EQ(e.kind(), error_kind::untrusted);
    EXPECT_THAT(e.what(), HasSubstr(why));
    EXPECT_THAT(e.what(), HasSubstr(file.string()));
    EXPECT_THAT(e.what(), HasSubstr("--allow-unsigned-native"));
  }
}

}  // namespace

TEST(signed_native, who_may_read_it) {
  scratch_folder folder;
  program p = native_program();
  write_program(p, folder / "bare.kiln");
  expect_untrusted(folder / "bare.kiln", {}, "is not signed");
  expect_untrusted(folder / "bare.kiln", trusting(1), "is not signed");
  EXPECT_THROW(read_program(folder / "bare.kiln"), error) << "nobody is trusted unless somebody says so";
  EXPECT_EQ(read_program(folder / "bare.kiln", {.allow_unsigned = true}).str(), p.str());
  EXPECT_NO_THROW(check(folder / "bare.kiln")) << "looking is not running";

  const signing_key key = key_of_seed(1);
  write_options options;
  options.sign_with = &key;
  write_program(p, folder / "signed.kiln", options);
  EXPECT_EQ(read_program(folder / "signed.kiln", trusting(1)).str(), p.str());
  expect_untrusted(folder / "signed.kiln", trusting(2), to_hex(key.public_half()).c_str());
  expect_untrusted(folder / "signed.kiln", {}, "which is not trusted");
  auto first = read_bytes(folder / "signed.kiln");
  write_program(p, folder / "signed.kiln", options);
  EXPECT_EQ(read_bytes(folder / "signed.kiln"), first) << "the same key makes the same bytes";
  // Extras can change without the program, and the signature remains valid.
  container_extras extras;
  extras.tuning_hints = "hints";
  replace_extras(folder / "signed.kiln", folder / "signed.kiln", extras);
  EXPECT_EQ(read_program(folder / "signed.kiln", trusting(1)).str(), p.str());

  // Portable files need no signature and get none.
  program portable;
  portable.main().set_outputs({portable.main().add_parameter("x", {element_type::f32, {2}})}, {"y"});
  write_program(portable, folder / "portable.kiln", options);
  EXPECT_NO_THROW(read_program(folder / "portable.kiln"));
  EXPECT_EQ(inspect(folder / "portable.kiln").sections.size(), 5u);
}

TEST(signed_native, the_key_of_this_user) {
  scratch_folder folder;
  auto keys = std::make_shared<user_keys>(folder / "config");
  write_options options;
  options.sign_with = keys->own();
  write_program(native_program(), folder / "m.kiln", options);
  EXPECT_NO_THROW(read_program(folder / "m.kiln", {.user = keys}));
  EXPECT_NO_THROW(read_program(folder / "m.kiln", {.user = std::make_shared<user_keys>(folder / "config")}));
  expect_untrusted(folder / "m.kiln", {.user = std::make_shared<user_keys>(folder / "other")}, "which is not trusted");
  expect_untrusted(folder / "m.kiln", {.only = trusted_keys({key_of_seed(1).public_half()}), .user = keys},
                   "which is not trusted");
}

// HIP kernels can address anything, so those of custom operators need a signature as native code does.
TEST(signed_native, custom_operators_need_a_signature) {
  scratch_folder folder;
  const signing_key key = key_of_seed(1);
  // Compilers recognize the payload, whatever format the file states.
  for (code_format stated : {code_format::amdgcnspirv, code_format::mlir_bytecode}) {
    const program p = custom_program(stated);
    write_program(p, folder / "bare.kiln");
    expect_untrusted(folder / "bare.kiln", {}, "custom operators are HIP kernels, whose code is not signed");
    expect_untrusted(folder / "bare.kiln", trusting(1), "is not signed");
    EXPECT_EQ(read_program(folder / "bare.kiln", {.allow_unsigned = true}).str(), p.str());
    EXPECT_NO_THROW(check(folder / "bare.kiln"));
    write_options options;
    options.sign_with = &key;
    write_program(p, folder / "signed.kiln", options);
    EXPECT_EQ(read_program(folder / "signed.kiln", trusting(1)).str(), p.str());
    expect_untrusted(folder / "signed.kiln", trusting(2), "which is not trusted");
    // Signing a file that is there already.
    EXPECT_TRUE(sign_native_code(folder / "bare.kiln", key));
    EXPECT_EQ(read_program(folder / "bare.kiln", trusting(1)).str(), p.str());
    EXPECT_EQ(read_native_signature(folder / "bare.kiln").signer, key.public_half());
  }
}

// The same in the second program of a decoder. The signature covers both.
TEST(signed_native, steps_with_custom_operators_need_a_signature) {
  scratch_folder folder;
  const signing_key key = key_of_seed(1);
  program portable;
  portable.main().set_outputs({portable.main().add_parameter("x", {element_type::f32, {2}})}, {"y"});
  const program steps = custom_program(code_format::amdgcnspirv), others = custom_program(code_format::amdgcnspirv, 4);
  write_options options;
  options.steps = &steps;
  write_program(portable, folder / "bare.kiln", options);
  options.sign_with = &key;
  write_program(portable, folder / "signed.kiln", options);
  options.steps = &others;
  write_program(portable, folder / "others.kiln", options);
  auto untrusted = [&](const char* file, const native_consent& consent) {
    try {
      read_steps(folder / file, consent);
      return false;
    } catch (const error& e) {
      return e.kind() == error_kind::untrusted || e.kind() == error_kind::corrupted;
    }
  };
  EXPECT_TRUE(untrusted("bare.kiln", trusting(1)));
  EXPECT_TRUE(untrusted("signed.kiln", {}));
  EXPECT_TRUE(untrusted("signed.kiln", trusting(2)));
  EXPECT_EQ(read_steps(folder / "signed.kiln", trusting(1))->str(), steps.str());
  EXPECT_EQ(read_steps(folder / "bare.kiln", {.allow_unsigned = true})->str(), steps.str());
  // The steps of one signed file in another.
  const container::weights_section nothing{0, [](container::output_file&) {}};
  auto packed = [&](const char* file) {
    container::open_container opened(folder / file);
    std::vector<container::packed_section> sections;
    for (const container::section_row& row : opened.header().sections)
      if (row.kind != section_kind::weights) sections.push_back(opened.packed(row.kind));
    return sections;
  };
  auto sections = packed("signed.kiln");
  for (const auto& other : packed("others.kiln"))
    for (auto& s : sections)
      if (s.kind == other.kind && s.kind == section_kind::steps) s = other;
  container::write_container(folder / "evil.kiln", container::file_header(), sections, nothing);
  EXPECT_TRUE(untrusted("evil.kiln", trusting(1)));
  // Without its steps the file is another one.
  std::erase_if(sections, [](const auto& s) { return s.kind == section_kind::steps; });
  container::write_container(folder / "evil.kiln", container::file_header(), sections, nothing);
  EXPECT_FALSE(read_steps(folder / "evil.kiln", trusting(1)));
}

// A decoder's second program may not hold native code.
TEST(signed_native, steps_with_native_code_are_refused) {
  scratch_folder folder;
  const signing_key key = key_of_seed(1);
  program portable;
  portable.main().set_outputs({portable.main().add_parameter("x", {element_type::f32, {2}})}, {"y"});
  write_options options;
  options.sign_with = &key;
  write_program(portable, folder / "portable.kiln");
  write_program(native_program(), folder / "native.kiln", options);
  forge native(folder / "native.kiln");
  const auto code = native[section_kind::program];
  for (const char* file : {"portable.kiln", "native.kiln"}) {
    forge evil(folder / file);
    evil[section_kind::kernels] = native[section_kind::kernels];
    evil[section_kind::weights_index] = native[section_kind::weights_index];
    evil.weights = native.weights;
    const auto before = std::ranges::find(evil.sections, section_kind::weights_index, &container::packed_section::kind);
    evil.sections.insert(std::next(before), {section_kind::steps, container::codec::raw, code.size(), {}, code});
    evil.write(folder / "evil.kiln");
    try {
      read_steps(folder / "evil.kiln");
      ADD_FAILURE() << file;
    } catch (const error& e) {
      EXPECT_EQ(e.kind(), error_kind::corrupted);
      EXPECT_THAT(e.what(), HasSubstr("the steps of a decoder have native code")) << file;
    }
  }
}

// Modifies one section of a signed file and recomputes every hash, as an attacker who knows the format could.
TEST(signed_native, nothing_can_be_changed_or_moved) {
  scratch_folder folder;
  const signing_key key = key_of_seed(1), mallory = key_of_seed(9);
  write_options options;
  options.sign_with = &key;
  write_program(native_program(), folder / "good.kiln", options);
  forge again(folder / "good.kiln");
  again.write(folder / "same.kiln");
  EXPECT_THROW(read_program(folder / "same.kiln", trusting(1)), error) << "even other compression is another file";
  auto refused = [&](const char* what, auto change) {
    container::open_container opened(folder / "good.kiln");
    std::vector<container::packed_section> sections;
    for (const container::section_row& row : opened.header().sections)
      if (row.kind != section_kind::weights) sections.push_back(opened.packed(row.kind));
    std::vector<std::byte> weights(opened.weights().begin(), opened.weights().end());
    change(sections, weights);
    container::write_container(folder / "evil.kiln", opened.header(), sections,
                               {weights.size(), [&](container::output_file& out) { out.write(weights); }});
    EXPECT_THROW(read_program(folder / "evil.kiln", trusting(1)), error) << what;
    EXPECT_THROW(read_program(folder / "evil.kiln"), error) << what;
  };
  auto section = [](auto& sections, section_kind kind) -> container::packed_section& {
    return *std::ranges::find(sections, kind, &container::packed_section::kind);
  };
  auto section_of = [&](const program& p, section_kind kind, const signing_key* with) {
    write_options other;
    other.sign_with = with;
    write_program(p, folder / "other.kiln", other);
    return container::open_container(folder / "other.kiln").packed(kind);
  };
  const program renamed = native_program("other"), larger = native_program("kernel", 4);
  refused("no signature", [&](auto& s, auto&) { s.pop_back(); });
  refused("another launch table", [&](auto& s, auto&) {
    section(s, section_kind::kernels) = section_of(renamed, section_kind::kernels, nullptr);
    section(s, section_kind::program) = section_of(renamed, section_kind::program, nullptr);
  });
  refused("the same kernel on other shapes", [&](auto& s, auto&) {
    for (auto kind : {section_kind::program, section_kind::weights_index})
      section(s, kind) = section_of(larger, kind, nullptr);
  });
  refused("the signature of another file", [&](auto& s, auto&) {
    section(s, section_kind::signature) = section_of(renamed, section_kind::signature, &key);
  });
  refused("another signer",
          [&](auto& s, auto&) { section(s, section_kind::signature) = container::sign_native(s, mallory); });
  refused("another signer's key before the signature", [&](auto& s, auto&) {
    auto& block = section(s, section_kind::signature);
    auto theirs = container::sign_native(s, mallory);
    std::copy_n(theirs.stored.begin() + 8, 32, block.stored.begin() + 8);
    block.hash = blake3(block.stored);
  });
  refused("no block", [&](auto& s, auto&) {
    auto& block = section(s, section_kind::signature);
    block.stored.resize(40);
    block.raw_bytes = 40;
    block.hash = blake3(block.stored);
  });
  refused("other weights", [&](auto&, auto& weights) { weights[0] ^= std::byte{1}; });
  for (std::size_t bit = 0; bit < signature_bytes * 8; ++bit)
    refused("a flipped bit", [&](auto& s, auto&) {
      auto& block = section(s, section_kind::signature);
      block.stored[bit / 8] ^= std::byte(1u << (bit % 8));
      block.hash = blake3(block.stored);
    });
}
