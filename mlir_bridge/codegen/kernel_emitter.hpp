// The state of one portable kernel during code generation: its buffers and its stages (launches). A generator gets a
// kernel_emitter and emits one or more stages; finalize.cpp lowers them to machine code. Internal to mlir_bridge.
//
// The kernel is the fusion: an ir module. Its parameters are the kernel's inputs and its outputs the kernel's outputs;
// at most one instruction is the anchor. A fusion may have inner anchors besides (mlir_bridge/kinds/kind.hpp). A
// generator that computes them together with the anchor reads inner_anchors(); any other calls emit_inner_anchors()
// first, which computes them in stages of their own. Its shapes are static, except for an *open* kernel
// (ir/native_kernel.hpp): generators of open kernels use sizes() where others use dims(), and take their values from
// size(), which reads the kernel's table of sizes.
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

// A dense row-major tensor in memory: an input, an output or a scratch buffer of the kernel.
struct buffer {
  buffer_kind kind = buffer_kind::input;
  std::uint32_t index = 0;
  element_type type = element_type::f32;
  std::vector<dim> sizes;
  std::vector<std::int64_t> dims() const { return shape{type, sizes}.static_dims(); }  // throws if one is open
  std::vector<dim> strides() const;
};

class kernel_emitter;

// An anchor besides that of the kernel, and the generator of its kind.
struct inner_anchor {
  const instruction* at = nullptr;
  void (*emit)(kernel_emitter&) = nullptr;
};

class kernel_emitter {
 public:
  // The grids of stages are multiplied by this number, which is 0 or 1 (GPUs only).
  dim used = 1;
  // Sizes that are multiples of a number wherever `used` is 1.
  std::vector<std::pair<dim, std::int64_t>> multiples;

  // Emits into `target_module`, which must outlive this object. `symbol` is the prefix of the stages' names. `anchor`
  // is an instruction of the fusion, or null.
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
  // What the generator of the anchor stores: the fusion's outputs, or those of the inner anchor that is emitted now.
  const std::vector<value>& outputs() const { return emitted_ ? inner_outputs_ : fusion.outputs(); }
  // The anchors in front of the kernel's own that no stage has computed yet, in their order.
  const std::vector<inner_anchor>& inner_anchors() const { return inner_; }
  void set_inner_anchors(std::vector<inner_anchor> anchors) { inner_ = std::move(anchors); }
  // Emits the stages of all inner anchors. What the rest of the kernel reads of them is then in memory. No stage may be
  // open.
  void emit_inner_anchors();
  static std::vector<std::int64_t> dims(value v) { return v.type().static_dims(); }  // throws if one is open
  static const std::vector<dim>& sizes(value v) { return v.type().dims; }
  // Returns the largest number that is known to divide the size, like known_factor(), which does not know `multiples`.
  std::int64_t factor(const dim& size) const;
  // Number of f32 lanes in one vector register (8 on x86-64-v3, 16 on v4).
  std::int64_t native_lanes() const { return target.vector_bits / 32; }
  // Returns how many lanes to use along an axis of this extent for this compute type: a power of two, at most one
  // register and at most the extent.
  std::int64_t lanes_for(element_type type, std::int64_t extent) const;

  // --- sizes. A static size is a constant. An open one is read from the table of sizes at the entry of the stage.
  Value size(const dim& d);
  Value add(Value a, const dim& b);
  Value sub(Value a, const dim& b);
  Value mul(Value a, const dim& b);
  Value div(Value a, const dim& b);
  Value rem(Value a, const dim& b);
  Value min(Value a, const dim& b);
  // Like code_builder::delinearize, but sizes may be open.
  values delinearize(Value linear, std::span<const dim> sizes);
  // The expressions whose values the table of sizes holds.
  const std::vector<dim>& open_sizes() const { return open_sizes_; }

