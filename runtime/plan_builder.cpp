// Program → plan. One recursive walk over the modules makes blocks, buffers and their lifetimes; arena regions are packed from the
// inside out (a body's region is one buffer of the module around it), then all offsets are made absolute.
#include <algorithm>
#include <array>
#include <map>

#include "ir/error.hpp"
#include "ir/ops/all.hpp"
#include "runtime/alias.hpp"
#include "runtime/arena.hpp"
#include "runtime/plan.hpp"
#include "runtime/plan_constants.hpp"
#include "runtime/prepare.hpp"

namespace kiln {
namespace {

// What every GPU and both drivers take in one launch.
constexpr std::int64_t most_groups = INT32_MAX, most_groups_y = 65535, most_items = 1024, most_lds_bytes = 1 << 20;
constexpr std::size_t most_scratch_bytes = std::size_t{1} << 46;  // beyond any machine; keeps sums of hostile sizes from wrapping

std::string describe(const instruction& i) {
  const auto* kernel = i.op().get_if<code_object>();
  std::string text = kernel ? "kernel '" + kernel->symbol + "'" : "'" + std::string(i.op().name()) + "'";
  return i.origin().empty() ? text : text + " (" + i.origin() + ")";
}

std::size_t element_alignment(element_type type) { return std::max<std::size_t>(1, static_cast<std::size_t>(storage_bits(type)) / 8); }

// Arena buffers of one module, with lifetimes in steps of its block.
struct scope {
  std::vector<arena_request> requests;
  std::size_t parent = SIZE_MAX, parent_request = 0;  // the region's place in the scope around it
  arena_layout layout;
};

class builder {
 public:
  builder(const program& source, device& target, const plan_options& options) : source_(source), device_(target), options_(options), constants_(plan_, target), prepare_(target, options.store) {}

  plan build() {
    load_kernels();
    const module& main = source_.main();
    std::vector<buffer_id> inputs, outputs;
    for (value v : main.parameters()) {
      inputs.push_back(add_buffer({buffer_place::input, bytes_of(v), plan_.inputs.size(), nullptr}));
      plan_.inputs.push_back(port(module::parameter_name(v), v.type(), inputs.back()));
    }
    for (std::size_t i = 0; i < main.outputs().size(); ++i) {
      value v = main.outputs()[i];
      outputs.push_back(add_buffer({buffer_place::output, bytes_of(v), i, nullptr}));
      plan_.outputs.push_back(port(main.output_names()[i], v.type(), outputs.back()));
    }
    add_module(main, inputs, outputs, SIZE_MAX);
    place_arena();
    constants_.keep();
    device_.synchronize();  // what was uploaded and prepared is there for every stream
    report();
    return std::move(plan_);
  }

 private:
  using value_map = std::map<value, buffer_id>;

  // --- kernels ---

  static void collect_modules(const module& m, std::vector<const module*>& found) {
    if (std::ranges::find(found, &m) != found.end()) return;
    found.push_back(&m);
    for (const instruction& i : m.instructions())
      for (const module* body : i.bodies()) collect_modules(*body, found);
  }

  void load_kernels() {
    std::vector<const module*> modules;
    collect_modules(source_.main(), modules);
    for (const module* m : modules)
      for (const instruction& i : m->instructions()) {
        const auto* object = i.op().get_if<code_object>();
        if (!object) continue;
        if (object->format != code_format::native)
          throw error(error_kind::not_native, describe(i) + " is " + std::string(enum_name(object->format)) + ", not native: finalize the program for this device first");
        if (!device_.runs(object->target))
          throw error(error_kind::unsupported, describe(i) + " was made for target '" + object->target + "', which device " + device_.info().name + " (" +
                                                   device_.info().description + ") does not run: finalize the program for this device");
        if (kernel_index_.try_emplace(object->payload, kernels_.size()).second)
          kernels_.push_back(deserialize_native_kernel(source_.kernel(content_hash::from_hex(object->payload))));
      }
    std::vector<const native_kernel*> list;
    for (const native_kernel& k : kernels_) list.push_back(&k);
    plan_.library = device_.load(list);
    plan_.report.kernels = kernels_.size();
  }

  // --- buffers ---

  buffer_id add_buffer(plan_buffer b) {
    plan_.buffers.push_back(b);
    homes_.push_back({SIZE_MAX, 0});
    return static_cast<buffer_id>(plan_.buffers.size() - 1);
  }

