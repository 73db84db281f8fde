#include "aot/kernels/formation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <unordered_map>

#include "aot/kernels/fusion_module.hpp"
#include "aot/passes/facts.hpp"
#include "aot/passes/rewrite.hpp"
#include "ir/cancellation.hpp"
#include "ir/independent_rows.hpp"
#include "ir/open_form.hpp"
#include "ir/ops/all.hpp"
#include "mlir_bridge/kinds/kind.hpp"

namespace kiln {
namespace {

bool has_open_dims(const module& fusion) {
  return std::ranges::any_of(fusion.instructions(),
                             [](const instruction& i) { return !std::ranges::all_of(i.outputs(), &shape::is_static); });
}

// Returns true if `d` depends on a size that is computed in floats, whose symbol only the kernel knows.
bool has_computed_sizes(const dim& d) {
  return std::ranges::any_of(d.symbols(), [](const std::string& s) { return s.starts_with(computed_prefix); });
}

// The kernels of the whole program by the text of their fusion. Each distinct kernel is written only once.
class kernel_pool {
 public:
  kernel_pool(program& p, const kernel_writer& write, std::vector<formed_kernel>& formed)
      : program_(p), write_(write), formed_(formed) {}

  const formed_kernel& add(fusion_copy& copy) {
    auto [found, fresh] = known_.try_emplace(copy.body->str(), formed_.size());
    if (fresh) {
      content_hash payload = program_.add_kernel(write_(*copy.body, copy.symbol));
      if (auto rows = independent_rows(*copy.body); rows && !has_computed_sizes(*rows))
        record_rows(program_, payload.hex(), *rows);
      if (has_open_dims(*copy.body))
        for (const processor on : {processor::cpu, processor::gpu}) {
          std::string missing;
          has_open_form(*copy.body, on, &missing);
          record_open_form(program_, payload.hex(), on, missing);
        }
      formed_.push_back({payload, copy.symbol, std::shared_ptr<const module>(std::move(copy.body)), 0});
    }
    formed_kernel& kernel = formed_[found->second];
    ++kernel.uses;
    return kernel;
  }

 private:
  program& program_;
  const kernel_writer& write_;
  std::vector<formed_kernel>& formed_;
  std::map<std::string, std::size_t> known_;
};

struct divided {
  partition whole;
  std::vector<fusion_copy> copies;  // one for each fusion
};

// Every kernel derives its dims from the shapes of its parameters and outputs. Instructions with other dims must be
// computed by a separate kernel, so the partition is repeated with their results in memory.
divided divide(module& m) {
  for (partition_options options;;) {
    divided d{make_partition(m, options), {}};
    const std::size_t before = options.in_memory.size();
    for (std::size_t i = 0; i < d.whole.fusions.size(); ++i) {
      d.copies.push_back(copy_fusion(d.whole, i));
      options.in_memory.insert(d.copies.back().untold.begin(), d.copies.back().untold.end());
    }
    if (options.in_memory.size() == before) return d;
  }
}

void form_module(module& m, kernel_pool& pool) {
  m.erase_dead();
  auto [whole, copies] = divide(m);

  // Arguments may be outputs of kernels that are created later in this loop (m.sort() restores the order), or may have
  // been replaced already.
  std::map<value, value> replaced;
  auto current = [&](value v) {
    auto found = replaced.find(v);
    return found == replaced.end() ? v : found->second;
  };
  for (instruction* at : whole.constants) {
    value made = m.add_constant(evaluate_constant_like(at->output()));
    made.producer->set_origin(at->origin());
    m.replace(at->output(), made);
    replaced[at->output()] = made;
  }
  // module::insert would search for each instruction.
  std::unordered_map<const instruction*, place> places;
  for (place at = m.instructions().begin(); at != m.instructions().end(); ++at) places[&*at] = at;
  for (std::size_t i = 0; i < copies.size(); ++i) {
    check_stop();
    const fusion& source = whole.fusions[i];
    std::vector<shape> outputs;
    for (value v : source.outputs) outputs.push_back(v.type());
    std::vector<value> arguments;
    for (value v : copies[i].arguments) arguments.push_back(current(v));
    std::string origins = fmt::format("{}", fmt::join(copies[i].origins, ", "));
    const formed_kernel& kernel = pool.add(copies[i]);
    operation op = code_object::make(kernel.symbol, code_format::mlir_bytecode, kernel.payload, "", outputs);
    value made = insert_at(m, places.at(source.members.back()), std::move(op), std::move(arguments));
    made.producer->set_origin(std::move(origins));
    for (std::uint32_t k = 0; k < source.outputs.size(); ++k) {
      m.replace(source.outputs[k], {made.producer, k});
      replaced[source.outputs[k]] = {made.producer, k};
    }
  }
  m.sort();
  m.erase_dead();
}

}  // namespace

void form_kernels(program& p, const kernel_writer& write, std::vector<formed_kernel>* formed) {
  std::vector<formed_kernel> local;
  kernel_pool pool(p, write, formed ? *formed : local);
  for (module& m : p.modules()) form_module(m, pool);
}

}  // namespace kiln
