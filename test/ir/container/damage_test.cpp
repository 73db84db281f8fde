// Reads every truncation and every flipped byte of a small file, and files that are intact but malicious.
#include <gtest/gtest.h>

#include <random>

#include "fixtures.hpp"
#include "forge.hpp"
#include "ir/container/flat.hpp"
#include "ir/container/format.hpp"
#include "ir/container/program_section.hpp"
#include "ir/container/sections.hpp"

using namespace kiln;
using namespace kiln::testing;
using namespace kiln::container;

namespace {

bool is_refusal(error_kind kind) {
  return kind == error_kind::truncated || kind == error_kind::corrupted || kind == error_kind::newer_version ||
         kind == error_kind::unsupported;
}

write_options with_extras() {
  write_options options;
  options.extras.tuning_hints = "hint";
  options.extras.objects.push_back({blake3("k"), {{"target", "gfx942"}}, bytes_of("object")});
  return options;
}

}  // namespace

TEST(damage, every_truncation_is_noticed) {
  scratch_folder folder;
  write_program(small_program(), folder / "m.kiln", with_extras());
  auto bytes = read_bytes(folder / "m.kiln");
  ASSERT_LT(bytes.size(), 8192u);
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    write_bytes(folder / "m.kiln", std::span(bytes).first(size));
    EXPECT_EQ(kind_of_reading(folder / "m.kiln"), error_kind::truncated) << size;
  }
  bytes.push_back(std::byte{0});
  write_bytes(folder / "m.kiln", bytes);
  EXPECT_EQ(kind_of_reading(folder / "m.kiln"), error_kind::corrupted);
}

TEST(damage, every_flipped_byte_is_noticed) {
  scratch_folder folder;
  write_program(small_program(), folder / "m.kiln", with_extras());
  const auto bytes = read_bytes(folder / "m.kiln");
  std::size_t table_end = header_bytes + inspect(folder / "m.kiln").sections.size() * table_row_bytes, refused = 0;
  auto try_one = [&](std::size_t at, std::byte flip) {
    auto damaged = bytes;
    damaged[at] ^= flip;
    write_bytes(folder / "m.kiln", damaged);
    auto kind = kind_of_reading(folder / "m.kiln");
    EXPECT_TRUE(kind && is_refusal(*kind))
        << "byte " << at << " ^ " << static_cast<int>(flip) << ": " << (kind ? name(*kind) : "accepted");
    refused += kind.has_value();
  };
  for (std::size_t at = 0; at < bytes.size(); ++at) try_one(at, std::byte{0xff});
  for (std::size_t bit = 0; bit < table_end * 8; ++bit) try_one(bit / 8, std::byte(1u << (bit % 8)));
  EXPECT_EQ(refused, bytes.size() + table_end * 8);
}

TEST(damage, resigned_sections_never_crash) {
  scratch_folder folder;
  const program steps = small_program();
  write_options options = with_extras();
  options.steps = &steps;
  write_program(rich_program(), folder / "m.kiln", options);
  const forge original(folder / "m.kiln");
  std::mt19937 random(7);
  int refused = 0, read = 0;
  auto attempt = [&](forge& f) {
    f.write(folder / "forged.kiln");
    try {
      program p = read_program(folder / "forged.kiln");
      p.validate();
      p.str();
      if (const auto in_place = read_steps(folder / "forged.kiln")) in_place->str();
      ++read;
    } catch (const error& e) {
      EXPECT_TRUE(is_refusal(e.kind())) << name(e.kind()) << ": " << e.what();
      ++refused;
    }
  };
  for (auto kind : {section_kind::program, section_kind::weights_index, section_kind::kernels, section_kind::objects,
                    section_kind::manifest, section_kind::steps}) {
    forge f = original;
    std::size_t size = f[kind].size();
    // Changes every byte once, with values that make lengths and offsets invalid in turn.
    constexpr std::byte values[] = {std::byte{0xff}, std::byte{0}, std::byte{0x7f}, std::byte{0x80}, std::byte{1}};
    for (std::size_t at = 0; at < size; ++at) {
      std::byte old = f[kind][at];
      f[kind][at] = values[random() % 5] == old ? old ^ std::byte{1} : values[random() % 5];
      attempt(f);
      f[kind][at] = old;
    }
    for (int round = 0; round < 200; ++round) {
      forge g = original;
      for (int edits = 1 + static_cast<int>(random() % 4); edits > 0; --edits)
        g[kind][random() % size] = std::byte(random());
      attempt(g);
    }
    for (std::size_t keep = 0; keep < size; keep += 1 + size / 97) {
      forge g = original;
      g[kind].resize(keep);
      attempt(g);
    }
  }
  EXPECT_GT(refused, 1000);
  EXPECT_GT(read, 10) << "the forger breaks everything: the test reaches nothing";
}

