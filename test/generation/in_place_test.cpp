// Decoders whose caches are updated in place: answers are those of a computation by hand and, to the bit, those of the
// same program with caches that are copied.
#include <gmock/gmock.h>
#include <stdlib.h>

#include <algorithm>
#include <numeric>

#include "aot/pipeline.hpp"
#include "generation/decoder.hpp"
#include "ir/error.hpp"
#include "ir/ops/cache_update.hpp"
#include "runtime/executable.hpp"
#include "test/generation/toy_decoder.hpp"
#include "test/support/scratch_folder.hpp"

namespace kiln::testing {
namespace {

using ::testing::DoubleNear;
using ::testing::Pointwise;

class in_place_test : public ::testing::Test {
 protected:
  in_place_test() {
    ::setenv("XDG_CONFIG_HOME", (folder / "config").c_str(), 1);  // where this user's keys are
    program toy = toy_decoder();
    toy.symbols["past"] = toy.symbols["sequence"] = {0, 4096, {}};
    compile_options compiling;
    compiling.caches = {{names.first_past, names.first_present, 1}, {names.second_past, names.second_present, 1}};
    compiling.logits = names.logits;
    compiling.ids = "input_ids";
    compiling.steps = &steps;
    whole = compile(std::move(toy), compiling);
  }
  session_options options() const {
    session_options o{.threads = 1};
    o.cache.folder = folder / "cache";
    o.compiling = compile_place::this_process;
    o.specialization = specialization::off;
    return o;
  }
  session_options updating() const {
    session_options o = options();
    o.updated_inputs = {names.first_past, names.second_past};
    return o;
  }
  scratch_folder folder;
  toy_names names;
  std::optional<program> steps;
  program whole;
};

TEST_F(in_place_test, caches_are_inputs_with_room) {
  ASSERT_TRUE(steps);
  EXPECT_EQ(steps->main().output_names(), (std::vector<std::string>{names.logits, next_ids}));
  const auto parameters = steps->main().parameters();
  ASSERT_EQ(parameters.size(), 5u);
  for (value v : parameters)
    EXPECT_EQ(std::ranges::count(v.type().dims, dim::symbol(cache_room)),
              module::parameter_name(v).starts_with("past_key_values"));
  for (const char* added : {cache_length, logits_row})
    EXPECT_EQ(std::ranges::count(parameters, std::string(added), module::parameter_name), 1) << added;
  EXPECT_EQ(steps->main().outputs()[0].type().dims[1], dim(1)) << "logits of the last id only";
  EXPECT_EQ(whole.main().outputs().size(), 3u);
}

TEST_F(in_place_test, answers_across_the_growth_of_the_room) {
  ASSERT_TRUE(steps);
  session updates(std::move(*steps), std::string("toy"), updating()),
      copies(whole.clone(), std::string("toy"), options());
  decoder model({.decoder = &updates}), copying({.decoder = &copies});
  std::vector<std::int64_t> ids(250);
  for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<std::int64_t>(i * 7 % 11);
  EXPECT_EQ(model.append({ids}), copying.append({ids}));
  for (std::int64_t next = 0; next < 12; ++next) {
    const std::vector<std::int64_t> rows(next == 5 ? 3 : 1, next % 11);
    ids.insert(ids.end(), rows.begin(), rows.end());
    const auto logits = model.append({rows});
    EXPECT_EQ(logits, copying.append({rows}));
    EXPECT_THAT(logits, Pointwise(DoubleNear(1e-3), toy_logits(ids)));
  }
  EXPECT_EQ(model.state_bytes(), 2u * ids.size() * toy_width * sizeof(float));
  model.reset();
  EXPECT_THAT(model.append({{3, 1}}), Pointwise(DoubleNear(1e-4), toy_logits({3, 1})));
}

TEST_F(in_place_test, batches) {
  ASSERT_TRUE(steps);
  session updates(std::move(*steps), std::string("toy"), updating());
  decoder model({.decoder = &updates});
  model.append({{3, 1}, {4, 1}, {5, 9}});
  const auto logits = model.append({{2}, {6}, {5}});
  const id_rows all{{3, 1, 2}, {4, 1, 6}, {5, 9, 5}};
  for (std::size_t r = 0; r < all.size(); ++r)
    EXPECT_THAT(std::vector<float>(logits.begin() + static_cast<std::ptrdiff_t>(r * toy_vocabulary),
                                   logits.begin() + static_cast<std::ptrdiff_t>((r + 1) * toy_vocabulary)),
                Pointwise(DoubleNear(1e-4), toy_logits(all[r])));
}

// Across the growth of the room: the caches keep rows that do not count any more.
TEST_F(in_place_test, ids_that_were_taken_back_leave_no_trace) {
  ASSERT_TRUE(steps);
  session updates(std::move(*steps), std::string("toy"), updating());
  decoder model({.decoder = &updates}), other({.decoder = &updates});
  std::vector<std::int64_t> ids(254);
  for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<std::int64_t>(i * 7 % 11);
  model.append({ids, ids}), other.append({ids, ids});
  const auto first = model.append({{3, 1}, {4, 1}});
  for (std::int64_t i = 0; i < 5; ++i) model.append({{i}, {i + 1}});
  model.rollback(7);
  EXPECT_EQ(model.length(), 254);
  EXPECT_EQ(model.append({{3, 1}, {4, 1}}), first);
  EXPECT_EQ(other.append({{3, 1}, {4, 1}}), first);
  EXPECT_EQ(model.append({{5}, {9}}), other.append({{5}, {9}}));
  EXPECT_THROW(model.rollback(258), error);
  EXPECT_EQ(model.append({{2}, {6}}), other.append({{2}, {6}}));
}

TEST_F(in_place_test, a_long_prompt_in_parts) {
  ASSERT_TRUE(steps);
  session parts(steps->clone(), std::string("toy"), updating()), all(std::move(*steps), std::string("toy"), updating());
  decoder model({.decoder = &parts}, 0, 100), other({.decoder = &all}, 0, 7);
  std::vector<std::int64_t> ids(257);
  for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<std::int64_t>(i * 3 % 11);
  EXPECT_THAT(model.append({ids}), Pointwise(DoubleNear(1e-3), toy_logits(ids)));
  EXPECT_EQ(model.length(), 257);
  other.start({ids});
  const auto expected = toy_logits(ids);
  EXPECT_EQ(other.answer()[0], std::ranges::max_element(expected) - expected.begin());
  other.go_on();
  EXPECT_EQ(other.length(), 258);
  EXPECT_EQ(other.answer().size(), 1u);
}

// Steps that begin before the ids of the last one are known, across the growth of the room.
TEST_F(in_place_test, steps_run_ahead_of_their_answers) {
  ASSERT_TRUE(steps);
  session updates(std::move(*steps), std::string("toy"), updating()),
      copies(whole.clone(), std::string("toy"), options());
  decoder model({.decoder = &updates}), copying({.decoder = &copies});
  std::vector<std::int64_t> first(253), second(253, 4);
  for (std::size_t i = 0; i < first.size(); ++i) first[i] = static_cast<std::int64_t>(i * 7 % 11);
  id_rows rows{first, second};
  model.start(rows);
  for (int step = 0; step < 8; ++step) {
    model.go_on();
    const auto logits = copying.append(rows);
    for (std::size_t r = 0; r < rows.size(); ++r) {
      const auto row = std::span(logits).subspan(r * toy_vocabulary, toy_vocabulary);
      rows[r] = {std::ranges::max_element(row) - row.begin()};
    }
    EXPECT_EQ(model.answer(), (std::vector{rows[0][0], rows[1][0]})) << step;
  }
  model.finish();
  EXPECT_EQ(model.length(), 253 + 8);
  model.reset();
  EXPECT_THAT(model.append({{3, 1}}), Pointwise(DoubleNear(1e-4), toy_logits({3, 1})));
}

// One step on a cache of 8 rows that holds 3.
struct step_result {
  std::vector<float> logits, first;
};

step_result one_step(session& model, std::size_t* launches) {
  const dim_bindings sizes{{"batch", 1}, {"sequence", 1}, {"past", 3}, {cache_room, 8}};
  const auto planned = model.at(sizes);
  const plan& p = planned->executable().plan();
  *launches = p.blocks[0].steps.size();
  std::vector<std::vector<float>> caches(2, std::vector<float>(8 * toy_width));
  for (auto& cache : caches) std::iota(cache.begin(), cache.end(), 1.0f);
  const std::int64_t id = 5, length = 3, row = 0;
  std::vector<executable::input_span> inputs;
  std::size_t cache = 0;
  for (const plan_port& port : p.inputs) {
    if (port.name == logits_row) inputs.push_back(std::as_bytes(std::span(&row, 1)));
    else if (port.name == cache_length) inputs.push_back(std::as_bytes(std::span(&length, 1)));
    else if (port.name == "input_ids") inputs.push_back(std::as_bytes(std::span(&id, 1)));
    else inputs.push_back(std::as_bytes(std::span(caches[cache++])));
  }
  step_result result{std::vector<float>(toy_vocabulary), {}};
  std::int64_t best = -1;
  const std::vector<executable::output_span> outputs{std::as_writable_bytes(std::span(result.logits)),
                                                     std::as_writable_bytes(std::span(&best, 1))};
  planned->make_runner(graph_policy::off)->run(inputs, outputs);
  EXPECT_EQ(best, std::ranges::max_element(result.logits) - result.logits.begin());
  result.first = caches[0];
  return result;
}

TEST_F(in_place_test, an_input_changes_only_if_the_session_may_change_it) {
  ASSERT_TRUE(steps);
  session updates(steps->clone(), std::string("toy"), updating()),
      leaves(steps->clone(), std::string("toy"), options());
  std::size_t updating_launches = 0, copying_launches = 0;
  const step_result changed = one_step(updates, &updating_launches), kept = one_step(leaves, &copying_launches);
  EXPECT_EQ(changed.logits, kept.logits);
  EXPECT_EQ(copying_launches, updating_launches + 2);  // a copy of each cache
  std::vector<float> expected(8 * toy_width);
  std::iota(expected.begin(), expected.end(), 1.0f);
  EXPECT_EQ(kept.first, expected);
  for (std::int64_t i = 0; i < toy_width; ++i)
    expected[static_cast<std::size_t>(3 * toy_width + i)] = static_cast<float>(toy_weight(5 * toy_width + i));
  EXPECT_EQ(changed.first, expected);
}

}  // namespace
}  // namespace kiln::testing
