// One portable kernel on its way to machine code: which buffers it has and which stages (launches) run it. A generator
// gets a kernel_emitter and emits one or more stages; finalize.cpp lowers what they built. Internal to mlir_bridge.
//
// The kernel is the fusion: an ir module. Its parameters are the kernel's inputs and its outputs the kernel's outputs;
// at most one instruction is the anchor. Its shapes are static, except for an *open* kernel (ir/native_kernel.hpp):
// generators of open kernels use sizes() where others use dims(), and take their values from size(), which reads the
// kernel's table of sizes.
//
//   void emit_something(kernel_emitter& e) {
//     const auto* op = e.anchor()->op().get_if<something>();
//     buffer a = e.materialize(e.anchor()->inputs()[0]);       // before the stage: may emit a stage of its own
//     buffer packed = e.add_scratch(element_type::f32, {n, k}, e.only_parameters(...));
//     e.begin_stage("pack", items, /*prepare=*/true);          // ... loops over [e.begin(), e.end()) ...
//     e.end_stage();
//     e.begin_stage("main", rows);
//     e.code.loop(e.begin(), e.end(), 1, [&](Value row) {
//       evaluator ev(e);                                        // see evaluator.hpp
//       ...
//       ev.bind(e.anchor_result(), accumulators);               // the anchor's values at `at`
//       ev.store_outputs(at, lanes);                            // epilogue, conversion, stores to every output
//     });
//     e.end_stage();
//   }
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "ir/module.hpp"
#include "ir/native_kernel.hpp"
#include "mlir_bridge/codegen/code_builder.hpp"
#include "mlir_bridge/kernel/kernel_configuration.hpp"
#include "mlir_bridge/targets/target_row.hpp"

namespace kiln::codegen {

// A dense row-major tensor in memory: an input, an output or scratch of the kernel.
struct buffer {
  buffer_kind kind = buffer_kind::input;
  std::uint32_t index = 0;
  element_type type = element_type::f32;
  std::vector<dim> sizes;
  std::vector<std::int64_t> dims() const { return shape{type, sizes}.static_dims(); }  // throws if one is open
  std::vector<dim> strides() const;
};

class kernel_emitter {
 public:
  // Builds into `target_module`, which must outlive it. `symbol` prefixes the stages' names; `anchor` is an instruction
  // of the fusion, or null.
  kernel_emitter(const module& fusion, const instruction* anchor, std::string symbol, const target_row& target,
                 const kernel_configuration& configuration, const codegen_target& on, mlir::ModuleOp target_module);

  const module& fusion;
  const std::string symbol;  // [A-Za-z0-9_]
  const target_row& target;
  const kernel_configuration& configuration;
  code_builder code;

  // --- the fusion
  const instruction* anchor() const { return anchor_; }  // null for pointwise fusions
  value anchor_result(std::uint32_t index = 0) const { return {const_cast<instruction*>(anchor_), index}; }
  static std::vector<std::int64_t> dims(value v) { return v.type().static_dims(); }  // throws if one is open
  static const std::vector<dim>& sizes(value v) { return v.type().dims; }
  // f32 lanes of one vector register (8 on v3, 16 on v4).
  std::int64_t native_lanes() const { return target.vector_bits / 32; }
  // Lanes to use along an axis of this extent for this compute type: a power of two, at most one register's worth and
  // at most extent.
  std::int64_t lanes_for(element_type type, std::int64_t extent) const;

  // --- sizes. A static one is a constant; an open one is read from the table of sizes at the entry of the stage.
  Value size(const dim& d);
  Value add(Value a, const dim& b);
  Value sub(Value a, const dim& b);
  Value mul(Value a, const dim& b);
  Value div(Value a, const dim& b);
  Value rem(Value a, const dim& b);
  Value min(Value a, const dim& b);
  // code_builder::delinearize, for sizes that may be open.
  values delinearize(Value linear, std::span<const dim> sizes);
  const std::vector<dim>& open_sizes() const { return open_sizes_; }  // what the table holds

