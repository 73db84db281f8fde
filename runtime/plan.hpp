// A launch plan: a program bound to a device, in flat tables. Every value has an index into one table of buffers; every
// launch is a function, a grid and a list of buffer indices. The bodies of `if` and `loop` are blocks in the same
// tables, with a region of the same arena. Building a plan loads the kernels, transfers constants to the device, runs
// `prepare` launches on them and packs the arena. Running a plan (executable.hpp) only copies pointers and launches.
// Addresses are device addresses. A plan is immutable and owns everything it points to (constants, prepared buffers,
// loaded code) except the device. Only a plan_series changes a plan, and only sizes in it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "ir/program.hpp"
#include "runtime/device.hpp"
#include "runtime/prepared_store.hpp"

namespace kiln {

class arena_pool;
class spare_contexts;

using buffer_id = std::uint32_t;

enum class buffer_place : std::uint8_t {
  arena,   // at `offset` of the context's arena
  zeroed,  // at `offset` of the context's memory that is zero between runs
  fixed,   // at `address`: a constant or a prepared buffer
  input,   // input number `offset` of the run
  output,  // output number `offset` of the run
  moving,  // changes while a loop runs: one of two alternating buffers, or a slice of a stacked output
};

struct plan_buffer {
  buffer_place place = buffer_place::arena;
  std::size_t bytes = 0;
  std::size_t offset = 0;
  const std::byte* address = nullptr;
  // The bits of a constant of up to 8 bytes. The host reads them here instead of from the device.
  std::optional<std::uint64_t> known = {};
  bool by_value = false;  // a GPU launch passes the bytes, which are in host memory, by value
  // Bytes that are set aside in the arena or the zeroed memory, where this is more than `bytes` (plan_series.hpp).
  std::size_t room = 0;
  std::size_t placed_bytes() const { return room > bytes ? room : bytes; }
};

// An argument that is passed as a tensor descriptor.
// A plan for new sizes is a copy of another, so what does not depend on sizes is shared, and the rest is not in memory
// of its own.
struct plan_tensor_map {
  std::uint32_t argument = 0;  // index in plan::arguments
  std::uint32_t revision = 0;  // counts the changes of its sizes (plan_series.hpp)
  std::shared_ptr<const tensor_map> form;
  // In place of the last of form->dims and of form->box[1], unless they are 0.
  std::int64_t outer = 0, rows = 0;
  // Makes `to`, whose memory is used again, the map with these numbers.
  void fill(tensor_map& to) const;
};

struct launch_step {
  kernel_handle kernel;
  std::int64_t grid = 1, grid_y = 1, grid_z = 1, block = 1, lds_bytes = 0;
  std::uint32_t first_argument = 0, argument_count = 0;  // in plan::arguments
  std::uint32_t first_map = 0, map_count = 0;            // in plan::tensor_maps
  bool waits = false;                                    // see launch::waits
  // Number of blocks of rows (ir/row_kernel.hpp) for which the grid is executed; 0 for a launch on whole tensors. If it
  // is not 0, `first_part` is the index of the launch's first argument in plan::block_parts.
  std::int64_t blocks = 0;
  std::uint32_t first_part = 0;
  std::int64_t items_at_once = 0;  // of all blocks (runtime/row_blocks.hpp)
};

// The location of a launch argument in blocks of rows: block b is at `offset + b * stride` bytes of the buffer.
struct block_part {
  std::int64_t offset = 0, stride = 0;
};

struct copy_step {
  buffer_id to = 0, from = 0;
  // A part of the buffers; `bytes` = 0 means the whole of `to`.
  std::size_t to_offset = 0, from_offset = 0, bytes = 0;
};

// Writes the iteration number of the surrounding loop as an i64. Its upper half is already zero.
struct count_step {
  buffer_id to = 0;
  std::uint32_t counter = 0;  // index in plan::counters
};

// A call of an external library; see foreign_call.
struct call_step {
  std::uint32_t call = 0;                                                 // index in plan::calls
  std::uint32_t first_argument = 0, input_count = 0, argument_count = 0;  // in plan::arguments, inputs first
};

// Compares a number that the run computed with the size for which the plan was made (ir/ops/data_sizes.hpp). The host
// waits for it.
struct check_step {
  buffer_id computed = 0;
  std::int64_t size = 0;
};

struct if_step {
  buffer_id condition = 0;
  std::uint32_t then_block = 0, else_block = 0;
};

struct carried_value {
  buffer_id initial = 0, in = 0, out = 0;  // in and out alternate between result and spare
  buffer_id result = 0, spare = 0;
};

struct scanned_value {
  buffer_id result = 0, slice = 0;  // slice advances through result
};

struct loop_step {
  buffer_id trip_count = 0, condition = 0;                       // inputs of the loop
  buffer_id iteration = 0, condition_in = 0, condition_out = 0;  // of the body
  std::uint32_t body = 0;                                        // block
  std::uint32_t counter = 0;                                     // index of its iteration number for count_step
  bool counts = false, asks = false;  // whether the body reads the iteration, and the condition
  std::int64_t trips = -1;            // the trip count, or -1 if it depends on data or on open sizes
  std::vector<carried_value> carried;
  std::vector<scanned_value> scanned;
};

struct interpreted_step {
  operation op;
  std::vector<buffer_id> inputs, outputs;
  std::vector<shape> input_types;
};

using plan_work =
    std::variant<launch_step, copy_step, count_step, call_step, check_step, if_step, loop_step, interpreted_step>;

struct plan_step {
  plan_work what;
  std::uint32_t instruction = 0;  // index in plan::instructions()
  // Changes when a plan_series gives the step other sizes.
  std::uint32_t revision = 0;
  // This many steps from here on are launches that may run at the same time. For the host only.
  std::uint32_t together = 1;
};

struct plan_block {
  std::string module;
  std::vector<plan_step> steps;
};

// For messages, profiles and dumps.
struct plan_instruction {
  std::string name;  // the kernel's symbol, or the operation's name
  std::string origin;
  std::string payload;  // hex hash; empty unless the instruction is a kernel
};

// An output that a run may fill only partly along `axis`: the length is the i64 that the run writes to output number
// `count`.
struct bounded_axis {
  std::size_t axis = 0, count = 0;
};

struct plan_port {
  std::string name;
  shape type;
  std::vector<std::int64_t> dims;
  std::size_t bytes = 0, alignment = 1;
  buffer_id buffer = 0;
  std::vector<bounded_axis> bounded = {};
  bool used = true;  // of an input: a step reads it, or it is an output
  // For an output that stays in the memory of an input (plan_options::share_updated): that input. The caller of a run
  // passes the same memory for both.
  std::optional<std::size_t> shares = {};
};

// A callback of the embedding application that does the work of certain code objects, for example with a vendor
// library. `enqueue` enqueues the work to a driver stream (a hipStream_t or CUstream, null on the host) and returns; it
// may be called during a stream capture. The pointers are the instruction's inputs and outputs, in device memory. An
// exception from it is an error of the run.
struct foreign_call {
  std::string symbol;  // symbol of those code objects
  void (*enqueue)(void* data, void* native_stream, std::span<void* const> inputs,
                  std::span<void* const> outputs) = nullptr;
  void* data = nullptr;
  std::shared_ptr<const void> owner = {};  // keeps `data` alive; held by the plan
};

struct plan_report {
  std::size_t kernels = 0;      // distinct payloads
  std::size_t launches = 0;     // launch steps in all blocks
  std::size_t copies = 0;       // copy steps in all blocks
  std::size_t calls = 0;        // call steps in all blocks
  std::size_t interpreted = 0;  // instructions without a kernel
  std::size_t arena_bytes = 0;
  std::size_t arena_sum_bytes = 0;    // sum of the arena's buffer sizes without sharing
  std::size_t arena_lower_bound = 0;  // most bytes live at one step of the main module
  std::size_t constant_bytes = 0;
  std::size_t constant_copied_bytes = 0;  // host: constants copied because they were misaligned
  // GPU: constants that runs read. Constants that only `prepare` launches read are not kept.
  std::size_t constant_device_bytes = 0;
  std::size_t prepared_bytes = 0;
  std::size_t prepared_found = 0, prepared_made = 0;  // prepared buffers found in the store, and made by launches
};

struct plan {
  std::vector<plan_buffer> buffers;
  std::vector<buffer_id> arguments;
  std::vector<bool> written;  // per argument: whether the launch may write it
  std::vector<bool> early;    // per argument: whether the launch reads it before it waits (launch::early_arguments)
  std::vector<plan_tensor_map> tensor_maps;
  std::vector<block_part> block_parts;
  std::vector<plan_block> blocks;  // the main module first
  // Never null. Shared by the plans of one template.
  std::shared_ptr<const std::vector<plan_instruction>> instruction_list =
      std::make_shared<const std::vector<plan_instruction>>();
  std::vector<plan_port> inputs, outputs;
  std::size_t arena_bytes = 0;
  std::size_t zeroed_bytes = 0;
  // Maximum number of arguments of a launch, counting all blocks of rows and all launches side by side.
  std::size_t most_arguments = 0;
  std::size_t most_together = 1;  // maximum of plan_step::together
  std::size_t counters = 0;
  std::vector<foreign_call> calls;
  plan_report report;

