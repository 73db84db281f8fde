#include "ir/container/container.hpp"

#include <gmock/gmock.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <csignal>
#include <nlohmann/json.hpp>

#include "fixtures.hpp"
#include "ir/container/sections.hpp"
#include "ir/container/weights.hpp"
#include "ir/trust/native_consent.hpp"
#include "test/support/paths.hpp"

using namespace kiln;
using namespace kiln::testing;

namespace {

const section_info& section(const container_info& info, std::string_view kind) {
  for (const section_info& s : info.sections)
    if (s.kind == kind) return s;
  throw std::runtime_error("no section " + std::string(kind));
}

container_extras sample_extras() {
  container_extras extras;
  extras.tuning_hints = R"({"kernel": 1})";
  extras.objects.push_back(
      {blake3("key b"), {{"payload", "bb"}, {"target", "gfx942"}}, bytes_of(std::string(500, 'x'))});
  extras.objects.push_back({blake3("key a"), {{"payload", "aa"}}, {}});
  return extras;
}

}  // namespace

TEST(container, round_trip_keeps_everything) {
  scratch_folder folder;
  program p = rich_program();
  write_program(p, folder / "m.kiln");
  program q = read_program(folder / "m.kiln");
  EXPECT_EQ(q.str(), p.str());
  EXPECT_EQ(q.symbols, p.symbols);
  EXPECT_EQ(q.metadata, p.metadata);
  ASSERT_EQ(q.kernels().size(), 1u);
  EXPECT_EQ(*q.kernels().begin()->second, *p.kernels().begin()->second);
  // Compares what the printed form lacks: origins, and the bits of every literal and attribute.
  auto a = p.modules().begin();
  for (auto b = q.modules().begin(); b != q.modules().end(); ++a, ++b) {
    ASSERT_EQ(a->instructions().size(), b->instructions().size());
    auto x = a->instructions().begin();
    for (auto y = b->instructions().begin(); y != b->instructions().end(); ++x, ++y) {
      EXPECT_EQ(x->op(), y->op());
      EXPECT_EQ(x->origin(), y->origin());
      EXPECT_EQ(x->outputs(), y->outputs());
      if (const auto* c = x->op().get_if<constant>()) {
        EXPECT_EQ(c->data, y->op().get_if<constant>()->data);
      }
      if (const auto* padding = y->op().get_if<pad>()) {
        EXPECT_TRUE(std::signbit(padding->fill));
      }
    }
  }
}

TEST(container, reads_what_it_computes) {
  scratch_folder folder;
  program p = small_program();
  write_program(p, folder / "m.kiln");
  program q = read_program(folder / "m.kiln");
  // The mapping remains valid after the file is deleted.
  std::filesystem::remove(folder / "m.kiln");
  std::vector<literal> inputs{ramp({element_type::f32, {3, 5}}, 1)};
  auto expected = evaluate(p.main(), inputs), got = evaluate(q.main(), inputs);
  ASSERT_EQ(got.size(), 1u);
  EXPECT_EQ(got[0], expected[0]);
  EXPECT_EQ(got[0].at(2), (-2 + 1.0) * 2 + 0.25);
}

TEST(container, a_decoder_has_a_second_program_with_the_same_weights) {
  scratch_folder folder;
  const program p = rich_program(), steps = small_program();
  write_options options;
  options.steps = &steps;
  write_program(p, folder / "m.kiln", options);
  write_program(p, folder / "plain.kiln");
  EXPECT_EQ(read_program(folder / "m.kiln").str(), p.str());
  EXPECT_EQ(read_program(folder / "m.kiln").kernels().size(), p.kernels().size());
  const auto read = read_steps(folder / "m.kiln");
  ASSERT_TRUE(read);
  EXPECT_EQ(read->str(), steps.str());
  EXPECT_FALSE(read_steps(folder / "plain.kiln"));
  options.extras = sample_extras();
  replace_extras(folder / "m.kiln", folder / "extras.kiln", options.extras);
  EXPECT_EQ(read_steps(folder / "extras.kiln")->str(), steps.str());
  check(folder / "extras.kiln");
  // The same weights twice take no more room.
  options = {};
  options.steps = &p;
  write_program(p, folder / "twice.kiln", options);
  EXPECT_EQ(inspect(folder / "twice.kiln").stored_weight_bytes, inspect(folder / "plain.kiln").stored_weight_bytes);
}

