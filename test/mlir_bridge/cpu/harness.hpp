// Compiles a fusion for a CPU target, loads the object into this process and compares its results with the reference
// implementation. Outputs and scratch are filled with NaN bytes before each run. The grid is split in several ways, all
// of which must give the same bytes.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "ir/module.hpp"
#include "ir/ops/all.hpp"
#include "ir/program.hpp"
#include "mlir_bridge/finalize.hpp"

namespace kiln::test {

// The CPU rows that this machine can run.
const std::vector<target_row>& runnable_targets();
const target_row& best_target();

// A native kernel, loaded. Owns the code.
class loaded_kernel {
 public:
  loaded_kernel(const module& fusion, const target_row& target, const kernel_configuration& configuration = {},
                finalize_trace* trace = nullptr);
  ~loaded_kernel();
  const native_kernel& native() const { return native_; }
  // For an open kernel: later runs use tensors of these sizes.
  void set_sizes(const dim_bindings& sizes);
  // `pieces`: the grid is split into about this many parts, which are run from last to first; 1 runs it in one call.
  std::vector<literal> run(std::span<const literal> inputs, std::int64_t pieces = 1) const;
  // Runs once more on the prepared buffers, without the launches that a runtime runs only at load. For timing.
  std::function<void()> prepared(std::span<const literal> inputs) const;

 private:
  struct session;
  struct buffers;
  void execute(const buffers& b, std::int64_t pieces, bool prepare = true) const;
  native_kernel native_;
  std::vector<shape> open_outputs_, outputs_;
  // The sizes of an open kernel.
  std::vector<std::int64_t> sizes_;
  std::unique_ptr<session> session_;
};

struct tolerance {
  double relative = 1e-5, absolute = 1e-6;
};
tolerance default_tolerance(element_type type);

// Compares element by element; NaN equals NaN, integers must be equal.
void expect_close(const literal& actual, const literal& expected, tolerance allowed, const std::string& what);

// Random values: floats normal with deviation `scale`, integers within about ±scale, bools at random.
literal random_literal(const shape& s, std::mt19937& random, double scale = 1);

// Finalizes for every runnable target and compares with evaluate().
void check(const module& fusion, std::span<const literal> inputs, std::optional<tolerance> allowed = {});
// The same with random inputs.
void check(const module& fusion, unsigned seed = 1, double scale = 1, std::optional<tolerance> allowed = {});

// Compiles a fusion with open dims once for every runnable target and compares its results for each of these sizes.
// Floats are random, integers within about ±scale.
void check_open(const std::vector<shape>& inputs,
                const std::function<std::vector<value>(module&, const std::vector<value>&)>& build,
                const std::vector<dim_bindings>& sizes, double scale = 1, std::optional<tolerance> allowed = {});

// Builds a fusion with a function that receives the parameters and returns the outputs.
std::unique_ptr<module> fusion(const std::vector<shape>& inputs,
                               const std::function<std::vector<value>(module&, const std::vector<value>&)>& build);

inline shape f32(std::vector<dim> dims) { return {element_type::f32, std::move(dims)}; }
inline shape typed(element_type type, std::vector<dim> dims) { return {type, std::move(dims)}; }

}  // namespace kiln::test
