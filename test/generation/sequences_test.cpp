// Several sequences of one decoder: in turn, copied, saved and loaded, with caches that are updated in place and with
// such that are copied.
#include <gmock/gmock.h>
#include <stdlib.h>

#include <algorithm>

#include "aot/pipeline.hpp"
#include "generation/decoder.hpp"
#include "ir/sequence_errors.hpp"
#include "test/generation/toy_decoder.hpp"
#include "test/support/scratch_folder.hpp"

namespace kiln::testing {
namespace {

using ::testing::DoubleNear;
using ::testing::HasSubstr;
using ::testing::Pointwise;

enum class caches { in_place, copied };

class sequences_test : public ::testing::TestWithParam<caches> {
 protected:
  sequences_test() {
    ::setenv("XDG_CONFIG_HOME", (folder / "config").c_str(), 1);  // where this user's keys are
    opened = open(toy_decoder());
    model = std::make_unique<decoder>(decoder_models{.decoder = opened.get()});
  }

  std::unique_ptr<session> open(program toy) {
    toy.symbols["past"] = toy.symbols["sequence"] = {0, 4096, {}};
    session_options options{.threads = 1};
    options.cache.folder = folder / "cache";
    options.compiling = compile_place::this_process;
    options.specialization = specialization::off;
    if (GetParam() == caches::copied)
      return std::make_unique<session>(compile(std::move(toy)), std::string("toy"), options);
    const toy_names names;
    std::optional<program> steps;
    compile_options compiling;
    compiling.caches = {{names.first_past, names.first_present, 1}, {names.second_past, names.second_present, 1}};
    compiling.logits = names.logits;
    compiling.ids = "input_ids";
    compiling.steps = &steps;
    compile(std::move(toy), compiling);
    options.updated_inputs = {names.first_past, names.second_past};
    return std::make_unique<session>(std::move(*steps), std::string("toy"), options);
  }

  std::string failure(const std::vector<std::byte>& saved) {
    try {
      model->load(saved);
    } catch (const error& e) {
      return std::string(name(e.kind())) + ": " + e.what();
    }
    return "";
  }

  scratch_folder folder;
  std::unique_ptr<session> opened;
  std::unique_ptr<decoder> model;
};

INSTANTIATE_TEST_SUITE_P(caches, sequences_test, ::testing::Values(caches::in_place, caches::copied),
                         [](const auto& info) { return info.param == caches::in_place ? "in_place" : "copied"; });

void expect_logits(const std::vector<float>& got, const std::vector<std::int64_t>& ids) {
  EXPECT_THAT(got, Pointwise(DoubleNear(1e-3), toy_logits(ids)));
}

std::vector<std::int64_t> many(std::size_t count) {
  std::vector<std::int64_t> ids(count);
  for (std::size_t i = 0; i < count; ++i) ids[i] = static_cast<std::int64_t>(i * 7 % 11);
  return ids;
}

TEST_P(sequences_test, two_sequences_in_turn) {
  model->append({{3, 1, 4}});
  sequence_batch first = model->exchange();
  EXPECT_EQ(model->length(), 0);
  expect_logits(model->append({{2, 7}}), {2, 7});
  sequence_batch second = model->exchange(std::move(first));
  EXPECT_EQ(model->length(), 3);
  expect_logits(model->append({{1}}), {3, 1, 4, 1});
  first = model->exchange(std::move(second));
  expect_logits(model->append({{1}}), {2, 7, 1});
  model->exchange(std::move(first));
  expect_logits(model->append({{5}}), {3, 1, 4, 1, 5});
}

TEST_P(sequences_test, a_copy_goes_on_in_another_way) {
  model->append({many(255), many(255)});
  sequence_batch copy = model->copy();
  const auto expected = model->append({{3}, {1}});
  model->append({{5}, {5}});
  model->exchange(std::move(copy));
  EXPECT_EQ(model->length(), 255);
  copy = model->copy();
  EXPECT_EQ(model->append({{3}, {1}}), expected);
  model->exchange(std::move(copy));
  auto ids = many(255);
  ids.push_back(9);
  const auto logits = model->append({{9}, {9}});
  expect_logits({logits.begin(), logits.begin() + toy_vocabulary}, ids);
}

TEST_P(sequences_test, saved_sequences_go_on_in_another_decoder) {
  const auto ids = many(300);
  model->append({ids});
  const auto saved = model->save();
  EXPECT_EQ(model->save(), saved);
  EXPECT_LT(saved.size(), 2 * 300 * toy_width * sizeof(float) + 2 * 300 * 8 + 600) << "spare rows are not saved";
  const auto expected = model->append({{3, 1}});
  const auto session = open(toy_decoder());
  decoder other({.decoder = session.get()});
  other.load(saved);
  EXPECT_EQ(other.length(), 300);
  EXPECT_EQ(other.lengths(), std::vector<std::int64_t>{300});
  EXPECT_EQ(other.append({{3, 1}}), expected);
  other.rollback(102);
  auto cut = many(200);
  cut.push_back(4);
  expect_logits(other.append({{4}}), cut);
}

TEST_P(sequences_test, empty_sequences_can_be_saved) {
  const auto saved = model->save();
  model->append({{3, 1}});
  model->load(saved);
  EXPECT_EQ(model->length(), 0);
  expect_logits(model->append({{2}}), {2});
}

TEST_P(sequences_test, damaged_bytes_are_refused_and_the_sequences_stay) {
  model->append({{3, 1, 4}});
  const auto saved = model->save();
  model->append({{1}});
  for (std::size_t i = 0; i < saved.size(); ++i) {
    auto damaged = saved;
    damaged[i] ^= std::byte{0x11};
    EXPECT_NE(failure(damaged), "") << i;
  }
  for (std::size_t size = 0; size < saved.size(); ++size)
    EXPECT_NE(failure({saved.begin(), saved.begin() + static_cast<std::ptrdiff_t>(size)}), "") << size;
  auto newer = saved;
  newer[7] = std::byte{'2'};
  EXPECT_THAT(failure(newer), HasSubstr("newer_version: saved sequences: "));
  EXPECT_EQ(model->length(), 4);
  expect_logits(model->append({{5}}), {3, 1, 4, 1, 5});
}

TEST_P(sequences_test, sequences_of_another_model_are_refused) {
  toy_names names;
  names.logits = "scores";
  const auto session = open(toy_decoder(names, 0, toy_mask::of_each_row));
  decoder other({.decoder = session.get()});
  other.append({{3, 1}});
  EXPECT_THAT(failure(other.save()), HasSubstr("mismatch: saved sequences: another model"));
}

}  // namespace
}  // namespace kiln::testing