TEST(container, literals_outlive_the_program) {
  scratch_folder folder;
  write_program(rich_program(), folder / "m.kiln");
  std::vector<literal> kept;
  {
    program q = read_program(folder / "m.kiln");
    for (const module& m : q.modules())
      for (const instruction& i : m.instructions())
        if (const auto* c = i.op().get_if<constant>()) kept.push_back(c->data);
  }
  int ramps = 0;
  for (const literal& l : kept) ramps += l == ramp({element_type::f32, {2, 3}});
  EXPECT_EQ(ramps, 2);
}

TEST(container, is_deterministic) {
  scratch_folder folder;
  write_options options;
  options.extras = sample_extras();
  write_program(rich_program(), folder / "a.kiln", options);
  std::ranges::reverse(options.extras.objects);
  write_program(rich_program(), folder / "b.kiln", options);
  EXPECT_EQ(read_bytes(folder / "a.kiln"), read_bytes(folder / "b.kiln"));
  write_options again;
  again.extras = sample_extras();
  write_program(read_program(folder / "a.kiln"), folder / "c.kiln", again);
  EXPECT_EQ(read_bytes(folder / "a.kiln"), read_bytes(folder / "c.kiln"));
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}), 3) << "a temporary was left";
}

TEST(container, weights_are_shared_folded_and_aligned) {
  scratch_folder folder;
  write_program(rich_program(), folder / "m.kiln");
  container_info info = inspect(folder / "m.kiln");
  // trips, always, the ramp (three constants, two shapes), ones, nibbles, nothing
  EXPECT_EQ(info.tensors, 6u);
  EXPECT_EQ(info.folded_tensors, 1u);
  EXPECT_EQ(info.full_weight_bytes, 8u + 1 + 24 + 70 + 2 + 0);
  EXPECT_EQ(info.stored_weight_bytes, 8u + 1 + 24 + 2 + 2 + 0);
  EXPECT_EQ(section(info, "weights").offset % 4096, 0u);
  program q = read_program(folder / "m.kiln");
  const std::byte* shared = nullptr;
  int constants = 0;
  for (const module& m : q.modules())
    for (const instruction& i : m.instructions())
      if (const auto* c = i.op().get_if<constant>()) {
        ++constants;
        if (c->data.bytes().size() == 24) {
          EXPECT_EQ(reinterpret_cast<std::uintptr_t>(c->data.bytes().data()) % 64, 0u);
          EXPECT_TRUE(!shared || shared == c->data.bytes().data());
          shared = c->data.bytes().data();
        }
      }
  EXPECT_EQ(constants, 8);
}

TEST(container, folding_keeps_bits) {
  scratch_folder folder;
  program p;
  std::vector<value> outputs;
  std::vector<std::string> names;
  for (int t = 0; t < static_cast<int>(element_type_count); ++t)
    for (double v : {0.0, -0.0, 1.0}) {
      outputs.push_back(p.main().add_constant(literal::filled({static_cast<element_type>(t), {7, 3}}, v)));
      names.push_back("y" + std::to_string(names.size()));
    }
  outputs.push_back(
      p.main().add_constant(literal::filled({element_type::f32, {9}}, std::numeric_limits<double>::quiet_NaN())));
  names.push_back("nan");
  p.main().set_outputs(outputs, names);
  write_program(p, folder / "m.kiln");
  program q = read_program(folder / "m.kiln");
  ASSERT_EQ(q.main().outputs().size(), outputs.size());
  for (std::size_t i = 0; i < outputs.size(); ++i)
    EXPECT_EQ(*module::constant(q.main().outputs()[i]), *module::constant(outputs[i])) << names[i];
  // There are 70 constants. Equal patterns of equal length are stored once, and 21 elements of 4 or 2 bits do not fill
  // the last byte.
  EXPECT_EQ(inspect(folder / "m.kiln").folded_tensors, 23u);
}