  buffer_id add_arena_buffer(std::size_t s, std::size_t bytes) {
    buffer_id id = add_buffer({buffer_place::arena, bytes, 0, nullptr});
    homes_[id] = {s, scopes_[s].requests.size()};
    std::size_t alignment = device_.info().alignment;
    scopes_[s].requests.push_back({(bytes + alignment - 1) / alignment * alignment, INT64_MAX, -1});
    return id;
  }

  // Never shares memory, not even with other zeroed buffers: a kernel may run beside another one.
  buffer_id add_zeroed_buffer(std::size_t bytes) {
    buffer_id id = add_buffer({buffer_place::zeroed, bytes, plan_.zeroed_bytes, nullptr});
    std::size_t alignment = device_.info().alignment;
    plan_.zeroed_bytes += (bytes + alignment - 1) / alignment * alignment;
    return id;
  }

  // Buffers of outer scopes are kept alive by the instruction that holds the body.
  void touch(std::size_t s, buffer_id id, std::int64_t step) {
    auto [owner, request] = homes_[id];
    if (owner != s) return;
    arena_request& r = scopes_[s].requests[request];
    r.first = std::min(r.first, step);
    r.last = std::max(r.last, step);
  }

  static std::size_t bytes_of(value v) {
    if (!v.type().is_static())
      throw error(error_kind::usage, describe(*v.producer) + " has the open shape " + v.type().str() + ": bind every dimension before the program is loaded");
    return v.type().bytes();
  }

  static plan_port port(const std::string& name, const shape& type, buffer_id id) {
    return {name, type, type.static_dims(), type.bytes(), element_alignment(type.type), id};
  }

  buffer_id constant_buffer(const literal& data) {
    if (auto found = constants_.find(data)) return *found;
    buffer_id id = add_buffer({buffer_place::fixed, data.bytes().size(), 0, nullptr});
    constants_.add(id, data);
    return id;
  }

  // --- modules ---

  // `inputs` are the buffers of the parameters, `outputs` those that the results must end up in.
  std::uint32_t add_module(const module& m, const std::vector<buffer_id>& inputs, const std::vector<buffer_id>& outputs, std::size_t parent) {
    auto block = static_cast<std::uint32_t>(plan_.blocks.size());
    plan_.blocks.push_back({m.name(), {}});
    std::size_t s = scopes_.size();
    scopes_.push_back({{}, parent, 0, {}});
    if (m.parameters().size() != inputs.size() || m.outputs().size() != outputs.size())
      throw error(error_kind::invalid_model, "module '" + m.name() + "' has " + std::to_string(m.parameters().size()) + " parameters and " + std::to_string(m.outputs().size()) +
                                                 " outputs, the instruction that holds it " + std::to_string(inputs.size()) + " and " + std::to_string(outputs.size()));
    // What is computed goes straight into the first output that wants it; parameters, constants and second uses are copied.
    value_map destinations;
    std::vector<bool> direct(outputs.size());
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      value root = alias_root(m.outputs()[i]);
      bool computed = !root.producer->op().is<parameter>() && !root.producer->op().is<constant>();
      direct[i] = computed && destinations.try_emplace(root, outputs[i]).second;
    }
    value_map values;
    std::size_t next_input = 0;
    for (const instruction& i : m.instructions()) {
      if (i.op().is<parameter>()) {
        values[value{const_cast<instruction*>(&i), 0}] = inputs[next_input++];
      } else if (const literal* data = module::constant(value{const_cast<instruction*>(&i), 0})) {
        values[value{const_cast<instruction*>(&i), 0}] = constant_buffer(*data);
      } else if (auto source = alias_source(i)) {
        values[value{const_cast<instruction*>(&i), 0}] = values.at(*source);
      } else {
        add_instruction(i, block, s, values, destinations);
      }
    }
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      if (direct[i]) continue;
      value v = m.outputs()[i];
      if (bytes_of(v)) add_step(block, s, copy_step{outputs[i], values.at(v)}, *v.producer, {{outputs[i], values.at(v)}});
    }
    scopes_[s].layout = pack(scopes_[s]);
    return block;
  }

  static arena_layout pack(scope& s) {
    for (arena_request& r : s.requests)
      if (r.last < r.first) r = {};  // nothing touches it
    return pack_arena(s.requests);
  }

  std::uint32_t instruction_index(const instruction& i) {
    auto [it, is_new] = instruction_index_.try_emplace(&i, static_cast<std::uint32_t>(plan_.instructions.size()));
    if (is_new) {
      const auto* object = i.op().get_if<code_object>();
      plan_.instructions.push_back({object ? object->symbol : std::string(i.op().name()), i.origin(), object ? object->payload : std::string()});
    }
    return it->second;
  }