  std::vector<std::shared_ptr<const void>> owners;  // owners of the memory of fixed buffers
  // The tables of sizes of all open kernels, one after another; null if there are none.
  std::shared_ptr<std::vector<std::int64_t>> open_sizes;
  // If not null, a run takes its arena from here; otherwise each context has its own. For the host only.
  std::shared_ptr<arena_pool> arenas;
  // If not null, contexts begin with what ended ones left here. For GPUs only.
  std::shared_ptr<spare_contexts> spares;
  std::shared_ptr<const kernel_library> library;

  const std::vector<plan_instruction>& instructions() const { return *instruction_list; }
  std::string str() const;  // one line per step
};

class constant_hashes;

struct plan_options {
  // Run instructions without a kernel with the reference implementation (slow, allocates) and count them in the report,
  // instead of rejecting the program.
  bool allow_interpreter = false;
  // Where prepared buffers of the host are kept between processes. If null, every plan prepares them again. A GPU does
  // not use the store, because preparing from the constants is faster than reading and uploading stored results.
  prepared_store* store = nullptr;
  // Hashes shared by the plans of a model. If null, this plan computes its own.
  constant_hashes* hashes = nullptr;
  // Callbacks that replace the code objects with their symbols, whether these are native or not.
  std::span<const foreign_call> calls = {};
  // The values of the model's open dimensions, for open kernels (ir/native_kernel.hpp).
  const dim_bindings* sizes = nullptr;
  // Names of inputs that a run may overwrite. A kernel that copies an input and then changes the copy (launch::copies)
  // changes these inputs directly, without the copy.
  std::span<const std::string> updated_inputs = {};
  // Whether an output that is the last state of an updated input stays in its memory (plan_port::shares). Otherwise it
  // is made in the output's own memory, and the input stays as it is.
  bool share_updated = false;
};

// Throws error{not_native} for a code object that is not native or an operation without a kernel, error{usage} for a
// program with open dimensions, error{unsupported} for kernels of another target, error{corrupted} for kernels that are
// inconsistent with the program.
// See runtime/plan_template.hpp for plans of a program with open dimensions.
plan make_plan(const program& source, device& target, const plan_options& options = {});

}  // namespace kiln