// Whoever keeps something about weights looks at what the reader has verified instead of reading them again.
TEST(container, weights_have_the_identity_that_their_file_states) {
  scratch_folder folder;
  const auto written = [&](const char* name, std::vector<float> numbers) {
    program p;
    p.main().set_outputs({p.main().add_constant(literal::of({element_type::f32, {3, 2}}, numbers))}, {"y"});
    write_program(p, folder / name);
    return *module::constant(read_program(folder / name).main().outputs()[0]);
  };
  const literal one = written("one.kiln", {1, 2, 3, 4, 5, 6}), same = written("same.kiln", {1, 2, 3, 4, 5, 6}),
                other = written("other.kiln", {1, 2, 3, 4, 5, 7});
  EXPECT_EQ(one.identity(), same.identity());
  EXPECT_NE(one.identity(), other.identity());
  EXPECT_NE(one.identity(), one.reshaped({2, 3}).identity());
  EXPECT_EQ(one.reshaped({6}).identity(), same.reshaped({6}).identity());
  EXPECT_EQ(one.hash(), same.hash());
  const literal made = literal::of({element_type::f32, {3, 2}}, std::vector<float>{1, 2, 3, 4, 5, 6});
  EXPECT_EQ(made.identity(), made.hash());
}

TEST(container, large_tensors_are_hashed_in_pieces) {
  scratch_folder folder;
  program p;
  std::vector<std::uint32_t> numbers(3'000'001);
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<std::uint32_t>(i * 2654435761u);
  value big = p.main().add_constant(literal::of({element_type::u32, {3'000'001}}, numbers));
  p.main().set_outputs({big}, {"y"});
  write_program(p, folder / "m.kiln");
  EXPECT_EQ(*module::constant(read_program(folder / "m.kiln").main().outputs()[0]), *module::constant(big));
  auto bytes = read_bytes(folder / "m.kiln");
  for (std::size_t at : {bytes.size() - 1, bytes.size() - 6'000'000, bytes.size() - 11'999'000}) {
    bytes[at] ^= std::byte{4};
    write_bytes(folder / "m.kiln", bytes);
    EXPECT_EQ(kind_of_reading(folder / "m.kiln"), error_kind::corrupted) << at;
    bytes[at] ^= std::byte{4};
  }
}

// A program that is about to run does not read weights of which the cache has packed copies.
TEST(container, large_weights_can_be_verified_when_they_are_first_read) {
  scratch_folder folder;
  program p;
  const auto elements = static_cast<std::int64_t>(container::verified_at_once);
  std::vector<value> outputs;
  // A module's last constant is the file's first tensor.
  for (std::int64_t n : {elements, elements / 8}) {
    std::vector<std::uint32_t> numbers(static_cast<std::size_t>(n));
    for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<std::uint32_t>(i * 2654435761u);
    outputs.push_back(p.main().add_constant(literal::of({element_type::u32, {n}}, numbers)));
  }
  p.main().set_outputs(outputs, {"large", "small"});
  write_program(p, folder / "m.kiln");
  const auto later = [&] { return read_program(folder / "m.kiln", native_consent{}, weight_check::when_read); };
  const program whole = later();
  for (std::size_t i : {0, 1}) {
    const literal& read = *module::constant(whole.main().outputs()[i]);
    EXPECT_EQ(read.identity(), module::constant(read_program(folder / "m.kiln").main().outputs()[i])->identity());
    EXPECT_EQ(read, *module::constant(outputs[i]));
  }

  auto bytes = read_bytes(folder / "m.kiln");
  bytes.back() ^= std::byte{4};  // of the large tensor, which is the last
  write_bytes(folder / "m.kiln", bytes);
  EXPECT_EQ(kind_of_reading(folder / "m.kiln"), error_kind::corrupted);
  const program damaged = later();
  EXPECT_EQ(*module::constant(damaged.main().outputs()[1]), *module::constant(outputs[1]));
  const literal& read = *module::constant(damaged.main().outputs()[0]);
  EXPECT_EQ(read.byte_count(), 4 * static_cast<std::size_t>(elements));
  EXPECT_NE(read.address(), nullptr);
  for (const literal& each : {read, read.reshaped({2, elements / 2}), read}) try {
      each.bytes();
      ADD_FAILURE() << "damaged bytes were read";
    } catch (const error& e) {
      EXPECT_EQ(e.kind(), error_kind::corrupted);
      EXPECT_EQ(std::string(e.what()),
                (folder / "m.kiln").string() + ": tensor 1 of the weights does not match its hash");
    }
  EXPECT_THROW(read.at(0), error);
  EXPECT_THROW(read.splat(), error);
  EXPECT_THROW(read.hash(), error);

  bytes.back() ^= std::byte{4};
  bytes[bytes.size() - 4 * static_cast<std::size_t>(elements) - 64] ^= std::byte{1};  // of the small one
  write_bytes(folder / "m.kiln", bytes);
  EXPECT_THROW(later(), error);
}

