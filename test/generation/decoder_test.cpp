// Sequences over one session: answers equal to a computation by hand, and errors that leave the sequences as they were.
#include "generation/decoder.hpp"

#include <gmock/gmock.h>
#include <stdlib.h>

#include "aot/pipeline.hpp"
#include "generation/generate.hpp"
#include "ir/error.hpp"
#include "test/generation/toy_decoder.hpp"
#include "test/support/scratch_folder.hpp"

namespace kiln::testing {
namespace {

using ::testing::DoubleNear;
using ::testing::HasSubstr;
using ::testing::Pointwise;

class decoder_test : public ::testing::Test {
 protected:
  decoder_test() {
    ::setenv("XDG_CONFIG_HOME", (folder / "config").c_str(), 1);  // where this user's keys are
    options.threads = 1;
    options.cache.folder = folder / "cache";
    options.compiling = compile_place::this_process;
    options.specialization = specialization::off;
    options.observer = [this](const session_event& event) {
      if (const auto* done = std::get_if<session_events::finalized>(&event)) compiled += done->report.misses;
    };
    opened.emplace(compile(toy_decoder()), std::string("toy"), options);
  }
  std::string failure(decoder& model, const id_rows& rows) {
    try {
      model.append(rows);
    } catch (const error& e) {
      return std::string(name(e.kind())) + ": " + e.what();
    }
    return "";
  }
  std::string rollback_failure(decoder& model, std::int64_t count) {
    try {
      model.rollback(count);
    } catch (const error& e) {
      return std::string(name(e.kind())) + ": " + e.what();
    }
    return "";
  }
  scratch_folder folder;
  session_options options;
  std::optional<session> opened;
  std::size_t compiled = 0;
};

void expect_logits(const std::vector<float>& got, const std::vector<std::int64_t>& ids) {
  EXPECT_THAT(got, Pointwise(DoubleNear(1e-4), toy_logits(ids)));
}

TEST_F(decoder_test, answers_after_a_prompt_and_after_each_id) {
  decoder model({.decoder = &*opened});
  expect_logits(model.append({{3, 1, 4}}), {3, 1, 4});
  expect_logits(model.append({{1}}), {3, 1, 4, 1});
  expect_logits(model.append({{5, 9}}), {3, 1, 4, 1, 5, 9});
  EXPECT_EQ(model.length(), 6);
  EXPECT_EQ(model.state_bytes(), 2u * 6 * toy_width * sizeof(float));
  model.reset();
  expect_logits(model.append({{2}}), {2});
}

TEST_F(decoder_test, compiles_nothing_after_the_first_step) {
  decoder model({.decoder = &*opened});
  model.append({{3, 1, 4}});
  model.append({{3}});
  const std::size_t before = compiled;
  for (int i = 0; i < 12; ++i) model.append({{1}});
  EXPECT_EQ(compiled, before);
}

TEST_F(decoder_test, refuses_bad_ids_and_stays_as_it_was) {
  decoder model({.decoder = &*opened}, 5);
  model.append({{3, 1, 4}});
  EXPECT_THAT(failure(model, {{11}}),
              HasSubstr("invalid_sequence: prompt 0: id 11 is not in the vocabulary of 11 ids"));
  EXPECT_THAT(failure(model, {{-1}}), HasSubstr("id -1"));
  EXPECT_THAT(failure(model, {{}}), HasSubstr("it is empty"));
  EXPECT_THAT(failure(model, {{1}, {2}}), HasSubstr("2 rows for 1 sequences"));
  EXPECT_THAT(failure(model, {{1, 2, 3}}), HasSubstr("context_full: context: 6 ids do not fit into the 5"));
  EXPECT_EQ(model.length(), 3);
  expect_logits(model.append({{1, 5}}), {3, 1, 4, 1, 5});
}

TEST_F(decoder_test, does_not_pad_where_the_model_has_no_mask) {
  decoder model({.decoder = &*opened});
  EXPECT_THAT(failure(model, {{1, 2}, {3}}), HasSubstr("unsupported: prompts of different lengths"));
}

TEST_F(decoder_test, pads_where_a_mask_hides_it) {
  session masked(compile(toy_decoder({}, 0, toy_mask::of_each_row)), std::string("toy"), options);
  decoder model({.decoder = &masked});
  const id_rows rows{{3, 1, 4, 1}, {5, 9, 2}, {6, 5}};
  const auto logits = model.append(rows);
  for (std::size_t r = 0; r < rows.size(); ++r)
    expect_logits({logits.begin() + static_cast<std::ptrdiff_t>(r * toy_vocabulary),
                   logits.begin() + static_cast<std::ptrdiff_t>((r + 1) * toy_vocabulary)},
                  rows[r]);
}

// The answer to the shortest row is right, those to the others are not.
TEST_F(decoder_test, checks_every_row_of_a_padded_batch) {
  session masked(compile(toy_decoder({}, 0, toy_mask::of_the_shortest_row)), std::string("toy"), options);
  decoder model({.decoder = &masked});
  EXPECT_THAT(failure(model, {{6, 5}, {3, 1, 4, 1}}), HasSubstr("changes the answer of this model to prompt 1"));
  EXPECT_EQ(model.length(), 0);
  expect_logits(model.append({{3, 1}}), {3, 1});
}

TEST_F(decoder_test, takes_back_ids_of_copied_caches) {
  decoder model({.decoder = &*opened});
  model.append({{3, 1, 4}});
  model.append({{1, 5}});
  model.rollback(0);
  model.rollback(3);
  EXPECT_EQ(model.length(), 2);
  EXPECT_THAT(rollback_failure(model, 4), HasSubstr("usage: rollback: 4 ids of sequences that have 2"));
  EXPECT_THAT(rollback_failure(model, -1), HasSubstr("usage: rollback: -1 ids"));
  expect_logits(model.append({{1}}), {3, 1, 1});
  model.rollback(3);
  EXPECT_EQ(model.length(), 0);
  expect_logits(model.append({{2, 7}}), {2, 7});
}

TEST_F(decoder_test, needs_an_empty_past) {
  session_options options{.threads = 1};
  options.cache.disabled = true;
  options.compiling = compile_place::this_process;
  session other(compile(toy_decoder({}, 1)), std::string("toy"), options);
  try {
    decoder model({.decoder = &other});
    FAIL();
  } catch (const error& e) {
    EXPECT_THAT(e.what(), HasSubstr("--dim past=0:MAX"));
  }
}

TEST_F(decoder_test, generates_until_the_stop_id) {
  decoder model({.decoder = &*opened});
  const id_rows prompts{{3, 1, 4}, {2, 7, 1}};
  generation_options options;
  options.max_new_tokens = 8;
  const auto always = [](const std::vector<std::int64_t>&) { return true; };
  const id_rows made = generate(model, prompts, options, always);
  for (std::size_t r = 0; r < prompts.size(); ++r) {
    std::vector<std::int64_t> ids = prompts[r];
    ASSERT_EQ(made[r].size(), 8u);
    for (std::int64_t id : made[r]) {
      const auto logits = toy_logits(ids);
      EXPECT_EQ(id, std::ranges::max_element(logits) - logits.begin());
      ids.push_back(id);
    }
  }
  options.stop_ids = {made[0][2]};
  const id_rows stopped = generate(model, {prompts[0]}, options, always);
  EXPECT_EQ(stopped[0].back(), made[0][2]);
  EXPECT_LE(stopped[0].size(), 3u);
}

}  // namespace
}  // namespace kiln::testing
