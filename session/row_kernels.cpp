#include "session/row_kernels.hpp"

#include <algorithm>

#include "ir/independent_rows.hpp"
#include "ir/row_kernel.hpp"
#include "session/block_sizes.hpp"
#include "session/kernel_program.hpp"

namespace kiln {
namespace {

// Upper bound on the kernels that are kept for different sizes inside rows. It exceeds the number of kernels in any
// model.
constexpr std::size_t most_kept = 4096;

std::vector<shape> substituted(const std::vector<shape>& shapes, const dim_bindings& sizes) {
  std::vector<shape> result;
  for (const shape& s : shapes) result.push_back(s.substitute(sizes));
  return result;
}

std::vector<shape> inputs_of(const instruction& i) {
  std::vector<shape> result;
  for (value v : i.inputs()) result.push_back(v.type());
  return result;
}

bool all_static(std::span<const shape> shapes) { return std::ranges::all_of(shapes, &shape::is_static); }

// Blocks start at byte addresses, so a row of 4-bit elements must have whole bytes.
bool whole_bytes(std::span<const shape> shapes) {
  return std::ranges::all_of(shapes, [](const shape& s) { return s.element_count() * storage_bits(s.type) % 8 == 0; });
}

std::vector<row_part> parts(const std::vector<shape>& open, const std::vector<shape>& one_row, const dim& rows) {
  std::vector<row_part> result;
  for (std::size_t i = 0; i < open.size(); ++i)
    result.push_back({static_cast<std::int64_t>(one_row[i].bytes()), has_rows(open[i], rows)});
  return result;
}

row_traffic traffic_of(const row_kernel& kernel, bool for_all_sizes) {
  row_traffic result{.for_all_sizes = for_all_sizes};
  for (const row_part& part : kernel.inputs) (part.per_row ? result.input_bytes : result.shared_bytes) += part.bytes;
  for (const row_part& part : kernel.outputs) (part.per_row ? result.output_bytes : result.shared_bytes) += part.bytes;
  return result;
}

// Returns true if rows of floats are computed from matrices of at most 8 bits that all rows share.
bool unpacks_weights(const std::vector<shape>& inputs, const std::vector<shape>& results, const dim& rows) {
  return std::ranges::any_of(
             inputs,
             [&](const shape& s) { return s.dims.size() > 1 && storage_bits(s.type) <= 8 && !has_rows(s, rows); }) &&
         std::ranges::all_of(results, [](const shape& s) { return is_float(s.type); });
}

}  // namespace

struct row_kernels::wanted_kernel {
  key name;
  // Without the code of its versions.
  row_kernel kernel;
};

row_kernels::row_kernels(const program& portable) : portable_(portable) {
  for (const module& m : portable.modules())
    for (const instruction& i : m.instructions()) {
      const auto* object = i.op().get_if<code_object>();
      if (!object || object->format != code_format::mlir_bytecode || open_.contains(object->payload)) continue;
      const auto rows = recorded_rows(portable, object->payload);
      if (!rows) continue;
      std::set<std::string> inside;
      auto collect = [&](const shape& s) {
        for (const dim& d : s.dims) inside.merge(d.symbols());
      };
      std::ranges::for_each(inputs_of(i), collect);
      std::ranges::for_each(i.outputs(), collect);
      for (const std::string& symbol : rows->symbols()) inside.erase(symbol);
      open_.emplace(object->payload, open_kernel{&i, object, *rows, {inside.begin(), inside.end()}});
    }
}

std::set<std::string> row_kernels::of_static_rows() const {
  std::set<std::string> result;
  for (const auto& [payload, kernel] : open_)
    if (kernel.inside.empty()) result.insert(payload);
  return result;
}

void row_kernels::leave_out(const std::function<bool(const std::string& payload)>& has_better) {
  std::erase_if(open_, [&](const auto& kernel) { return has_better(kernel.first); });
}

row_kernels::key row_kernels::key_of(const open_kernel& kernel, const dim_bindings& sizes) {
  key result{kernel.object->payload, {}};
  for (const std::string& symbol : kernel.inside)
    if (const auto found = sizes.find(symbol); found != sizes.end()) result.second.insert(*found);
  return result;
}

jit_report row_kernels::finalize(const dim_bindings& sizes, const jit_options& options) {
  ++uses_;
  kernel_program blocks(portable_);
  std::vector<wanted_kernel> wanted;
  for (const auto& [payload, kernel] : open_) {
    key name = key_of(kernel, sizes);
    if (const auto made = made_.find(name); made != made_.end()) {
      made->second.last_use = uses_;
      continue;
    }
    const auto inputs = inputs_of(*kernel.first);
    const auto& results = kernel.first->outputs();
    const dim_bindings one = block_of_rows(kernel.rows, 1, sizes);
    const auto row_inputs = substituted(inputs, one), row_outputs = substituted(results, one);
    const bool fits =
        all_static(row_inputs) && all_static(row_outputs) && whole_bytes(row_inputs) && whole_bytes(row_outputs);
    // No kernel is compiled if all results are empty.
    if (!fits || std::ranges::all_of(row_outputs, [](const shape& s) { return s.element_count() == 0; })) continue;
    wanted_kernel& next = wanted.emplace_back(wanted_kernel{
        std::move(name), {parts(inputs, row_inputs, kernel.rows), parts(results, row_outputs, kernel.rows), {}}});
    row_traffic traffic = traffic_of(next.kernel, kernel.inside.empty());
    traffic.unpacks_weights = unpacks_weights(inputs, results, kernel.rows);
    const auto sizes_of_blocks = block_sizes(traffic);
    for (std::int64_t rows : sizes_of_blocks) {
      const dim_bindings block = block_of_rows(kernel.rows, rows, sizes);
      // Blocks of all sizes read the same packed weights, those of the largest blocks.
      kernel_configuration configuration;
      if (shares_panels(traffic, rows) && rows < sizes_of_blocks.front())
        configuration["shared_panels"] = sizes_of_blocks.front() / rows;
      blocks.add(*kernel.object, substituted(inputs, block), substituted(results, block), std::move(configuration));
      next.kernel.versions.push_back({rows, {}, sizes_of_blocks.size() > 1 ? block_cost(traffic, rows) : 0});
    }
  }
  if (wanted.empty()) return {};
  jit_report report;
  const program native = blocks.compile(options, &report);
  add(native, std::move(wanted), options.target.name);
  forget_oldest();
  return report;
}

// The outputs of `native` are the versions of the wanted kernels, in the same order.
void row_kernels::add(const program& native, std::vector<wanted_kernel> wanted, const std::string& target) {
  target_ = target;
  const auto versions = native.main().outputs();
  std::size_t next = 0;
  for (wanted_kernel& w : wanted) {
    for (row_version& version : w.kernel.versions) {
      const auto* object = versions[next++].producer->op().get_if<code_object>();
      version.kernel = deserialize_native_kernel(native.kernel(content_hash::from_hex(object->payload)));
    }
    auto bytes = std::make_shared<const std::vector<std::byte>>(serialize(w.kernel));
    made_.emplace(std::move(w.name), native_payload{blake3(*bytes), bytes, uses_});
  }
}

void row_kernels::forget_oldest() {
  if (made_.size() > most_kept) std::erase_if(made_, [&](const auto& m) { return m.second.last_use != uses_; });
}

void row_kernels::use_in(program& in, const dim_bindings* sizes) const {
  for (module& m : in.modules())
    for (instruction& i : m.instructions()) {
      const auto* object = i.op().get_if<code_object>();
      if (!object || object->format == code_format::native) continue;
      const auto open = open_.find(object->payload);
      if (open == open_.end() || (!sizes && !open->second.inside.empty())) continue;
      const auto made = made_.find(key_of(open->second, sizes ? *sizes : dim_bindings()));
      if (made == made_.end()) continue;
      const auto& [hash, bytes, last_use] = made->second;
      in.add_kernel(hash, bytes);
      m.set_operation(&i, code_object::make(object->symbol, code_format::native, hash, target_, i.outputs()));
    }
}

}  // namespace kiln