  // --- memory
  buffer input(std::size_t parameter) const;
  buffer output(std::size_t index) const;
  buffer add_scratch(element_type type, const std::vector<std::int64_t>& dims, bool prepared = false);
  buffer add_open_scratch(element_type type, std::vector<dim> sizes, bool prepared = false);
  // Zero before every run, which leaves it zero (scratch_buffer::zeroed).
  buffer add_zeroed_scratch(element_type type, const std::vector<std::int64_t>& dims);
  // The buffer that already holds v (a parameter, perhaps reshaped), if one does.
  std::optional<buffer> in_memory(value v) const;
  // v in memory in its storage type: in_memory(v), or scratch filled by a pointwise stage that this emits. No stage may
  // be open.
  buffer materialize(value v);
  // From here on v is what `b` holds: for stages after the one that computed it.
  void hold(value v, const buffer& b) { materialized_[v] = b; }
  // True where v depends on parameters alone through movement and convert operations, so that a `prepare` stage may
  // read it. Whether those parameters are constants is the runtime's business.
  bool only_parameters(value v) const;

  // --- stages, one at a time
  // The function of a launch: grid work items, of which a call (a thread, on a GPU) does [begin(), end()).
  void begin_stage(const std::string& name, const dim& grid, bool prepare = false);
  void end_stage();
  // Emits code in a stage that is thrown away, to see what becomes of it. No stage may be open.
  bool try_out(const std::function<bool()>& body);
  bool in_stage() const { return static_cast<bool>(function_); }
  Value begin() const { return begin_; }  // index
  Value end() const { return end_; }      // index
  Value pointer(const buffer& b);         // llvm.ptr, noalias; adds the argument on first use
  // A descriptor of b for the tensor copy engine, passed by value: adds the argument, whose address this is (generic
  // address space, aligned to 64 bytes). `map.argument` is filled in. Only where the target has tensor_copy.
  Value tensor_map_address(const buffer& b, tensor_map map);
  // For codegen_target::open_stage and close_stage: the launch, its function (insertion point: its end) and its buffers
  // so far.
  launch& current() { return launches_.back(); }
  const std::vector<buffer>& arguments() const { return arguments_; }
  mlir::ModuleOp generated() const { return target_module_; }
  void set_function(mlir::func::FuncOp function);
  void set_items(Value begin, Value end) { begin_ = begin, end_ = end; }
  // begin_stage + loops + end_stage for work over `dims`, about `cost` elementary operations at each index: groups
  // indices so that a work item is worth scheduling. body gets one index per dim.
  void parallel(const std::string& name, const std::vector<std::int64_t>& dims, std::int64_t cost,
                const std::function<void(std::span<const Value>)>& body, bool prepare = false);
  void parallel_open(const std::string& name, const std::vector<dim>& sizes, std::int64_t cost,
                     const std::function<void(std::span<const Value>)>& body, bool prepare = false);
  // A constant table in the object's read-only data; usable in any stage.
  Value table(element_type type, const std::vector<double>& numbers);

  const std::vector<launch>& launches() const { return launches_; }
  const std::vector<scratch_buffer>& scratch() const { return scratch_; }
  mlir::func::FuncOp function() const { return function_; }

 private:
  mlir::ModuleOp target_module_;
  const instruction* anchor_ = nullptr;
  std::map<const instruction*, std::uint32_t> parameter_index_;
  std::vector<scratch_buffer> scratch_;
  std::map<value, buffer> materialized_;
  std::vector<launch> launches_;
  mlir::func::FuncOp function_;  // of the open stage
  unsigned first_pointer_ = 0;   // arguments of the function before the buffers
  Value begin_, end_;
  std::vector<buffer> arguments_;
  std::vector<dim> open_sizes_;
  std::map<std::string, Value> read_sizes_;  // in the open stage, by text
  Value add_argument(const buffer& b, unsigned address_space, mlir::DictionaryAttr attributes);
  std::map<std::pair<element_type, std::vector<double>>, mlir::LLVM::GlobalOp> tables_;
};

}  // namespace kiln::codegen