TEST(container, manifest_is_for_people) {
  scratch_folder folder;
  write_program(rich_program(), folder / "m.kiln");
  container_info info = inspect(folder / "m.kiln");
  auto manifest = nlohmann::json::parse(info.manifest);
  EXPECT_EQ(manifest["kiln_version"], std::string(kiln_version()));
  EXPECT_EQ(manifest["format_version"], 1);
  EXPECT_EQ(manifest["kernels"], 1);
  EXPECT_EQ(manifest["inputs"][0],
            (nlohmann::json{{"name", "image"}, {"type", "f32"}, {"dims", {"batch", "1+2*batch", 3}}}));
  EXPECT_EQ(manifest["symbols"]["batch"]["max"], 64);
  EXPECT_EQ(manifest["metadata"]["options"], "--fp16");
  EXPECT_EQ(info.manifest.find(folder.path().string()), std::string::npos);
  auto bytes = read_bytes(folder / "m.kiln");
  std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  EXPECT_NE(text.find("\"kiln_version\""), std::string::npos) << "the manifest should be readable without Kiln";
}

TEST(container, extras_are_replaced_without_touching_the_rest) {
  scratch_folder folder;
  write_program(rich_program(), folder / "plain.kiln");
  EXPECT_TRUE(read_extras(folder / "plain.kiln").objects.empty());
  replace_extras(folder / "plain.kiln", folder / "rich.kiln", sample_extras());
  container_extras extras = read_extras(folder / "rich.kiln");
  EXPECT_EQ(extras.tuning_hints, sample_extras().tuning_hints);
  EXPECT_THAT(extras.objects, ::testing::UnorderedElementsAreArray(sample_extras().objects));
  EXPECT_EQ(read_program(folder / "rich.kiln").str(), read_program(folder / "plain.kiln").str());
  for (const char* kind : {"manifest", "program", "kernels", "weights_index", "weights"})
    EXPECT_EQ(section(inspect(folder / "rich.kiln"), kind).hash, section(inspect(folder / "plain.kiln"), kind).hash)
        << kind;
  auto original = read_bytes(folder / "plain.kiln");
  replace_extras(folder / "rich.kiln", folder / "rich.kiln", {});
  EXPECT_EQ(read_bytes(folder / "rich.kiln"), original);
}