TEST(damage, zip_bomb_is_refused) {
  scratch_folder folder;
  write_program(small_program(), folder / "m.kiln");
  forge f(folder / "m.kiln");
  // A quarter of a GiB of zeros in a few KiB, with correct sizes.
  std::vector<std::byte> zeros(std::size_t{1} << 28);
  packed_section bomb = pack(section_kind::tuning_hints, zeros, 3);
  EXPECT_EQ(bomb.codec, container::codec::raw) << "the writer keeps to what readers accept";
  file_header header;
  header.sections.push_back({section_kind::program, container::codec::zstd, 128, 100, std::uint64_t{1} << 30, {}});
  header.file_bytes = 228;
  auto bytes = encode_header(header);
  bytes.resize(228);
  EXPECT_THROW(decode_header(bytes), error);
  // The header of a frame contradicts the table.
  for (packed_section& s : f.sections)
    if (s.kind == section_kind::program) {
      packed_section honest = pack(s.kind, std::vector<std::byte>(100'000), 3);
      s = honest;
      s.raw_bytes = 99'999;
    }
  for (packed_section& s : f.sections)
    s.hash = blake3(s.stored), s.raw_bytes = s.codec == container::codec::raw ? s.stored.size() : s.raw_bytes;
  write_container(folder / "bomb.kiln", header, f.sections,
                  {f.weights.size(), [&](output_file& out) { out.write(f.weights); }});
  EXPECT_EQ(kind_of_reading(folder / "bomb.kiln"), error_kind::corrupted);
}

TEST(damage, weights_index_that_lies_is_refused) {
  scratch_folder folder;
  write_program(small_program(), folder / "m.kiln");
  const forge original(folder / "m.kiln");
  const auto tensors = decode_weights_index(forge(original)[section_kind::weights_index], original.weights.size());
  ASSERT_EQ(tensors.size(), 2u);
  auto refused = [&](auto edit) {
    auto changed = tensors;
    edit(changed);
    forge f = original;
    f[section_kind::weights_index] = encode_weights_index(changed);
    f.write(folder / "lie.kiln");
    auto kind = kind_of_reading(folder / "lie.kiln");
    return kind && is_refusal(*kind);
  };
  EXPECT_FALSE(refused([](auto&) {}));
  EXPECT_TRUE(refused([](auto& t) { t[0].offset = UINT64_MAX - 63; }));
  EXPECT_TRUE(refused([](auto& t) { t[1].offset = 0; }));
  EXPECT_TRUE(refused([](auto& t) { t[1].stored_bytes = UINT64_MAX; }));
  EXPECT_TRUE(refused([](auto& t) { t[0].stored_bytes = t[0].full_bytes = UINT64_MAX; }));
  EXPECT_TRUE(refused([](auto& t) { t[0].full_bytes = std::uint64_t{1} << 45; }));
  EXPECT_TRUE(refused([](auto& t) { t[1].stored_bytes = 0; }));
  EXPECT_TRUE(refused([](auto& t) { t[0].hash.bytes[5] ^= 1; }));
  EXPECT_TRUE(refused([](auto& t) { t.pop_back(); }));
  EXPECT_TRUE(refused([](auto& t) { std::swap(t[0], t[1]); }));
}

TEST(damage, huge_folded_tensor_is_unsupported_not_fatal) {
  std::vector<stored_tensor> tensors{{0, 4, std::uint64_t{1} << 44, blake3(bytes_of("\1\2\3\4"))}};
  auto section = bytes_of("\1\2\3\4");
  weight_source weights(tensors, section, std::make_shared<int>(0), std::numeric_limits<std::uint64_t>::max(),
                        "weights");
  try {
    weights.get(0, {element_type::f32, {std::int64_t{1} << 42}});
    FAIL();
  } catch (const error& e) {
    EXPECT_EQ(e.kind(), error_kind::unsupported);
  }
}

TEST(damage, shapes_that_overflow_are_refused) {
  using dims = std::vector<dim>;
  std::int64_t big = std::int64_t{1} << 32;
  for (const dims& d : {dims{big, big}, dims{big, big, big, 0, -1}, dims{-1}, dims{INT64_MAX},
                        dims{std::int64_t{1} << 47}, dims{dim::symbol("n")}})
    EXPECT_THROW(checked_bytes({element_type::f64, d}), error);
  EXPECT_EQ(checked_bytes({element_type::i4, {3}}), 2u);
  EXPECT_EQ(checked_bytes({element_type::f64, {big, 0}}), 0u);
  EXPECT_EQ(checked_bytes({element_type::f64, {}}), 8u);
}

TEST(damage, deep_manifest_is_refused) {
  EXPECT_NO_THROW(verify_manifest(R"({"a": [[1]]})"));
  EXPECT_THROW(verify_manifest(std::string(1'000'000, '[')), error);
  EXPECT_THROW(verify_manifest("{\"a\":" + std::string(100, '[') + std::string(100, ']') + "}"), error);
  EXPECT_THROW(verify_manifest("[]"), error);
  EXPECT_THROW(verify_manifest("{"), error);
}

namespace {

namespace fb = flatbuffers;

// Builds a program section by hand; `build` makes the modules.
std::vector<std::byte> program_with(
    const std::function<std::vector<fb::Offset<schema::Module>>(fb::FlatBufferBuilder&)>& build) {
  fb::FlatBufferBuilder out;
  auto modules = out.CreateVector(build(out));
  return finish(out, schema::CreateProgram(out, modules), program_identifier);
}

std::optional<error_kind> kind_of_decoding(const std::vector<std::byte>& section) {
  weight_source none({}, {}, nullptr, 0, "none");
  try {
    decode_program(section, [&](std::uint32_t tensor, shape type) { return none.get(tensor, std::move(type)); });
  } catch (const error& e) {
    return e.kind();
  }
  return std::nullopt;
}

}  // namespace

TEST(damage, modules_that_enter_themselves_are_refused) {
  auto section = program_with([](fb::FlatBufferBuilder& out) {
    auto op = out.CreateString("loop");
    auto self = out.CreateVector(std::vector<std::uint32_t>{0});
    auto loop_of_itself = schema::CreateInstruction(out, op, 0, 0, self);
    auto list = out.CreateVector(&loop_of_itself, 1);
    return std::vector{schema::CreateModule(out, out.CreateString("main"), list)};
  });
  EXPECT_EQ(kind_of_decoding(section), error_kind::corrupted);
}

TEST(damage, strings_shared_to_death_are_refused) {
  // One long string that ten thousand attributes of an instruction refer to.
  auto section = program_with([](fb::FlatBufferBuilder& out) {
    auto text = schema::CreateText(out, out.CreateString(std::string(1 << 20, 'x'))).Union();
    auto label = out.CreateString("a");
    std::vector<fb::Offset<schema::Attribute>> attributes(
        10'000, schema::CreateAttribute(out, label, schema::AttributeValue::Text, text));
    auto attribute_list = out.CreateVector(attributes);
    auto i = schema::CreateInstruction(out, out.CreateString("relu"), attribute_list);
    auto list = out.CreateVector(&i, 1);
    return std::vector{schema::CreateModule(out, out.CreateString("main"), list)};
  });
  EXPECT_EQ(kind_of_decoding(section), error_kind::corrupted);
}

TEST(damage, unknown_operation_is_unsupported) {
  auto section = program_with([](fb::FlatBufferBuilder& out) {
    auto i = schema::CreateInstruction(out, out.CreateString("teleport"));
    auto list = out.CreateVector(&i, 1);
    return std::vector{schema::CreateModule(out, out.CreateString("main"), list)};
  });
  EXPECT_EQ(kind_of_decoding(section), error_kind::unsupported);
}

TEST(damage, values_out_of_order_are_refused) {
  for (std::uint32_t producer : {0u, 1u, 4'000'000'000u}) {
    auto section = program_with([&](fb::FlatBufferBuilder& out) {
      schema::Value v(producer, 0);
      auto inputs = out.CreateVectorOfStructs(&v, 1);
      auto i = schema::CreateInstruction(out, out.CreateString("relu"), 0, inputs);
      auto list = out.CreateVector(&i, 1);
      return std::vector{schema::CreateModule(out, out.CreateString("main"), list)};
    });
    EXPECT_EQ(kind_of_decoding(section), error_kind::corrupted);
  }
}
