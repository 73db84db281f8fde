// Compiles a fusion for a CPU target, loads the object into this process and compares its results with the reference.
// Buffers end at an inaccessible page (and, in a second run, begin after one), so that an access outside a tensor ends
// the test.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "ir/module.hpp"
#include "ir/native_kernel.hpp"
#include "mlir_bridge/kernel/kernel_configuration.hpp"
#include "mlir_bridge/targets/target_row.hpp"
#include "runtime/host_kernel.hpp"

namespace kiln::test {

target_row v3_row();
target_row v4_row();

// Returns the rows that this machine can run; prints the names of those it cannot.
std::vector<target_row> rows_here();

native_kernel compile_fusion(const module& fusion, const target_row& row,
                             const kernel_configuration& configuration = {});

class loaded_kernel {
 public:
  explicit loaded_kernel(native_kernel kernel);
  ~loaded_kernel();
  const native_kernel& kernel() const { return kernel_; }
  host_kernel function(std::size_t launch) const { return functions_[launch]; }

 private:
  struct implementation;
  native_kernel kernel_;
  std::unique_ptr<implementation> impl_;
  std::vector<host_kernel> functions_;
};

// Runs every launch with its grid divided into `splits` parts, which are executed out of order. Outputs are filled with
// NaN first.
enum class guard { after, before };
std::vector<literal> run(const loaded_kernel& kernel, std::span<const literal> inputs, std::span<const shape> outputs,
                         std::int64_t splits, guard side);

// Random values, small for 8-bit integers.
literal random_literal(const shape& type, unsigned seed);

// Compiles and runs on every row with several splits, and compares with the reference: ‖error‖ / ‖reference‖ of each
// output must be at most `tolerance`, and no element may be NaN.
void expect_matches(const module& fusion, double tolerance, const kernel_configuration& configuration = {});

}  // namespace kiln::test
