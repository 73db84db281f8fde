// Row kernels: their serialized form, and how plans cover the rows of an instruction with blocks.
#include "runtime/row_blocks.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "ir/error.hpp"
#include "programs.hpp"

namespace kiln::testing {
namespace {

using ::testing::HasSubstr;

// Bytes per row.
constexpr std::int64_t row = n * 4;

shape rows_of_vectors(std::int64_t rows) { return {element_type::f32, {rows, n}}; }

literal filled(std::int64_t rows) {
  std::vector<double> values;
  for (std::int64_t i = 0; i < rows * n; ++i) values.push_back(static_cast<double>(i % 101) - 50);
  return literal::from_doubles(rows_of_vectors(rows), values);
}

value call_rows(program& p, const char* symbol, const row_kernel& kernel, std::vector<value> inputs, shape output) {
  const auto hash = p.add_kernel(serialize(kernel));
  return p.main().add(code_object::make(symbol, code_format::native, hash, flavour.target, {std::move(output)}),
                      std::move(inputs));
}

// Doubles each element, in blocks of 4 rows and of 1 row.
row_kernel doubled() {
  return {{{row, true}},
          {{row, true}},
          {{4, make_kernel({make_launch("twice", 4 * n, {in(0), out(0)})})},
           {1, make_kernel({make_launch("twice", n, {in(0), out(0)})})}}};
}

TEST(row_kernels, round_trip) {
  const auto bytes = serialize(doubled());
  EXPECT_TRUE(is_row_kernel(bytes));
  EXPECT_EQ(deserialize_row_kernel(bytes), doubled());
  row_kernel with_costs = doubled();
  with_costs.versions[0].cost = 3, with_costs.versions[1].cost = 2;
  EXPECT_EQ(deserialize_row_kernel(serialize(with_costs)), with_costs);
  const auto plain = serialize(doubled().versions[0].kernel);
  EXPECT_FALSE(is_row_kernel(plain));
  // An older Kiln reads the bytes in this way and must refuse them.
  EXPECT_THROW(deserialize_native_kernel(bytes), error);
  EXPECT_THROW(deserialize_row_kernel(plain), error);
}

TEST(row_kernels, damage_is_refused) {
  row_kernel without_last = doubled();
  without_last.versions.pop_back();
  EXPECT_THROW(serialize(without_last), error);
  row_kernel shared_output = doubled();
  shared_output.outputs[0].per_row = false;
  EXPECT_THROW(serialize(shared_output), error);
  row_kernel negative = doubled();
  negative.versions[0].cost = -1;
  EXPECT_THROW(serialize(negative), error);
  row_kernel ascending = doubled();
  std::swap(ascending.versions[0], ascending.versions[1]);
  EXPECT_THROW(serialize(ascending), error);
  const auto bytes = serialize(doubled());
  for (std::size_t size = 0; size < bytes.size(); size += 97)
    EXPECT_THROW(deserialize_row_kernel(std::span(bytes).first(size)), error) << size;
}

TEST(row_kernels, rows_are_covered_by_the_largest_blocks_first) {
  const auto covered = cover_rows(doubled(), 11);
  ASSERT_EQ(covered.size(), 2u);
  EXPECT_EQ(covered[0].count, 2);
  EXPECT_EQ(covered[1].version, 1u);
  EXPECT_EQ(covered[1].first_row, 8);
  EXPECT_EQ(covered[1].count, 3);
  EXPECT_EQ(cover_rows(doubled(), 8).size(), 1u);
  EXPECT_TRUE(cover_rows(doubled(), 0).empty());
}

TEST(row_kernels, every_number_of_rows) {
  host_device device{2};
  for (std::int64_t rows : {1, 3, 4, 7, 16, 33}) {
    program p;
    value x = p.main().add_parameter("x", rows_of_vectors(rows));
    value y = call_rows(p, "twice", doubled(), {x}, rows_of_vectors(rows));
    p.main().set_outputs({call_rows(p, "twice", doubled(), {y}, rows_of_vectors(rows))}, {"y"});
    const executable e = load(p, device);
    EXPECT_EQ(e.plan().report.launches, rows % 4 && rows > 4 ? 4u : 2u) << e.plan().str();
    const literal given = filled(rows);
    const auto outputs = run_poisoned(e, {given});
    for (std::int64_t i = 0; i < rows * n; ++i) ASSERT_EQ(outputs[0].at(i), 4 * given.at(i)) << rows << ": " << i;
  }
}

TEST(row_kernels, blocks_have_scratch_of_their_own) {
  const row_kernel sums{{{row, true}},
                        {{4, true}},
                        {{1, make_kernel({make_launch("sum_parts", 5, {in(0), scratch(0)}),
                                          make_launch("sum_total", 1, {scratch(0), out(0)})},
                                         {{20, false}})}}};
  host_device device{2};
  program p;
  constexpr std::int64_t rows = 9;
  value x = p.main().add_parameter("x", rows_of_vectors(rows));
  p.main().set_outputs({call_rows(p, "sum", sums, {x}, {element_type::f32, {rows}})}, {"y"});
  const executable e = load(p, device);
  EXPECT_EQ(e.plan().report.launches, 2u);
  EXPECT_EQ(e.plan().arena_bytes, static_cast<std::size_t>(rows) * 64);
  const literal given = filled(rows);
  const auto outputs = run_poisoned(e, {given});
  for (std::int64_t r = 0; r < rows; ++r) {
    double sum = 0;
    for (std::int64_t i = 0; i < n; ++i) sum += given.at(r * n + i);
    EXPECT_EQ(outputs[0].at(r), sum) << r;
  }
}

TEST(row_kernels, weights_are_packed_once_for_all_blocks) {
  const row_kernel scaled{{{row, true}, {row, false}},
                          {{row, true}},
                          {{1, make_kernel({make_launch("reverse", n, {in(1), scratch(0)}, true),
                                            make_launch("multiply", n, {in(0), scratch(0), out(0)})},
                                           {{row, true}})}}};
  host_device device{2};
  constexpr std::int64_t rows = 5;
  const literal given = filled(rows), weights = vector_literal(ramp(1.0f, 0.5f));
  for (bool constant : {true, false}) {
    program p;
    value x = p.main().add_parameter("x", rows_of_vectors(rows));
    value w = constant ? p.main().add_constant(weights) : p.main().add_parameter("w", vector_type);
    p.main().set_outputs({call_rows(p, "scale", scaled, {x, w}, rows_of_vectors(rows))}, {"y"});
    const executable e = load(p, device);
    EXPECT_EQ(e.plan().report.prepared_made, constant ? 1u : 0u);
    EXPECT_EQ(e.plan().report.launches, constant ? 1u : 2u);
    const auto outputs = run_poisoned(e, constant ? std::vector<literal>{given} : std::vector<literal>{given, weights});
    for (std::int64_t i = 0; i < rows * n; ++i)
      ASSERT_EQ(outputs[0].at(i), given.at(i) * weights.at(n - 1 - i % n)) << constant << ": " << i;
  }
}

// A block of 4 rows costs less than two blocks of one row, so a partial block is worth its copies.
TEST(row_kernels, a_block_may_be_partly_filled) {
  constexpr std::int64_t many = 1 << 18;
  row_kernel kernel = doubled();
  kernel.inputs.push_back({many * 4, false});
  kernel.versions[0].cost = 3, kernel.versions[1].cost = 2;
  EXPECT_EQ(cover_rows(kernel, 1).front().valid, 0);
  EXPECT_EQ(cover_rows(kernel, 5).back().valid, 0);
  EXPECT_EQ(cover_rows(kernel, 7).back().valid, 3);
  // A few items of all blocks read a part of that tensor, then the next items another.
  for (row_version& version : kernel.versions) {
    launch& only = version.kernel.launches[0];
    only.arguments.push_back(in(1));
    const row_launches blocked = launches_per_block(kernel, version.kernel);
    EXPECT_EQ(items_at_once(only, kernel, version.kernel, blocked, {0, 0, version.rows, 3, 0}),
              only.grid * (256 << 10) / (many * 4));
    EXPECT_EQ(items_at_once(only, kernel, version.kernel, blocked, {0, 0, version.rows, 1, 0}), 0);
  }
  host_device device{2};
  for (std::int64_t rows : {1, 2, 3, 5, 6, 7, 8, 11, 29}) {
    program p;
    value x = p.main().add_parameter("x", rows_of_vectors(rows));
    value w = p.main().add_parameter("w", {element_type::f32, {many}});
    value y = call_rows(p, "twice", kernel, {x, w}, rows_of_vectors(rows));
    p.main().set_outputs({call_rows(p, "twice", kernel, {y, w}, rows_of_vectors(rows))}, {"y"});
    const executable e = load(p, device);
    EXPECT_EQ(e.plan().report.copies, rows % 4 < 2 ? 0u : 6u) << e.plan().str();
    const literal given = filled(rows);
    const auto outputs = run_poisoned(e, {given, literal::filled({element_type::f32, {many}}, 1)});
    for (std::int64_t i = 0; i < rows * n; ++i) ASSERT_EQ(outputs[0].at(i), 4 * given.at(i)) << rows << ": " << i;
  }
}

// Blocks of weights: what is computed in vain costs less than reading the weights for few rows more often.
TEST(row_kernels, the_cheapest_cover_is_taken) {
  const row_version like = doubled().versions[1];
  row_kernel kernel{{{row, true}, {row << 20, false}}, {{row, true}}, {}};
  for (std::int64_t rows : {64, 16, 4, 1})
    kernel.versions.push_back({rows, like.kernel, std::max<std::int64_t>(rows, 10)});
  const auto cover = [&](std::int64_t rows) {
    std::string text;
    for (const row_blocks& b : cover_rows(kernel, rows))
      text += fmt::format("{}x{}{} ", b.count, b.rows, b.valid ? fmt::format(" ({})", b.valid) : "");
    return text;
  };
  EXPECT_EQ(cover(3), "1x4 (3) ");
  EXPECT_EQ(cover(17), "1x16 1x1 ");
  EXPECT_EQ(cover(33), "2x16 1x1 ");
  EXPECT_EQ(cover(47), "2x16 1x16 (15) ");
  EXPECT_EQ(cover(64), "1x64 ");
  EXPECT_EQ(cover(61), "3x16 1x16 (13) ");
  EXPECT_EQ(cover(90), "1x64 1x16 1x16 (10) ");
  // Few rows of weights that must be unpacked: a large block is cheaper than many small ones.
  kernel.versions.erase(kernel.versions.begin() + 1);
  kernel.versions[0].cost = 64, kernel.versions[1].cost = 10, kernel.versions[2].cost = 3;
  EXPECT_EQ(cover(23), "5x4 3x1 ");
  EXPECT_EQ(cover(27), "1x64 (27) ");
}

TEST(row_kernels, tensors_that_do_not_consist_of_rows_are_refused) {
  host_device device{2};
  program p;
  value x = p.main().add_parameter("x", rows_of_vectors(3));
  p.main().set_outputs({call_rows(p, "twice", doubled(), {x}, rows_of_vectors(2))}, {"y"});
  try {
    load(p, device);
    ADD_FAILURE() << "nothing was thrown";
  } catch (const error& e) {
    EXPECT_EQ(e.kind(), error_kind::corrupted);
    EXPECT_THAT(e.what(), HasSubstr("do not fit its row kernel"));
  }
}

}  // namespace
}  // namespace kiln::testing
