// A launch plan: a program bound to a device, as flat tables. Every value has a number in one table of buffers; every
// launch is a function, a grid and a list of such numbers. Bodies of `if` and `loop` are blocks of the same tables with
// a region of the same arena. Building a plan loads the kernels, brings constants to the device, runs `prepare`
// launches over them and packs the arena; running one (executable.hpp) only copies pointers and launches. Addresses are
// the device's. A plan is immutable and holds everything it points to (constants, prepared buffers, loaded code) except
// the device.
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

using buffer_id = std::uint32_t;

enum class buffer_place : std::uint8_t {
  arena,   // at `offset` of the context's arena
  zeroed,  // at `offset` of the context's memory that is zero between launches
  fixed,   // at `address`: a constant or a prepared buffer
  input,   // input number `offset` of the run
  output,  // output number `offset` of the run
  moving,  // set while a loop runs: the current one of two buffers, or a slice of a stacked output
};

struct plan_buffer {
  buffer_place place = buffer_place::arena;
  std::size_t bytes = 0;
  std::size_t offset = 0;
  const std::byte* address = nullptr;
  std::optional<std::uint64_t> known =
      {};  // the bits of a constant of up to 8 bytes, so that the host needs not ask the device
};

// An argument that is passed as a tensor descriptor.
struct plan_tensor_map {
  std::uint32_t argument = 0;  // in plan::arguments
  tensor_map map;
};

struct launch_step {
  kernel_handle kernel;
  std::int64_t grid = 1, grid_y = 1, grid_z = 1, block = 1, lds_bytes = 0;
  std::uint32_t first_argument = 0, argument_count = 0;  // in plan::arguments
  std::uint32_t first_map = 0, map_count = 0;            // in plan::tensor_maps
  bool waits = false;                                    // see launch::waits
};

struct copy_step {
  buffer_id to = 0, from = 0;
};

// The trip of the loop around it, as an i64 whose upper half is zero already.
struct count_step {
  buffer_id to = 0;
  std::uint32_t counter = 0;  // of plan::counters
};

// Work of a library that is not ours; see foreign_call.
struct call_step {
  std::uint32_t call = 0;                                                 // in plan::calls
  std::uint32_t first_argument = 0, input_count = 0, argument_count = 0;  // in plan::arguments, inputs first
};

struct if_step {
  buffer_id condition = 0;
  std::uint32_t then_block = 0, else_block = 0;
};

struct carried_value {
  buffer_id initial = 0, in = 0, out = 0;  // in and out move between result and spare
  buffer_id result = 0, spare = 0;
};

struct scanned_value {
  buffer_id result = 0, slice = 0;  // slice moves along result
};

struct loop_step {
  buffer_id trip_count = 0, condition = 0;                       // inputs of the loop
  buffer_id iteration = 0, condition_in = 0, condition_out = 0;  // of the body
  std::uint32_t body = 0;                                        // block
  std::uint32_t counter = 0;                                     // what its trip is called in count_step
  bool counts = false, asks = false;                             // the body reads the iteration, its condition
  std::int64_t trips = -1;                                       // the static trip count, -1 without
  std::vector<carried_value> carried;
  std::vector<scanned_value> scanned;
};

struct interpreted_step {
  operation op;
  std::vector<buffer_id> inputs, outputs;
  std::vector<shape> input_types;
};

using plan_work = std::variant<launch_step, copy_step, count_step, call_step, if_step, loop_step, interpreted_step>;

struct plan_step {
  plan_work what;
  std::uint32_t instruction = 0;  // in plan::instructions
};

struct plan_block {
  std::string module;
  std::vector<plan_step> steps;
};

// For messages, profiles and dumps.
struct plan_instruction {
  std::string name;  // the kernel's symbol, or the operation's name
  std::string origin;
  std::string payload;  // hex hash, empty unless a kernel
};

// An output of which a run fills only a part along `axis`: as much as the i64 that the run leaves in output `count`
// says.
struct counted_axis {
  std::size_t axis = 0, count = 0;
};

struct plan_port {
  std::string name;
  shape type;
  std::vector<std::int64_t> dims;
  std::size_t bytes = 0, alignment = 1;
  buffer_id buffer = 0;
  std::vector<counted_axis> counted = {};
};

// A call of the embedder's that does the work of some code objects, such as one of a vendor's library. `enqueue` gives
// the work to a stream of the driver's (a hipStream_t or CUstream, null on the host) and returns; it may be called
// while the stream is captured. The pointers are those of the instruction's inputs and outputs, in memory of the
// device. What it throws is an error of the run.
struct foreign_call {
  std::string symbol;  // of the code objects
  void (*enqueue)(void* data, void* native_stream, std::span<void* const> inputs,
                  std::span<void* const> outputs) = nullptr;
  void* data = nullptr;
  std::shared_ptr<const void> owner = {};  // of data, kept by the plan
};

struct plan_report {
  std::size_t kernels = 0;      // distinct payloads
  std::size_t launches = 0;     // launch steps in all blocks
  std::size_t copies = 0;       // copy steps in all blocks
  std::size_t calls = 0;        // call steps in all blocks
  std::size_t interpreted = 0;  // instructions that no kernel runs
  std::size_t arena_bytes = 0;
  std::size_t arena_sum_bytes = 0;    // what the arena's buffers would need without sharing
  std::size_t arena_lower_bound = 0;  // most bytes live at one step of the main module
  std::size_t constant_bytes = 0;
  std::size_t constant_copied_bytes = 0;  // host: constants that were misaligned for their type
  std::size_t constant_device_bytes =
      0;  // GPU: constants that runs read; those that only `prepare` launches read are not kept
  std::size_t prepared_bytes = 0;
  std::size_t prepared_found = 0, prepared_made = 0;  // buffers out of the store, buffers made by running
};

struct plan {
  std::vector<plan_buffer> buffers;
  std::vector<buffer_id> arguments;
  std::vector<bool> written;  // per argument: the launch may write it
  std::vector<plan_tensor_map> tensor_maps;
  std::vector<plan_block> blocks;  // the main module first
  std::vector<plan_instruction> instructions;
  std::vector<plan_port> inputs, outputs;
  std::size_t arena_bytes = 0;
  std::size_t zeroed_bytes = 0;
  std::size_t most_arguments = 0;  // of one launch
  std::size_t counters = 0;
  std::vector<foreign_call> calls;
  plan_report report;

  std::vector<std::shared_ptr<const void>> owners;  // of fixed buffers
  std::shared_ptr<const kernel_library> library;

  std::string str() const;  // one line per step
};

struct plan_options {
  // Run what no kernel covers with the reference implementation (slow, allocates) and count it, instead of refusing the
  // program.
  bool allow_interpreter = false;
  // Where the host's prepared buffers are kept between processes; null: they are made anew for every plan. A GPU makes
  // them from the constants faster than they could be read and sent, so it does not use the store.
  prepared_store* store = nullptr;
  // Calls that do the work of code objects of their symbols, whether these are native or not.
  std::span<const foreign_call> calls = {};
};

// Throws error{not_native} for a code object that is not native or an operation without a kernel, error{usage} for a
// program with open dimensions, error{unsupported} for kernels of another target, error{corrupted} for kernels that
// contradict the program.
plan make_plan(const program& source, device& target, const plan_options& options = {});

}  // namespace kiln