  template <class Step>
  void add_step(std::uint32_t block, std::size_t s, Step step, const instruction& i, const std::vector<buffer_id>& touched) {
    auto at = static_cast<std::int64_t>(plan_.blocks[block].steps.size());
    for (buffer_id id : touched) touch(s, id, at);
    plan_.blocks[block].steps.push_back({std::move(step), instruction_index(i)});
  }

  void add_instruction(const instruction& i, std::uint32_t block, std::size_t s, value_map& values, const value_map& destinations) {
    std::vector<buffer_id> inputs, outputs;
    for (value v : i.inputs()) inputs.push_back(values.at(v));
    for (std::uint32_t o = 0; o < i.outputs().size(); ++o) {
      value v{const_cast<instruction*>(&i), o};
      std::size_t bytes = bytes_of(v);
      auto wanted = destinations.find(v);
      outputs.push_back(values[v] = wanted != destinations.end() ? wanted->second : add_arena_buffer(s, bytes));
    }
    if (const auto* object = i.op().get_if<code_object>()) return add_kernel(i, *object, block, s, inputs, outputs);
    if (i.op().is<if_else>()) return add_if(i, block, s, inputs, outputs);
    if (const auto* op = i.op().get_if<loop>()) return add_loop(i, *op, block, s, inputs, outputs);
    ++plan_.report.interpreted;
    if (!options_.allow_interpreter)
      throw error(error_kind::not_native, describe(i) + " has no native kernel: compile the program for this device, or allow the interpreter");
    interpreted_step step{i.op(), inputs, outputs, {}};
    for (value v : i.inputs()) step.input_types.push_back(v.type());
    auto touched = inputs;
    touched.insert(touched.end(), outputs.begin(), outputs.end());
    add_step(block, s, std::move(step), i, touched);
  }

  void add_kernel(const instruction& i, const code_object& object, std::uint32_t block, std::size_t s, const std::vector<buffer_id>& inputs, const std::vector<buffer_id>& outputs) {
    std::size_t index = kernel_index_.at(object.payload);
    const native_kernel& kernel = kernels_[index];
    check_launches(i, kernel, inputs.size(), outputs.size());
    prepare_request request{kernel, object.payload, {}, {}, {}, {}};
    for (buffer_id id : inputs) request.constants.push_back(constants_.literal_of(id));
    request.address = [&](std::size_t input) { return constants_.address(inputs[input]); };
    request.hash = [&](std::size_t input) { return constants_.hash_of(*request.constants[input]); };
    request.function = [&](const std::string& symbol) { return plan_.library->find(index, symbol); };
    prepared_kernel prepared = prepare_.run(request);
    std::vector<buffer_id> scratch;
    for (std::size_t b = 0; b < kernel.scratch.size(); ++b) {
      if (const auto& found = prepared.scratch[b]; found.owner) {
        scratch.push_back(add_buffer({buffer_place::fixed, found.bytes.size(), 0, found.bytes.data()}));
        plan_.owners.push_back(found.owner);
      } else if (kernel.scratch[b].zeroed) {
        scratch.push_back(add_zeroed_buffer(static_cast<std::size_t>(kernel.scratch[b].bytes)));
      } else {
        scratch.push_back(add_arena_buffer(s, static_cast<std::size_t>(kernel.scratch[b].bytes)));
      }
    }
    const std::array<const std::vector<buffer_id>*, 3> of_kind{&inputs, &outputs, &scratch};
    for (std::size_t l = 0; l < kernel.launches.size(); ++l) {
      const launch& what = kernel.launches[l];
      if (prepared.done[l] || what.grid == 0 || what.grid_y == 0 || what.grid_z == 0) continue;
      std::vector<buffer_id> arguments;
      for (const launch_argument& a : what.arguments) arguments.push_back((*of_kind[static_cast<std::size_t>(a.kind)])[a.index]);
      launch_step step{plan_.library->find(index, what.symbol), what.grid, what.grid_y, what.grid_z, what.block, what.lds_bytes,
                       static_cast<std::uint32_t>(plan_.arguments.size()), static_cast<std::uint32_t>(arguments.size()),
                       static_cast<std::uint32_t>(plan_.tensor_maps.size()), static_cast<std::uint32_t>(what.tensor_maps.size())};
      for (const tensor_map& map : what.tensor_maps) {
        check_tensor_map(i, map, plan_.buffers[arguments[map.argument]].bytes);
        plan_.tensor_maps.push_back({step.first_argument + map.argument, map});
      }
      plan_.arguments.insert(plan_.arguments.end(), arguments.begin(), arguments.end());
      plan_.most_arguments = std::max(plan_.most_arguments, arguments.size());
      add_step(block, s, step, i, arguments);
      ++plan_.report.launches;
    }
  }

