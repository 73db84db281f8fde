#include "gpu_targets.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <string_view>

#include "exec_mask.hpp"
#include "ir/error.hpp"
#include "jit/targets.hpp"
#include "mlir_bridge/back_ends/amd/disassembly.hpp"
#include "mlir_bridge/kernel/kernel_bytecode.hpp"
#include "mlir_bridge/kernel/portable_kernel.hpp"

namespace kiln::test {

std::vector<target_row> gpu_targets() {
  const bool all = std::getenv("KILN_ALL_TARGETS") != nullptr;
  std::vector<target_row> rows;
  for (const target_row& row : targets()) {
    auto same = [&](const target_row& other) {
      return row.family == other.family && row.gpu.wave == other.gpu.wave && row.gpu.matrix == other.gpu.matrix &&
             row.gpu.dots == other.gpu.dots && row.gpu.async_copy == other.gpu.async_copy &&
             row.gpu.dependent_launch == other.gpu.dependent_launch;
    };
    if (row.family == target_family::cpu) continue;
    if (all || std::ranges::none_of(rows, same)) rows.push_back(row);
  }
  return rows;
}

std::unique_ptr<module> gpu_fusion(const std::vector<shape>& inputs,
                                   const std::function<std::vector<value>(module&, const std::vector<value>&)>& build) {
  auto m = std::make_unique<module>("tested");
  std::vector<value> parameters;
  for (std::size_t i = 0; i < inputs.size(); ++i)
    parameters.push_back(m->add_parameter("input" + std::to_string(i), inputs[i]));
  auto outputs = build(*m, parameters);
  std::vector<std::string> names;
  for (std::size_t i = 0; i < outputs.size(); ++i) names.push_back("output" + std::to_string(i));
  m->set_outputs(outputs, names);
  return m;
}

native_kernel finalize_for(const module& fusion, const target_row& target, finalize_trace* trace) {
  static compiler_context context;
  native_kernel kernel = finalize(portable_kernel::parse(context, write_kernel(fusion, "tested")), target, {}, trace);
  if (const char* folder = std::getenv("KILN_DUMP"); folder && target.family == target_family::nvidia) {
    static int number = 0;
    std::ofstream file(std::string(folder) + "/" + std::to_string(number++) + "_" + target.processor + ".ptx");
    file.write(reinterpret_cast<const char*>(kernel.object.data()),
               static_cast<std::streamsize>(kernel.object.size()) - 1);
  }
  for (const launch& l : kernel.launches) {
    if (target.family != target_family::amdgpu || l.statistics.matrix_instructions == 0) continue;
    EXPECT_THAT(check_exec_mask(gpu::disassemble(kernel.object, l.symbol)).narrowed, testing::IsEmpty())
        << target.name << " " << l.symbol;
  }
  return kernel;
}

// On targets with dependent launch, each kernel must wait before it accesses memory, and its launch must be marked.
// Only attention that appends to its caches is not: it starts when its predecessors have ended.
void check_waits(const native_kernel& kernel, const target_row& target) {
  const bool appends = std::ranges::any_of(kernel.launches, [](const launch& l) { return l.copies.has_value(); });
  const auto starts_late = [&](const launch& l) { return appends && !l.waits && l.symbol.ends_with("_attention"); };
  for (const launch& l : kernel.launches)
    if (!starts_late(l)) EXPECT_EQ(l.waits, target.gpu.dependent_launch) << l.symbol;
  if (target.family != target_family::nvidia) return;
  std::string_view ptx(reinterpret_cast<const char*>(kernel.object.data()), kernel.object.size() - 1);
  for (const launch& l : kernel.launches) {
    auto begin = ptx.find(".entry " + l.symbol + "(");
    ASSERT_NE(begin, std::string_view::npos) << l.symbol;
    std::string_view code = ptx.substr(begin, ptx.find(".entry ", begin + 1) - begin);
    auto wait = code.find("griddepcontrol.wait;");
    EXPECT_EQ(wait != std::string_view::npos, target.gpu.dependent_launch) << l.symbol;
    if (!target.gpu.dependent_launch || starts_late(l)) continue;
    if (!l.early_arguments.empty()) continue;  // weights, which the copy engine reads before the wait
    for (const char* access : {"ld.global", "st.global", "cp.async", "atom.", "red."})
      EXPECT_LT(wait, code.find(access)) << l.symbol << " " << access;
  }
}

void check_all_targets(const module& fusion, bool private_memory) {
  for (const target_row& target : gpu_targets()) {
    SCOPED_TRACE(target.name + "\n" + fusion.str());
    try {
      native_kernel kernel = finalize_for(fusion, target);
      EXPECT_FALSE(kernel.launches.empty());
      check_waits(kernel, target);
      for (const launch& l : kernel.launches) {
        EXPECT_EQ(l.statistics.spills, 0) << l.symbol;
        if (!private_memory) {
          EXPECT_EQ(l.statistics.private_bytes, 0) << l.symbol;
        }
        EXPECT_LE(l.statistics.static_lds_bytes + l.lds_bytes, target.gpu.lds_bytes) << l.symbol;
        EXPECT_LE(l.block, target.gpu.max_threads) << l.symbol;
        EXPECT_GT(l.grid * l.grid_y * l.grid_z, 0) << l.symbol;
      }
    } catch (const error& e) {
      ADD_FAILURE() << e.what();
    }
  }
}

}  // namespace kiln::test
