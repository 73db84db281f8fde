#include "session/row_kernels.hpp"

#include <algorithm>

#include "ir/independent_rows.hpp"
#include "ir/row_kernel.hpp"

namespace kiln {
namespace {

// A kernel of the program, with open dims. The first instruction that uses it stands for all: equal payloads have equal
// symbolic shapes.
struct open_kernel {
  const instruction* first = nullptr;
  const code_object* object = nullptr;
  dim rows;

  std::vector<shape> inputs(std::int64_t block) const {
    std::vector<shape> result;
    for (value v : first->inputs()) result.push_back(v.type().substitute(block_of_rows(rows, block)));
    return result;
  }
  std::vector<shape> outputs(std::int64_t block) const {
    std::vector<shape> result;
    for (const shape& s : first->outputs()) result.push_back(s.substitute(block_of_rows(rows, block)));
    return result;
  }
};

bool all_static(std::span<const shape> shapes) { return std::ranges::all_of(shapes, &shape::is_static); }

// Blocks start at addresses: a row of 4-bit elements must have whole bytes.
bool whole_bytes(std::span<const shape> shapes) {
  return std::ranges::all_of(shapes, [](const shape& s) { return s.element_count() * storage_bits(s.type) % 8 == 0; });
}

std::map<std::string, open_kernel> open_kernels(const program& portable) {
  std::map<std::string, open_kernel> result;
  for (const module& m : portable.modules())
    for (const instruction& i : m.instructions()) {
      const auto* object = i.op().get_if<code_object>();
      if (!object || object->format != code_format::mlir_bytecode || result.contains(object->payload)) continue;
      const auto rows = recorded_rows(portable, object->payload);
      if (!rows) continue;
      const open_kernel kernel{&i, object, *rows};
      const auto inputs = kernel.inputs(1), outputs = kernel.outputs(1);
      if (all_static(inputs) && all_static(outputs) && whole_bytes(inputs) && whole_bytes(outputs))
        result.emplace(object->payload, kernel);
    }
  return result;
}

std::vector<row_part> parts(const std::vector<shape>& one_row, const std::vector<bool>& per_row) {
  std::vector<row_part> result;
  for (std::size_t i = 0; i < one_row.size(); ++i)
    result.push_back({static_cast<std::int64_t>(one_row[i].bytes()), per_row[i]});
  return result;
}

std::int64_t row_bytes(const row_kernel& kernel) {
  std::int64_t bytes = 0;
  for (const auto* list : {&kernel.inputs, &kernel.outputs})
    for (const row_part& part : *list)
      if (part.per_row) bytes += part.bytes;
  return bytes;
}

row_kernel without_versions(const open_kernel& of) {
  std::vector<bool> per_row;
  for (value v : of.first->inputs()) per_row.push_back(!v.type().is_static());
  return {parts(of.inputs(1), per_row), parts(of.outputs(1), std::vector<bool>(of.first->outputs().size(), true)), {}};
}

// Adds an instruction that computes one block, so that the program can be compiled like any other.
void add_block(program& blocks, const open_kernel& of, std::int64_t rows, std::vector<value>& outputs) {
  module& m = blocks.main();
  std::vector<value> inputs;
  for (const shape& s : of.inputs(rows))
    inputs.push_back(m.add_parameter("p" + std::to_string(m.parameters().size()), s));
  code_object op = *of.object;
  op.dims.clear();
  for (const shape& s : of.outputs(rows)) op.dims.insert(op.dims.end(), s.dims.begin(), s.dims.end());
  const value first = m.add(std::move(op), std::move(inputs));
  outputs.push_back(first);
}

}  // namespace

std::vector<std::int64_t> block_sizes(std::int64_t bytes) {
  // A launch costs about as much as moving this many bytes through a cache.
  constexpr std::int64_t enough = 1 << 16, step = 16, most = 256;
  std::vector<std::int64_t> sizes{1};
  while (sizes.front() < most && sizes.front() * bytes < enough) sizes.insert(sizes.begin(), sizes.front() * step);
  return sizes;
}

row_kernels::row_kernels(const program& portable, const jit_options& options) : target_(options.target.name) {
  struct wanted {
    std::string payload;
    row_kernel kernel;
  };
  program blocks;
  std::vector<wanted> list;
  std::vector<value> outputs;
  for (const auto& [payload, kernel] : open_kernels(portable)) {
    const content_hash hash = content_hash::from_hex(payload);
    blocks.add_kernel(hash, portable.kernels().at(hash));
    wanted& next = list.emplace_back(wanted{payload, without_versions(kernel)});
    for (std::int64_t rows : block_sizes(row_bytes(next.kernel))) {
      add_block(blocks, kernel, rows, outputs);
      next.kernel.versions.push_back({rows, {}});
    }
  }
  if (list.empty()) return;
  std::vector<std::string> names;
  for (std::size_t i = 0; i < outputs.size(); ++i) names.push_back("o" + std::to_string(i));
  blocks.main().set_outputs(std::move(outputs), std::move(names));

  const program native = compile_bytecode(blocks, options, &report_);
  std::size_t next = 0;
  const auto compiled = native.main().outputs();
  for (wanted& w : list) {
    for (row_version& version : w.kernel.versions) {
      const auto* object = compiled[next++].producer->op().get_if<code_object>();
      version.kernel = deserialize_native_kernel(native.kernel(content_hash::from_hex(object->payload)));
    }
    auto bytes = std::make_shared<const std::vector<std::byte>>(serialize(w.kernel));
    made_.emplace(w.payload, native_payload{blake3(*bytes), bytes});
  }
}

program row_kernels::use_in(const program& bound) const {
  program result = bound.clone();
  for (module& m : result.modules())
    for (instruction& i : m.instructions()) {
      const auto* object = i.op().get_if<code_object>();
      if (!object || object->format == code_format::native) continue;
      const auto made = made_.find(object->payload);
      if (made == made_.end()) continue;
      result.add_kernel(made->second.hash, made->second.bytes);
      m.set_operation(&i,
                      code_object::make(object->symbol, code_format::native, made->second.hash, target_, i.outputs()));
    }
  return result;
}

}  // namespace kiln
