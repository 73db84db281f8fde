// Tuning records: their contents, merging, and the handling of files that are damaged, newer or unrelated.
#include "jit/tuning/tuning_records.hpp"

#include <gtest/gtest.h>

#include <fmt/format.h>

#include <fstream>
#include <random>

#include "ir/error.hpp"
#include "jit/cache/transfer.hpp"
#include "jit/tuning/device_class.hpp"
#include "jit/tuning/tuning_hints.hpp"
#include "test/support/scratch_folder.hpp"

using namespace kiln;
namespace fs = std::filesystem;

namespace {

const std::string payload(64, 'a');
const std::vector<shape> inputs{{element_type::f32, {4, 8}}, {element_type::f16, {8, 2}}},
    outputs{{element_type::f32, {4, 2}}};
constexpr const char* here = "cpu test 2 threads";
const compiler_identity ours{"0c", "22.1.0"}, older{"9a", "22.1.0"}, oldest{"pipeline 5", "21.0.0"};

tuning_session random_session(std::mt19937& engine, compiler_identity compiler) {
  tuning_session s;
  s.compiler = compiler;
  s.tuned_at = static_cast<std::int64_t>(engine() % 5);
  s.generation = 1 + static_cast<int>(engine() % 2);
  s.effort = static_cast<tuning_effort>(engine() % 4);
  s.complete = engine() % 2 == 0;
  if (engine() % 2) s.winner = {{"tile_m", static_cast<std::int64_t>(engine() % 4)}, {"tile_n", 16}};
  s.default_ms = 1 + static_cast<double>(engine() % 5) / 7;
  s.winner_ms = s.default_ms / 3;
  s.error = 1e-7;
  for (unsigned i = engine() % 4; i > 0; --i) {
    candidate_result c{{{"tile_m", i}},
                       static_cast<candidate_outcome>(engine() % 6),
                       0.1 * i,
                       0.05,
                       0.3,
                       static_cast<int>(engine() % 3),
                       ""};
    if (c.samples == 0) c.ms = c.low_ms = c.high_ms = 0;
    if (c.outcome != candidate_outcome::measured) c.reason = "because \"of\"\n" + std::to_string(engine() % 9);
    s.candidates.push_back(c);
  }
  return s;
}

tuning_record random_record(std::mt19937& engine) {
  tuning_record r{identify(payload, inputs, outputs, here), {}};
  for (int compiler = 9; compiler > 3; --compiler)
    if (engine() % 2) r.sessions.push_back(random_session(engine, {fmt::format("{:02x}", compiler), "22"}));
  return merge({r.identity, {}}, r);
}

class records_test : public ::testing::Test {
 protected:
  tuning_records open(const std::string& hints = {}, std::vector<fs::path> layers = {}) {
    return tuning_records({.folder = folder.path() / "cache",
                           .layers = std::move(layers),
                           .device_class = here,
                           .compiler = ours,
                           .hints = hints});
  }
  tuning_record record(const compiler_identity& compiler, kernel_configuration winner,
                       const char* device_class = here) {
    tuning_session s;
    s.compiler = compiler;
    s.tuned_at = compiler == ours ? 30 : compiler == older ? 20 : 10;
    s.effort = tuning_effort::full;
    s.winner = std::move(winner);
    s.default_ms = 2;
    s.winner_ms = 1;
    return {identify(payload, inputs, outputs, device_class), {s}};
  }
  fs::path file() const {
    for (const auto& e : fs::directory_iterator(folder.path() / "cache" / "records"))
      if (e.path().string().ends_with(".kernel.json")) return e.path();
    return {};
  }
  static void overwrite(const fs::path& p, const std::string& text) { std::ofstream(p, std::ios::trunc) << text; }
  static std::string text(const fs::path& p) {
    std::ifstream in(p);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  kiln::testing::scratch_folder folder;
};

const kernel_configuration wide{{"tile_n", 64}}, tall{{"tile_m", 12}};

}  // namespace

TEST(tuning_record, text_and_back) {
  std::mt19937 engine(1);
  for (int i = 0; i < 200; ++i) {
    tuning_record r = random_record(engine);
    EXPECT_EQ(parse_record(to_text(r)), r);
  }
}

TEST(tuning_record, merging_is_commutative_associative_and_idempotent) {
  std::mt19937 engine(2);
  for (int i = 0; i < 500; ++i) {
    tuning_record a = random_record(engine), b = random_record(engine), c = random_record(engine);
    EXPECT_EQ(merge(a, a), a);
    EXPECT_EQ(merge(a, b), merge(b, a));
    EXPECT_EQ(merge(merge(a, b), c), merge(a, merge(b, c)));
    EXPECT_LE(newest_sessions(merge(a, b)).sessions.size(), most_sessions);
  }
}

TEST(tuning_record, a_later_generation_replaces_an_earlier_one_and_more_candidates_fewer) {
  tuning_session first, second;
  first.candidates.push_back({wide, candidate_outcome::measured, 1, 1, 1, 5, ""});
  second.generation = 2;
  tuning_record a{identify(payload, inputs, outputs, here), {first}}, b{a.identity, {second}};
  EXPECT_EQ(merge(a, b).sessions[0].generation, 2);
  second.generation = 1;
  b.sessions = {second};
  EXPECT_EQ(merge(a, b).sessions[0].candidates.size(), 1u);
}

TEST(tuning_record, the_newest_sessions_stay_whatever_the_compilers_are_called) {
  tuning_record all{identify(payload, inputs, outputs, here), {}};
  for (int n = 0; n < 6; ++n) {
    tuning_session s;
    s.compiler = {std::string(1, "fbe0ac"[n]), "22"};
    s.tuned_at = 100 + n;
    all = newest_sessions(merge(all, {all.identity, {s}}));
  }
  ASSERT_EQ(all.sessions.size(), most_sessions);
  EXPECT_EQ(all.sessions[0].compiler.code, "c");
  EXPECT_EQ(all.sessions[2].compiler.code, "0");
}

TEST(tuning_record, version_1_is_read_and_its_number_becomes_the_origin) {
  tuning_record r{identify(payload, inputs, outputs, here), {{}}};
  r.sessions[0].compiler = {"pipeline 6", "22.1.0"};
  r.sessions[0].winner = wide;
  std::string text = to_text(r);
  auto replace = [&](const std::string& what, const std::string& with) {
    const std::size_t at = text.find(what);
    ASSERT_NE(at, std::string::npos) << what;
    text.replace(at, what.size(), with);
  };
  replace("\"kiln_tuning_record\": 2", "\"kiln_tuning_record\": 1");
  replace("\"code\": \"pipeline 6\"", "\"pipeline\": 6");
  replace("\"tuned_at\": 0,", "");
  EXPECT_EQ(parse_record(text), r);
}

TEST(tuning_record, what_is_no_record_is_refused) {
  std::mt19937 engine(4);
  std::string good = to_text(random_record(engine));
  for (std::size_t size = 0; size + 2 < good.size(); ++size)
    EXPECT_THROW(parse_record(std::string_view(good).substr(0, size)), error) << size;
  EXPECT_THROW(parse_record("[]"), error);
  EXPECT_THROW(parse_record("{\"kiln_tuning_record\": 2}"), error);
  try {
    parse_record("{\"kiln_tuning_record\": 3}");
    FAIL();
  } catch (const error& e) {
    EXPECT_EQ(e.kind(), error_kind::newer_version);
  }
}

TEST(tuning_record, flipped_characters_give_a_record_or_a_typed_error) {
  std::mt19937 engine(5);
  std::string good = to_text(random_record(engine));
  for (int i = 0; i < 3000; ++i) {
    std::string bad = good;
    bad[engine() % bad.size()] = static_cast<char>(engine() % 256);
    try {
      parse_record(bad);
    } catch (const error& e) {
      EXPECT_TRUE(e.kind() == error_kind::corrupted || e.kind() == error_kind::newer_version);
    }
  }
}

TEST(device_class, holds_what_times_depend_on_and_nothing_else) {
  target_row v3{"x86-64-v3", target_family::cpu, "x", "x86-64-v3", "", 256, 16}, v4 = v3;
  v4.vector_bits = 512;
  device_info one{.name = "host", .description = "a", .family = "cpu", .threads = 1}, two = one;
  two.threads = 2;
  EXPECT_NE(device_class(one, v3), device_class(two, v3));
  EXPECT_NE(device_class(one, v3), device_class(one, v4));
  device_info same = one;
  same.description = "another machine of this kind";
  same.memory_bytes = 1;
  EXPECT_EQ(device_class(one, v3), device_class(same, v3));

  target_row gpu{"sm_90", target_family::nvidia, "n", "sm_90a", "", 128, 255};
  device_info h200{.name = "cuda:0",
                   .description = "a GPU",
                   .family = "nvidia",
                   .memory_bytes = 150'000'000'000,
                   .architecture = "sm_90",
                   .multiprocessors = 132,
                   .driver_version = "12.8"},
      other = h200;
  other.name = "cuda:5";
  other.driver_version = "13.0";
  other.memory_bytes += 50'000'000;
  EXPECT_EQ(device_class(h200, gpu), device_class(other, gpu));
  other.multiprocessors = 78;
  EXPECT_NE(device_class(h200, gpu), device_class(other, gpu));
}

TEST_F(records_test, what_won_is_found_by_the_next_process) {
  EXPECT_EQ(open().winner(payload, inputs, outputs), kernel_configuration{});
  open().store(record(ours, wide));
  EXPECT_EQ(open().winner(payload, inputs, outputs), wide);
  EXPECT_EQ(open().winner(payload, outputs, inputs), kernel_configuration{});
  EXPECT_EQ(open().winner(std::string(64, 'b'), inputs, outputs), kernel_configuration{});
  tuning_records elsewhere({.folder = folder.path() / "cache", .device_class = "cpu test 4 threads", .compiler = ours});
  EXPECT_EQ(elsewhere.winner(payload, inputs, outputs), kernel_configuration{});
}

TEST_F(records_test, another_compilers_winner_is_a_hint_until_there_is_one_of_this_compiler) {
  open().store(record(oldest, tall));
  open().store(record(older, wide));
  EXPECT_EQ(open().winner(payload, inputs, outputs), wide);
  EXPECT_EQ(open().find(payload, inputs, outputs)->session_of(ours), nullptr);
  open().store(record(ours, {}));
  EXPECT_EQ(open().winner(payload, inputs, outputs), kernel_configuration{});
  EXPECT_EQ(open().find(payload, inputs, outputs)->sessions.size(), 3u);
}

TEST_F(records_test, damaged_files_count_as_missing_and_are_replaced) {
  open().store(record(ours, wide));
  std::string good = text(file());
  for (const std::string& bad : {std::string(), good.substr(0, good.size() / 2), std::string("\0\0\0", 3),
                                 to_text({identify(std::string(64, 'b'), inputs, outputs, here), {}})}) {
    overwrite(file(), bad);
    EXPECT_EQ(open().winner(payload, inputs, outputs), kernel_configuration{});
    open().store(record(ours, wide));
    EXPECT_EQ(open().winner(payload, inputs, outputs), wide);
  }
}

TEST_F(records_test, a_record_of_a_later_version_is_left_alone) {
  open().store(record(ours, wide));
  const std::string later = "{\"kiln_tuning_record\": 99, \"what\": \"ever\"}";
  overwrite(file(), later);
  EXPECT_EQ(open().winner(payload, inputs, outputs), kernel_configuration{});
  open().store(record(ours, tall));
  EXPECT_EQ(text(file()), later);
}

TEST_F(records_test, layers_and_hints_of_a_file_are_merged_with_the_folder) {
  fs::path layer = folder.path() / "layer";
  tuning_records({.folder = layer, .device_class = here, .compiler = older}).store(record(older, tall));
  EXPECT_EQ(open({}, {layer}).winner(payload, inputs, outputs), tall);
  std::string hints = hints_text({record(ours, wide), record(ours, tall, "another device")});
  EXPECT_EQ(open(hints, {layer}).winner(payload, inputs, outputs), wide);
  EXPECT_EQ(open(hints, {layer}).find(payload, inputs, outputs)->sessions.size(), 2u);
  EXPECT_EQ(parse_hints(hints).size(), 2u);
  EXPECT_EQ(open("no hints at all").winner(payload, inputs, outputs), kernel_configuration{});
}

TEST_F(records_test, hostile_hints_are_no_hints) {
  auto repeated = [](std::string_view text, std::size_t count) {
    std::string result;
    for (std::size_t i = 0; i < count; ++i) result += text;
    return result;
  };
  const std::string good = to_text(record(ours, wide));
  const std::vector<std::string> hostile{
      "{\"kiln_tuning_hints\": 1, \"records\": [" + repeated("{\"a\":", 300'000) + "1" + repeated("}", 300'000) + "]}",
      "{\"kiln_tuning_hints\": 1, \"records\": " + repeated("[", 1'000'000) + repeated("]", 1'000'000) + "}",
      "{\"kiln_tuning_hints\": 1, \"records\": [" + good + "," + good +
          // Files that disagree are merged; a file that repeats a record is refused.
          "]}",
  };
  for (const std::string& text : hostile) {
    EXPECT_THROW(parse_hints(text), error);
    EXPECT_EQ(open(text).winner(payload, inputs, outputs), kernel_configuration{});
  }
  EXPECT_THROW(parse_record(repeated("[", 1'000'000)), error);
}

TEST_F(records_test, a_folder_that_cannot_be_used_costs_nothing_but_the_records) {
  tuning_records nowhere({.device_class = here, .compiler = ours});
  nowhere.store(record(ours, wide));
  EXPECT_EQ(nowhere.winner(payload, inputs, outputs), kernel_configuration{});
  overwrite(folder.path() / "file", "not a folder");
  tuning_records broken({.folder = folder.path() / "file", .device_class = here, .compiler = ours});
  broken.store(record(ours, wide));
  EXPECT_EQ(broken.winner(payload, inputs, outputs), kernel_configuration{});
}

TEST_F(records_test, copies_merge_with_what_is_there) {
  fs::path from = folder.path() / "cache", to = folder.path() / "other";
  const transfer_options merging{.merge_record = merge_record_files};
  open().store(record(older, tall));
  open().store_graph("program", {true, false, 2, 1});
  EXPECT_EQ(copy_cache(from, to, merging).records, 2u);
  open().store(record(ours, wide));
  copy_cache(from, to, merging);
  tuning_records there({.folder = to, .device_class = here, .compiler = ours});
  EXPECT_EQ(there.winner(payload, inputs, outputs), wide);
  EXPECT_EQ(there.find(payload, inputs, outputs)->sessions.size(), 2u);
  EXPECT_TRUE(there.find_graph("program")->replay);
  there.store_graph("program", {false, false, 1, 2});
  overwrite(file(), "damaged");
  EXPECT_EQ(copy_cache(from, to, merging).damaged, 1u);
  EXPECT_EQ(there.winner(payload, inputs, outputs), wide);
  // The existing entry stays.
  EXPECT_FALSE(there.find_graph("program")->replay);
}

TEST_F(records_test, decisions_about_graphs_are_kept_for_each_program_and_class) {
  const graph_decision decision{true, false, 1.25, 0.5};
  EXPECT_FALSE(open().find_graph("program"));
  open().store_graph("program", decision);
  EXPECT_EQ(open().find_graph("program"), decision);
  EXPECT_FALSE(open().find_graph("another program"));
  auto opened_as = [&](const char* device_class, const compiler_identity& compiler) {
    return tuning_records({.folder = folder.path() / "cache", .device_class = device_class, .compiler = compiler})
        .find_graph("program");
  };
  EXPECT_EQ(opened_as(here, ours), decision);
  EXPECT_FALSE(opened_as("another class", ours));
  EXPECT_EQ(opened_as(here, older), decision) << "the program's hash covers its kernels, whoever made them";
  const graph_decision other{false, false, 0.5, 1.25};
  open().store_graph("program", other);  // measured again
  EXPECT_EQ(open().find_graph("program"), other);
}

TEST_F(records_test, decisions_about_graphs_that_are_damaged_are_replaced_and_newer_ones_are_not) {
  const graph_decision decision{true, true, 1.25, 0.5};
  open().store_graph("program", decision);
  std::vector<fs::path> files;
  for (const auto& f : fs::directory_iterator(folder.path() / "cache" / "records")) files.push_back(f.path());
  ASSERT_EQ(files.size(), 1u);
  std::string whole;
  std::getline(std::ifstream(files[0]), whole, '\0');
  auto becomes = [&](const std::string& text) {
    std::ofstream(files[0]) << text;
    EXPECT_FALSE(open().find_graph("program")) << text;
    open().store_graph("program", decision);
    return open().find_graph("program");
  };
  std::string about_another = whole;
  about_another.replace(about_another.find("\"program\": \"program\""), 20, "\"program\": \"somebody\"");
  for (const std::string& text : {std::string(), whole.substr(0, whole.size() / 2), std::string("[]"),
                                  std::string("{\"kiln_graph_decision\": 1}"), about_another})
    EXPECT_EQ(becomes(text), decision) << text;
  EXPECT_FALSE(becomes("{\"kiln_graph_decision\": 99}"));
}
