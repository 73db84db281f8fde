#include "mlir_bridge/targets/target_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <vector>

#include "ir/cpu_rows.hpp"
#include "mlir_bridge/targets/gpu_rows.hpp"

namespace kiln {
namespace {

target_row of_cpu(const cpu_row& row) {
  const char* triple = row.architecture == cpu_architecture::aarch64 ? arm_triple : x86_triple;
  return {.name = std::string(row.name),
          .family = target_family::cpu,
          .triple = triple,
          .processor = std::string(row.processor),
          .features = std::string(row.features),
          .vector_bits = row.vector_bits,
          .vector_registers = row.vector_registers,
          .l1_bytes = row.l1_bytes,
          .l2_bytes = row.l2_bytes,
          .products = std::string(row.products),
          .source = std::string(row.source)};
}

const std::vector<target_row>& table() {
  static const std::vector<target_row> rows = [] {
    std::vector<target_row> all;
    for (const cpu_row& row : cpu_rows()) all.push_back(of_cpu(row));
    for (auto* rows_of : {amd_rows, nvidia_rows}) std::ranges::move(rows_of(), std::back_inserter(all));
    return all;
  }();
  return rows;
}

}  // namespace

std::span<const target_row> targets() { return table(); }

const target_row* find_row(std::string_view name) {
  auto found = std::ranges::find(table(), name, &target_row::name);
  return found == table().end() ? nullptr : &*found;
}

std::string describe(const target_row& row) {
  std::string text = fmt::format("{} {} {} {} {} {} {}/{}", enum_name(row.family), row.triple, row.processor,
                                 row.features, row.vector_bits, row.vector_registers, row.l1_bytes, row.l2_bytes);
  if (row.family == target_family::cpu) return text;
  const gpu_row& g = row.gpu;
  return fmt::format("{} {} {} {}/{} {} {} {} {} {}{}{}", text, g.wave, g.lds_bytes, g.registers, g.register_file,
                     g.max_threads, g.compute_units, enum_name(g.matrix), enum_name(g.dots), g.async_copy,
                     g.tensor_copy, g.dependent_launch);
}

}  // namespace kiln
