// Tensors of 4 bits on a CPU: products whose weights (of 8 bits as well) are unpacked on the fly, and all operations
// that read i4 and u4 elements.
#include <gtest/gtest.h>

#include "fusions.hpp"
#include "harness.hpp"
#include "ir/error.hpp"

namespace kiln::test {
namespace {

using enum element_type;

struct weights {
  std::int64_t n, k, group;
  element_type packed = i4, type = f32;
  bool zero_points = false;
  std::optional<double> offset = {};  // of all codes
  std::int64_t left_bits = 0;         // of the product
};

// dot(a, dequantized weights) in the form of aot/passes/quantized_matrix.hpp.
std::unique_ptr<module> int4_dot(const dims_of& a, const weights& w, epilogue kind = epilogue::none) {
  auto m = std::make_unique<module>("kernel");
  value left = m->add_parameter("a", shape_of(w.type, a));
  const std::vector<dim> apart{w.n, w.k / w.group, w.group}, shared{w.n, w.k / w.group, 1};
  value x = m->add(convert{w.type}, {m->add_parameter("w", {w.packed, apart})});
  auto apply = [&](scalar_function f, const char* name) {
    x = m->add(elementwise{f}, {x, m->add(broadcast{apart}, {m->add_parameter(name, {w.type, shared})})});
  };
  if (w.offset) {
    const value number = m->add(constant{literal::scalar(w.type, *w.offset)}, {});
    x = m->add(elementwise{scalar_function::add}, {x, m->add(broadcast{apart}, {number})});
  }
  if (w.zero_points) apply(scalar_function::sub, "zero");
  apply(scalar_function::mul, "scale");
  std::vector<dim> whole(a.size() - 2, 1);
  whole.insert(whole.end(), {w.n, w.k});
  x = m->add(reshape{whole}, {x});
  finish(*m, m->add(dot{.transpose_b = true, .type = w.type, .left_bits = w.left_bits}, {left, x}), kind);
  return m;
}

TEST(int4, products_of_few_rows) {
  for (std::int64_t m : {1, 4, 7, 16, 61})
    for (auto [n, k, group] : {std::array<std::int64_t, 3>{1, 64, 64}, {37, 128, 32}, {50, 1056, 32}, {8, 96, 48}}) {
      expect_matches(*int4_dot({m, k}, {n, k, group}), 1e-6);
      if (HasFatalFailure()) return;
    }
}

// Few rows, and some that are taken by twos: whole vectors of codes and what is left of them, blocks shorter and longer
// than a vector, codes without a sign, offsets of blocks, and one of all codes, a whole number or not.
TEST(int4, products_of_blocks) {
  for (element_type packed : {i4, u4, u8})
    for (std::int64_t m : {1, 2, 3, 4, 5, 11})
      for (auto [n, k, group] : {std::array<std::int64_t, 3>{9, 288, 32}, {6, 192, 64}, {5, 1024, 128}, {7, 512, 256}})
        for (bool zero_points : {false, true}) {
          SCOPED_TRACE(std::string(name(packed)));
          expect_matches(*int4_dot({m, k}, {n, k, group, packed, f32, zero_points}), 1e-6);
          if (HasFatalFailure()) return;
        }
  for (element_type packed : {i4, u4})
    for (std::int64_t m : {1, 5})
      for (double offset : {-8.0, 3.0, 2.5, 100.0})
        expect_matches(*int4_dot({m, 288}, {18, 288, 32, packed, f32, false, offset}), 1e-6);
}

// The root mean square of the rounding errors of a block with one scale is 1 / largest / sqrt(12) of the block's
// largest element, which is two to three times as large as the root mean square of all: with 16 bits 2e-5, with 8
// bits 5.7e-3.
TEST(int4, products_that_may_round_their_rows) {
  for (const auto [bits, bound] : {std::pair<std::int64_t, double>{16, 1e-4}, {8, 1e-2}}) {
    SCOPED_TRACE(bits);
    for (element_type packed : {i4, u4})
      for (std::int64_t m : {1, 4, 11})
        for (auto [n, k, group] : {std::array<std::int64_t, 3>{9, 288, 32}, {5, 1024, 128}})
          for (bool zero_points : {false, true})
            expect_matches(*int4_dot({m, k}, {n, k, group, packed, f32, zero_points, {}, bits}), bound);
    expect_matches(*int4_dot({45, 128}, {20, 128, 32, u4, f32, true, {}, bits}), bound);
  }
}

// Panels of columns, with columns in the last one and steps in the last piece of the depth that do not fill it. 270
// rows are two items.
TEST(int4, products_of_many_rows) {
  for (std::int64_t m : {40, 78, 129, 270})
    for (auto [n, k, group] : {std::array<std::int64_t, 3>{35, 96, 32}, {64, 256, 64}, {3, 144, 16}}) {
      expect_matches(*int4_dot({m, k}, {n, k, group}), 1e-6);
      if (HasFatalFailure()) return;
    }
}

TEST(int4, groups_and_depths_that_no_vector_divides) {
  for (std::int64_t m : {1, 6, 20})
    for (auto [n, k, group] : {std::array<std::int64_t, 3>{5, 27, 9}, {6, 40, 40}, {7, 33, 1}, {4, 72, 24}}) {
      expect_matches(*int4_dot({m, k}, {n, k, group}), 1e-6);
      if (HasFatalFailure()) return;
    }
}

TEST(int4, types_zero_points_and_epilogues) {
  for (element_type type : {f32, f16, bf16})
    for (element_type packed : {i4, u4, i8, u8})
      for (std::int64_t m : {1, 9, 45}) {
        SCOPED_TRACE(std::string(name(type)) + " " + std::string(name(packed)));
        expect_matches(*int4_dot({1, m, 128}, {20, 128, 32, packed, type, true}, epilogue::bias_relu),
                       type == f32   ? 1e-6
                       : type == f16 ? 3e-3
                                     : 2e-2);
        if (HasFatalFailure()) return;
      }
}

// Checks the result of `build` for an i4 and a u4 parameter, with every alignment that the dims lead to.
void expect_reads(const std::vector<dim>& dims, const std::function<value(module&, value)>& build) {
  for (element_type packed : {i4, u4})
    for (element_type type : {f32, f16, f64, i8, u8, i32, i64}) {
      module m("kernel");
      m.set_outputs({m.add(convert{type}, {build(m, m.add_parameter("x", {packed, dims}))})}, {"y"});
      SCOPED_TRACE(std::string(name(packed)) + " " + std::string(name(type)));
      expect_matches(m, 0);
    }
}

TEST(int4, converts_tensors_of_any_size) {
  for (std::int64_t n : {1, 2, 3, 8, 17, 64, 1001}) expect_reads({n}, [](module&, value x) { return x; });
  expect_reads({5, 7}, [](module&, value x) { return x; });
}

TEST(int4, converts_moved_tensors) {
  expect_reads({6, 10}, [](module& m, value x) { return m.add(transpose{{1, 0}}, {x}); });
  expect_reads({7, 9}, [](module& m, value x) { return m.add(transpose{{1, 0}}, {x}); });
  expect_reads({40}, [](module& m, value x) { return m.add(slice{{3}, {32}, {1}}, {x}); });
  expect_reads({40}, [](module& m, value x) { return m.add(slice{{1}, {13}, {3}}, {x}); });
  expect_reads({4, 16}, [](module& m, value x) { return m.add(pad{{0, 3}, {1, 2}, pad_mode::constant_, 1}, {x}); });
  expect_reads({4, 16}, [](module& m, value x) { return m.add(concat{1}, {x, x}); });
  expect_reads({16}, [](module& m, value x) { return m.add(broadcast{{3, 16}}, {x}); });
}

}  // namespace
}  // namespace kiln::test
