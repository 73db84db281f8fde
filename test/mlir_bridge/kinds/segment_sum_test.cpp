#include "ir/ops/segment_sum.hpp"

#include <set>

#include "ir/program.hpp"
#include "mlir_bridge/kinds/kind.hpp"
#include "test/mlir_bridge/cpu/harness.hpp"
#include "test/mlir_bridge/gpu/gpu_targets.hpp"

namespace kiln::test {
namespace {

using in = const std::vector<value>&;

// Ids from -1 to `segments`: the first and last rows belong to no segment. Some ids occur several times, others never.
literal ascending_ids(std::int64_t rows, std::int64_t segments, element_type type) {
  std::vector<double> numbers;
  for (std::int64_t row = 0; row < rows; ++row) numbers.push_back(static_cast<double>(row * (segments + 2) / rows - 1));
  return literal::from_doubles({type, {rows}}, numbers);
}

void check_rows(element_type type, element_type id_type, std::vector<dim> rest, std::int64_t rows,
                std::int64_t segments) {
  SCOPED_TRACE(std::string(name(type)) + " " + std::to_string(rows) + " rows, " + std::to_string(segments));
  std::vector<dim> dims{rows};
  dims.insert(dims.end(), rest.begin(), rest.end());
  auto m = fusion({typed(type, dims), typed(id_type, {rows})},
                  [&](module& m, in p) { return std::vector<value>{m.add(segment_sum{segments}, p)}; });
  std::mt19937 random(7);
  std::vector<literal> inputs{random_literal(typed(type, dims), random), ascending_ids(rows, segments, id_type)};
  check(*m, inputs, tolerance{1e-3, 1e-3});
}

TEST(segment_sum, every_type_and_width) {
  for (auto type : {element_type::f32, element_type::f64, element_type::f16, element_type::bf16, element_type::i64,
                    element_type::i32, element_type::u8})
    check_rows(type, element_type::i64, {12}, 40, 7);
  for (std::int64_t width : {1, 3, 16, 37, 64}) check_rows(element_type::f32, element_type::i32, {width}, 33, 5);
  check_rows(element_type::f32, element_type::i64, {}, 100, 9);
  check_rows(element_type::f32, element_type::i64, {3, 4, 8}, 20, 6);
}

TEST(segment_sum, few_and_many_rows) {
  for (std::int64_t rows : {1, 2, 3, 4, 5, 255, 256, 257})
    check_rows(element_type::f32, element_type::i64, {4}, rows, 3);
  check_rows(element_type::f32, element_type::i64, {4}, 0, 3);
  check_rows(element_type::f32, element_type::i64, {4}, 10, 50);
}

TEST(segment_sum, takes_a_prologue_and_an_epilogue) {
  auto m = fusion({f32({30, 20}), typed(element_type::i64, {30}), f32({6, 20})}, [&](module& m, in p) {
    value negative = m.add(elementwise{scalar_function::neg}, {p[0]});
    value sums = m.add(segment_sum{6}, {negative, p[1]});
    return std::vector<value>{m.add(elementwise{scalar_function::add}, {sums, p[2]})};
  });
  std::mt19937 random(3);
  std::vector<literal> inputs{random_literal(f32({30, 20}), random), ascending_ids(30, 6, element_type::i64),
                              random_literal(f32({6, 20}), random)};
  check(*m, inputs, tolerance{1e-4, 1e-4});
}

TEST(segment_sum, has_code_for_every_gpu) {
  auto one = [](shape data, shape ids, std::int64_t segments) {
    check_all_targets(
        *gpu_fusion({data, ids}, [&](module& m, in p) { return std::vector<value>{m.add(segment_sum{segments}, p)}; }));
  };
  one({element_type::f16, {1000, 64}}, {element_type::i64, {1000}}, 50);
  one({element_type::f32, {1000, 7}}, {element_type::i32, {1000}}, 50);
  one({element_type::f32, {9}}, {element_type::i64, {9}}, 2);
}

TEST(kinds, every_kind_has_one_row_and_both_generators) {
  std::set<std::string_view> names;
  for (const kernel_kind& kind : kernel_kinds()) {
    EXPECT_TRUE(names.insert(kind.operation).second) << kind.operation;
    EXPECT_TRUE(kind.cpu.emit && kind.gpu.emit) << kind.operation;
    EXPECT_EQ(find_kind(kind.operation), &kind);
    if (!kind.operation.empty()) {
      EXPECT_EQ(make_operation(kind.operation, {}).name(), kind.operation);
    }
  }
  EXPECT_TRUE(names.contains("segment_sum"));
  EXPECT_EQ(find_kind("reshape"), nullptr);
}

}  // namespace
}  // namespace kiln::test