  void check_launches(const instruction& i, const native_kernel& kernel, std::size_t inputs, std::size_t outputs) const {
    auto require = [&](bool holds, const std::string& what) {
      if (!holds) throw error(error_kind::corrupted, describe(i) + ": its native kernel " + what + "; finalize the program again");
    };
    for (const scratch_buffer& b : kernel.scratch) require(b.bytes >= 0 && static_cast<std::size_t>(b.bytes) <= most_scratch_bytes, "asks for " + std::to_string(b.bytes) + " bytes of scratch memory");
    const std::array<std::size_t, 3> counts{inputs, outputs, kernel.scratch.size()};
    for (const launch& l : kernel.launches) {
      require(l.grid >= 0 && l.grid_y >= 0 && l.grid_z >= 0, "has a negative grid");
      if (device_.info().family == "cpu") {
        require(l.grid_y == 1 && l.grid_z == 1, "has a grid of several dimensions, which a CPU does not run");
        require(l.tensor_maps.empty(), "has tensor maps, which a CPU does not have");
      } else {
        require(l.grid <= most_groups && l.grid_y <= most_groups_y && l.grid_z <= most_groups_y, "has more workgroups than a GPU runs at once");
        require(l.block <= most_items && l.lds_bytes <= most_lds_bytes, "has larger workgroups than a GPU runs");
      }
      for (const launch_argument& a : l.arguments)
        require(static_cast<std::size_t>(a.kind) < counts.size() && a.index < counts[static_cast<std::size_t>(a.kind)], "names an argument that the instruction does not have");
    }
  }

  void check_tensor_map(const instruction& i, const tensor_map& map, std::size_t bytes) const {
    // Sizes are small enough not to wrap: ir/native_kernel.cpp.
    auto end = static_cast<double>(map.dims[0]) * storage_bits(map.type) / 8;
    for (std::size_t d = 1; d < map.dims.size(); ++d) end += static_cast<double>(map.dims[d] - 1) * static_cast<double>(map.strides[d - 1]);
    if (end > static_cast<double>(bytes)) throw error(error_kind::corrupted, describe(i) + ": its native kernel describes a tensor that is larger than its buffer; finalize the program again");
  }

  // The arena region of a body is one buffer of the module around it, live while the step runs.
  void hold_region(std::size_t body_scope, std::size_t s, std::int64_t step) {
    buffer_id region = add_arena_buffer(s, scopes_[body_scope].layout.bytes);
    touch(s, region, step);
    scopes_[body_scope].parent = s;
    scopes_[body_scope].parent_request = homes_[region].second;
  }

  void add_if(const instruction& i, std::uint32_t block, std::size_t s, const std::vector<buffer_id>& inputs, const std::vector<buffer_id>& outputs) {
    if (i.bodies().size() != 2 || inputs.empty()) throw error(error_kind::invalid_model, describe(i) + " needs a condition and two bodies");
    std::vector<buffer_id> arguments(inputs.begin() + 1, inputs.end());
    if_step step{inputs[0], 0, 0};
    auto at = static_cast<std::int64_t>(plan_.blocks[block].steps.size());
    for (std::size_t b = 0; b < 2; ++b) {
      std::size_t body_scope = scopes_.size();
      std::uint32_t body = add_module(*i.bodies()[b], arguments, outputs, s);
      (b == 0 ? step.then_block : step.else_block) = body;
      hold_region(body_scope, s, at);
    }
    auto touched = inputs;
    touched.insert(touched.end(), outputs.begin(), outputs.end());
    add_step(block, s, step, i, touched);
  }