// When this fails the format has changed: bump container::format_version, keep reading the versions before, and add a
// golden file (golden_v2.bin is in stripped_test.cpp).
TEST(container, golden_header) {
  container::file_header header;
  header.written_by = {0, 1, 0};
  header.file_bytes = 0x1122334455;
  header.sections.push_back({container::section_kind::kernels, container::codec::zstd, 128, 9, 70, blake3("x")});
  auto bytes = container::encode_header(header);
  ASSERT_EQ(bytes.size(), 128u);
  std::string hex;
  for (std::byte b : bytes)
    hex += "0123456789abcdef"[static_cast<int>(b) >> 4], hex += "0123456789abcdef"[static_cast<int>(b) & 15];
  EXPECT_EQ(hex.substr(0, 64),
            "894b494c4e0d0a1a"
            "01000000"
            "01000000"
            "5544332211000000"
            "0000"
            "0100"
            "0000"
            "0000");
  EXPECT_EQ(hex.substr(128),
            "02000000"
            "01000000"
            "8000000000000000"
            "0900000000000000"
            "4600000000000000" +
                blake3("x").hex());
  std::string_view frame(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  EXPECT_EQ(hex.substr(64, 64), blake3(std::string(frame.substr(0, 32)) + std::string(frame.substr(64))).hex());
  EXPECT_EQ(container::format_version, 2u) << "add the golden bytes of the new version";
}

// Every later version must read the golden file of every released one. The newest golden file must also equal what is
// written today.
TEST(container, golden_file) {
  scratch_folder folder;
  std::filesystem::path golden = kiln::testing::source_folder() / "test/ir/container/golden_v1.bin";
  program p = read_program(golden);
  EXPECT_EQ(p.str(), small_program().str());
  std::vector<literal> inputs{ramp({element_type::f32, {3, 5}}, 1)};
  EXPECT_EQ(evaluate(p.main(), inputs)[0].at(2), (-2 + 1.0) * 2 + 0.25);
  write_program(small_program(), folder / "m.kiln");
  for (auto kind :
       {container::section_kind::program, container::section_kind::kernels, container::section_kind::weights_index}) {
    container::open_container old(golden), now(folder / "m.kiln");
    // Compare uncompressed bytes, because the output of zstd may differ between its versions.
    auto a = old.raw(kind), b = now.raw(kind);
    EXPECT_TRUE(std::ranges::equal(a, b))
        << "section " << enum_name(kind)
        << " changed: bump the format version, or say why readers do not care and renew the golden file";
  }
}

TEST(container, version_is_refused_with_what_is_needed) {
  scratch_folder folder;
  write_program(small_program(), folder / "m.kiln");
  auto bytes = read_bytes(folder / "m.kiln");
  bytes[8] = std::byte{7};   // format version
  bytes[26] = std::byte{9};  // minor version of the writer
  write_bytes(folder / "m.kiln", bytes);
  try {
    read_program(folder / "m.kiln");
    FAIL();
  } catch (const error& e) {
    EXPECT_EQ(e.kind(), error_kind::newer_version);
    EXPECT_THAT(e.what(), ::testing::AllOf(::testing::HasSubstr("m.kiln"), ::testing::HasSubstr("version 7"),
                                           ::testing::HasSubstr("needs Kiln 0.9.0")));
  }
}

TEST(container, what_cannot_be_opened_is_missing) {
  scratch_folder folder;
  EXPECT_EQ(kind_of_reading(folder / "absent.kiln"), error_kind::missing_file);
  EXPECT_EQ(kind_of_reading(folder.path()), error_kind::missing_file);
  EXPECT_EQ(kind_of_reading("/dev/null"), error_kind::missing_file);
  write_bytes(folder / "empty.kiln", {});
  EXPECT_EQ(kind_of_reading(folder / "empty.kiln"), error_kind::truncated);
  write_bytes(folder / "text.kiln", bytes_of("hello"));
  EXPECT_EQ(kind_of_reading(folder / "text.kiln"), error_kind::corrupted);
}

TEST(container, refuses_to_write_what_is_not_whole) {
  scratch_folder folder;
  program p = small_program();
  value v = p.main().add(
      code_object::make("k", code_format::mlir_bytecode, blake3("absent"), "", {{element_type::f32, {1}}}), {});
  p.main().set_outputs({v}, {"y"});
  EXPECT_THROW(write_program(p, folder / "m.kiln"), error);
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST(container, failed_write_leaves_the_old_file) {
  scratch_folder folder;
  write_program(small_program(), folder / "m.kiln");
  auto before = read_bytes(folder / "m.kiln");
  pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    ::signal(SIGXFSZ, SIG_IGN);
    rlimit limit{3000, 3000};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    int result = 1;
    try {
      write_program(rich_program(), folder / "m.kiln");
    } catch (const error& e) {
      result = e.kind() == error_kind::io && std::string(e.what()).find("m.kiln") != std::string::npos ? 0 : 2;
    }
    ::_exit(result);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_EQ(read_bytes(folder / "m.kiln"), before);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}), 1) << "a temporary was left";
}

TEST(container, unwritable_folder_is_an_io_error) {
  try {
    write_program(small_program(), "/proc/no/such/folder/m.kiln");
    FAIL();
  } catch (const error& e) {
    EXPECT_EQ(e.kind(), error_kind::io);
  }
}
