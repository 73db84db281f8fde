#include "tools/launch_work.hpp"

#include <algorithm>

#include <map>
#include <utility>
#include <vector>

#include "ir/code_object.hpp"
#include "ir/error.hpp"
#include "jit/compile_worker.hpp"
#include "jit/emit.hpp"
#include "jit/targets.hpp"
#include "tools/kernel_sketch.hpp"

namespace kiln::tools {
namespace {

nlohmann::ordered_json operations_of(const instruction& i, const kernel_sketch& kernel) {
  std::vector<shape> inputs;
  for (value v : i.inputs()) inputs.push_back(v.type());
  const auto count = count_operations(kernel, inputs, i.outputs());
  return count ? nlohmann::ordered_json(*count) : nlohmann::ordered_json();
}

}  // namespace

void add_operations(nlohmann::ordered_json& per_kernel, const program& bound, const worker_choice& choice) {
  const auto workers = workers_for_files(choice);
  std::map<std::string, kernel_sketch> sketches;
  auto sketch_of = [&](const std::string& hash) -> const kernel_sketch& {
    auto [found, first] = sketches.try_emplace(hash);
    if (!first) return found->second;
    const auto payload = bound.kernel(content_hash::from_hex(hash));
    found->second = read_kernel_text(workers ? text_in_worker(*workers, {payload, {}, {}, targets().front()}, "mlir")
                                             : emit_code(payload, {}, targets().front(), "mlir"));
    return found->second;
  };
  // Rows with the same symbol and origin follow one another as their kernels do; the last kernel serves further rows.
  std::map<std::pair<std::string, std::string>, std::vector<const instruction*>> kernels;
  for (const module& m : bound.modules())
    for (const instruction& i : m.instructions())
      if (const auto* c = i.op().get_if<code_object>(); c && c->format == code_format::mlir_bytecode)
        kernels[{c->symbol, i.origin()}].push_back(&i);
  std::map<std::pair<std::string, std::string>, std::size_t> turns;
  for (auto& row : per_kernel) {
    row["operations"] = nullptr;
    const std::pair key{row["symbol"].get<std::string>(), row["origin"].get<std::string>()};
    const auto found = kernels.find(key);
    if (found == kernels.end()) continue;
    const instruction& i = *found->second[std::min(turns[key]++, found->second.size() - 1)];
    try {
      row["operations"] = operations_of(i, sketch_of(i.op().get_if<code_object>()->payload));
    } catch (const error&) {  // a worker that gave up: the measurement stands without it
    }
  }
}

}  // namespace kiln::tools