  void add_loop(const instruction& i, const loop& op, std::uint32_t block, std::size_t s, const std::vector<buffer_id>& inputs, const std::vector<buffer_id>& outputs) {
    auto carried = static_cast<std::size_t>(op.carried);
    if (i.bodies().size() != 1 || inputs.size() < 2 + carried || outputs.size() < carried) throw error(error_kind::invalid_model, describe(i) + " has too few inputs or outputs");
    const module& body = *i.bodies()[0];
    auto moving = [&](std::size_t bytes) { return add_buffer({buffer_place::moving, bytes, 0, nullptr}); };
    loop_step step;
    step.trip_count = inputs[0];
    step.condition = inputs[1];
    step.iteration = add_arena_buffer(s, sizeof(std::int64_t));
    step.condition_in = add_arena_buffer(s, 1);
    step.condition_out = add_arena_buffer(s, 1);
    step.trips = op.trips;
    std::vector<buffer_id> touched = inputs, arguments{step.iteration, step.condition_in}, results{step.condition_out};
    touched.insert(touched.end(), {step.iteration, step.condition_in, step.condition_out});
    touched.insert(touched.end(), outputs.begin(), outputs.end());
    for (std::size_t k = 0; k < carried; ++k) {
      std::size_t bytes = bytes_of({const_cast<instruction*>(&i), static_cast<std::uint32_t>(k)});
      carried_value c{inputs[2 + k], moving(bytes), moving(bytes), outputs[k], add_arena_buffer(s, bytes)};
      arguments.push_back(c.in);
      results.push_back(c.out);
      touched.push_back(c.spare);
      step.carried.push_back(c);
    }
    arguments.insert(arguments.end(), inputs.begin() + 2 + static_cast<std::ptrdiff_t>(carried), inputs.end());
    for (std::size_t k = carried; k < outputs.size(); ++k) {
      if (op.trips < 0) throw error(error_kind::unsupported, describe(i) + " stacks values over a number of trips that depends on data; give the trip count as a constant");
      if (1 + k >= body.outputs().size()) throw error(error_kind::invalid_model, describe(i) + " has more outputs than its body");
      value slice_value = body.outputs()[1 + k];
      if (storage_bits(slice_value.type().type) < 8 && slice_value.type().element_count() % 2)
        throw error(error_kind::unsupported, describe(i) + " stacks 4-bit slices that do not fill their last byte; convert them to i8 first");
      scanned_value v{outputs[k], moving(bytes_of(slice_value))};
      results.push_back(v.slice);
      step.scanned.push_back(v);
    }
    auto at = static_cast<std::int64_t>(plan_.blocks[block].steps.size());
    std::size_t body_scope = scopes_.size();
    step.body = add_module(body, arguments, results, s);
    hold_region(body_scope, s, at);
    add_step(block, s, std::move(step), i, touched);
  }

  // --- finish ---

  void place_arena() {
    std::vector<std::size_t> bases(scopes_.size(), 0);  // parents come before their bodies
    for (std::size_t s = 0; s < scopes_.size(); ++s) {
      const scope& here = scopes_[s];
      if (here.parent != SIZE_MAX) bases[s] = bases[here.parent] + scopes_[here.parent].layout.offsets[here.parent_request];
      plan_.report.arena_sum_bytes += here.layout.sum;
      if (here.parent != SIZE_MAX) plan_.report.arena_sum_bytes -= scopes_[here.parent].requests[here.parent_request].bytes;  // regions are not buffers of their own
    }
    for (std::size_t id = 0; id < plan_.buffers.size(); ++id)
      if (auto [s, request] = homes_[id]; s != SIZE_MAX) plan_.buffers[id].offset = bases[s] + scopes_[s].layout.offsets[request];
    plan_.arena_bytes = scopes_[0].layout.bytes;
  }

  void report() {
    plan_report& r = plan_.report;
    r.arena_bytes = plan_.arena_bytes;
    r.arena_lower_bound = scopes_[0].layout.lower_bound;
    for (const plan_block& b : plan_.blocks) r.copies += static_cast<std::size_t>(std::ranges::count_if(b.steps, [](const plan_step& s) { return std::holds_alternative<copy_step>(s.what); }));
    r.prepared_bytes = prepare_.bytes();
    r.prepared_found = prepare_.found();
    r.prepared_made = prepare_.made();
  }

  const program& source_;
  device& device_;
  const plan_options& options_;
  plan plan_;
  plan_constants constants_;
  preparer prepare_;
  std::vector<native_kernel> kernels_;
  std::map<std::string, std::size_t> kernel_index_;  // payload → kernels_
  std::vector<scope> scopes_;
  std::vector<std::pair<std::size_t, std::size_t>> homes_;  // per buffer: scope and request, or none
  std::map<const instruction*, std::uint32_t> instruction_index_;
};

}  // namespace

plan make_plan(const program& source, device& target, const plan_options& options) { return builder(source, target, options).build(); }

}  // namespace kiln