  // --- memory
  buffer input(std::size_t parameter) const;
  // Where a generator stores the output. If its elements are packed, this is scratch with the code of each element in a
  // u8 of its own: threads cannot write parts of a byte. pack_outputs() writes the output itself.
  buffer output(std::size_t index) const;
  // Emits the stages that write the outputs of packed elements. To be called after the generator.
  void pack_outputs();
  buffer add_scratch(element_type type, const std::vector<std::int64_t>& dims, bool prepared = false);
  buffer add_open_scratch(element_type type, std::vector<dim> sizes, bool prepared = false);
  // Adds scratch that is zero before every run; the kernel must leave it zero (scratch_buffer::zeroed).
  buffer add_zeroed_scratch(element_type type, const std::vector<std::int64_t>& dims);
  // Returns the buffer that already holds v, if there is one: v is a parameter, or a reshape of one.
  std::optional<buffer> in_memory(value v) const;
  // Returns a buffer that holds v in its storage type: in_memory(v), or scratch filled by a pointwise stage that this
  // function emits. No stage may be open.
  buffer materialize(value v);
  // Declares that `b` holds v, for the stages after the one that computed it.
  void hold(value v, const buffer& b) { materialized_[v] = b; }
  // The values that scratch holds. To be set to what it was after stages that are not used at all sizes.
  const std::map<value, buffer>& held() const { return materialized_; }
  void set_held(std::map<value, buffer> held) { materialized_ = std::move(held); }
  // Returns true if v depends only on parameters, through movement and convert operations, so that a `prepare` stage
  // may compute it. Only the runtime knows whether those parameters are constants.
  bool only_parameters(value v) const;

  // --- stages, one at a time
  // Opens the function of a launch. Its grid counts work items; one call (a thread, on a GPU) executes [begin(),
  // end()).
  void begin_stage(const std::string& name, const dim& grid, bool prepare = false);
  void end_stage();
  // Keeps the CPU pipeline from unrolling the loops of the open stage.
  void keep_loops();
  // Says that the last stage copies an input to an output (launch::copies).
  void last_stage_copies(std::uint32_t input, std::uint32_t output) { launches_.back().copies = {input, output}; }
  // Emits code in a temporary stage that is discarded, and returns the result of `body`. No stage may be open.
  bool try_out(const std::function<bool()>& body);
  bool in_stage() const { return static_cast<bool>(function_); }
  Value begin() const { return begin_; }  // index
  Value end() const { return end_; }      // index
  Value pointer(const buffer& b);         // llvm.ptr, noalias; adds the argument on first use
  // Returns the address of a table on the stack with the pointers of these buffers.
  Value pointer_table(const std::vector<buffer>& buffers);
  // Adds an argument with a descriptor of b for the tensor copy engine, passed by value, and returns the argument's
  // address (generic address space, aligned to 64 bytes). Sets `map.argument`. Only on targets with tensor_copy.
  Value tensor_map_address(const buffer& b, tensor_map map);
  // For codegen_target::open_stage and close_stage: the current launch, its function (the insertion point is at its
  // end) and its buffers so far.
  launch& current() { return launches_.back(); }
  const std::vector<buffer>& arguments() const { return arguments_; }
  mlir::ModuleOp generated() const { return target_module_; }
  void set_function(mlir::func::FuncOp function);
  void set_items(Value begin, Value end) { begin_ = begin, end_ = end; }
  // begin_stage, loops and end_stage for work over `dims`, with about `cost` elementary operations per index. Groups
  // indices so that a work item is worth scheduling. `body` gets one index per dim.
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
  std::vector<inner_anchor> inner_;
  bool emitted_ = false;  // an inner anchor is
  std::vector<value> inner_outputs_;
  std::vector<buffer> inner_buffers_;
  std::vector<value> results_of(const instruction& inner) const;
  std::map<const instruction*, std::uint32_t> parameter_index_;
  std::vector<scratch_buffer> scratch_;
  std::map<std::size_t, buffer> packed_outputs_;  // the codes of output i
  std::map<value, buffer> materialized_;
  std::vector<launch> launches_;
  // The function of the open stage.
  mlir::func::FuncOp function_;
  // Number of arguments of the function before the buffers.
  unsigned first_pointer_ = 0;
  Value begin_, end_;
  std::vector<buffer> arguments_;
  std::vector<dim> open_sizes_;
  // Sizes that were read in the open stage, keyed by the text of their expression.
  std::map<std::string, Value> read_sizes_;
  // Tables of pointers of the open stage, keyed by their buffers.
  std::map<std::vector<std::pair<buffer_kind, std::uint32_t>>, Value> pointer_tables_;
  Value add_argument(const buffer& b, unsigned address_space, mlir::DictionaryAttr attributes);
  std::map<std::pair<element_type, std::vector<double>>, mlir::LLVM::GlobalOp> tables_;
};

}  // namespace kiln::codegen
