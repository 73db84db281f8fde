#include "runtime/executable.hpp"

#include <algorithm>
#include <chrono>
#include <functional>
#include <optional>

#include "ir/invalid_shape.hpp"
#include "runtime/arena_pool.hpp"
#include "runtime/graph/replay.hpp"
#include "runtime/io_buffers.hpp"
#include "runtime/plan_runner.hpp"
#include "runtime/spare_contexts.hpp"

namespace kiln {
namespace {

using clock = std::chrono::steady_clock;

bool overlap(const void* a, std::size_t a_bytes, const void* b, std::size_t b_bytes) {
  auto* a_begin = static_cast<const std::byte*>(a);
  auto* b_begin = static_cast<const std::byte*>(b);
  return a_bytes && b_bytes && std::less<>()(a_begin, b_begin + b_bytes) && std::less<>()(b_begin, a_begin + a_bytes);
}

template <class Span>
void check(const std::vector<plan_port>& ports, std::span<const Span> given, const char* what) {
  if (given.size() != ports.size())
    throw error(error_kind::usage, std::to_string(given.size()) + " " + what + "s were given, the program has " +
                                       std::to_string(ports.size()));
  for (std::size_t i = 0; i < ports.size(); ++i) {
    const plan_port& port = ports[i];
    if (given[i].size() != port.bytes)
      throw error(error_kind::usage, std::string(what) + " '" + port.name + "' has " + std::to_string(given[i].size()) +
                                         " bytes, " + port.type.str() + " needs " + std::to_string(port.bytes));
    if (reinterpret_cast<std::uintptr_t>(given[i].data()) % port.alignment)
      throw error(error_kind::usage, std::string(what) + " '" + port.name + "' is not aligned to its element type " +
                                         std::string(name(port.type.type)));
  }
}

struct launches_follow {
  explicit launches_follow(device& on) : device_(on) { device_.begin_launches(); }
  ~launches_follow() { device_.end_launches(); }
  launches_follow(const launches_follow&) = delete;
  launches_follow& operator=(const launches_follow&) = delete;
  device& device_;
};

// Returns what a context of the plan begins with.
spare_context parts_for(const plan& of, device& target) {
  spare_context parts;
  if (of.spares) parts = of.spares->take();
  const bool for_later = of.spares != nullptr;
  fit(parts.arena, of.arenas ? 0 : of.arena_bytes, target, for_later);
  if (!fit(parts.zeroed, of.zeroed_bytes, target, for_later)) parts.clean = false;
  if (!parts.stream) parts.stream = target.make_stream();
  if (!parts.own_stream) parts.own_stream = target.own_stream();
  return parts;
}

// Runs `work` and always waits for the stream, because work in flight uses the caller's tensors. Throws the first
// error.
template <class Work>
void finish_always(device& target, device_stream& stream, Work&& work) {
  try {
    work();
  } catch (...) {
    try {
      target.synchronize(&stream);
    } catch (const error&) {}
    throw;
  }
  target.synchronize(&stream);
}

}  // namespace

execution_context::execution_context(std::shared_ptr<const kiln::plan> what, device& target, const graph_options& graph)
    : execution_context(what, target, graph, parts_for(*what, target)) {}

execution_context::execution_context(std::shared_ptr<const kiln::plan> what, device& target, const graph_options& graph,
                                     spare_context parts)
    : plan_(std::move(what)),
      arena_(std::move(parts.arena)),
      zeroed_(std::move(parts.zeroed)),
      stream_(std::move(parts.stream)),
      own_stream_(std::move(parts.own_stream)),
      clean_(parts.clean),
      pointers_(*plan_, target, arena_.data(), zeroed_.data()),
      replay_(std::make_unique<graph_replay>(*plan_, target, graph)) {}

execution_context::execution_context(execution_context&&) noexcept = default;

graph_report execution_context::report() const { return replay_->report(); }

bool execution_context::measuring() const { return replay_->measuring(); }

std::optional<graph_decision> execution_context::decision() const { return replay_->decision(); }

execution_context::~execution_context() {
  if (!plan_) return;
  try {
    if (last_run_) last_run_->synchronize();
  } catch (const error&) {
    return;  // the device is lost, so nothing is running any more
  }
  // A run that failed may have left anything.
  if (!plan_->spares || !clean_) return;
  plan_->spares->give_back(replay_->release());
  plan_->spares->give_back({std::move(arena_), std::move(zeroed_), true, std::move(stream_), std::move(own_stream_)});
}

void executable::bind(execution_context& context, std::span<const input_span> inputs,
                      std::span<const output_span> outputs) const {
  if (context.plan_ != plan_)
    throw error(error_kind::usage,
                "the context belongs to another executable: use one of this executable's make_context()");
  check(plan_->inputs, inputs, "input");
  check(plan_->outputs, outputs, "output");
  bool changed = false;
  auto set = [&](const plan_port& port, const void* data) {
    void*& entry = context.pointers_[port.buffer];
    if (!port.bytes || entry == data) return;
    entry = const_cast<void*>(data);
    changed = true;
  };
  for (std::size_t i = 0; i < inputs.size(); ++i) set(plan_->inputs[i], inputs[i].data());
  for (std::size_t i = 0; i < outputs.size(); ++i) set(plan_->outputs[i], outputs[i].data());
  if (!changed) return;  // the same tensors as last time, which were checked for overlap
  try {
    for (std::size_t o = 0; o < outputs.size(); ++o) {
      auto refuse = [&](const std::string& other) {
        throw error(error_kind::usage,
                    "output '" + plan_->outputs[o].name + "' overlaps " + other + ": give it memory of its own");
      };
      const auto shared = plan_->outputs[o].shares;
      if (shared && outputs[o].data() != inputs[*shared].data())
        throw error(error_kind::usage, "output '" + plan_->outputs[o].name + "' is what becomes of input '" +
                                           plan_->inputs[*shared].name + "': give both the same memory");
      for (std::size_t i = 0; i < inputs.size(); ++i)
        if (i != shared && overlap(outputs[o].data(), outputs[o].size(), inputs[i].data(), inputs[i].size()))
          refuse("input '" + plan_->inputs[i].name + "'");
      for (std::size_t p = 0; p < o; ++p)
        if (overlap(outputs[o].data(), outputs[o].size(), outputs[p].data(), outputs[p].size()))
          refuse("output '" + plan_->outputs[p].name + "'");
    }
  } catch (...) {
    for (const plan_port& port : plan_->outputs)
      context.pointers_[port.buffer] = plan_pointers::nothing();  // so that the next run checks again
    throw;
  }
}

void executable::enqueue(execution_context& context, device_stream& stream, graph_run* graphs,
                         step_timer* timer) const {
  if (context.zeroed_.size() && !context.clean_)
    device_->fill_zero(context.zeroed_.data(), context.zeroed_.size(), &stream);
  context.clean_ = false;  // until all of its launches have been enqueued
  launches_follow here(*device_);
  plan_runner(*plan_, context.pointers_, *device_, stream, graphs, timer).run_block(0);
  device_->check(&stream);
  context.clean_ = true;
}

void executable::run(execution_context& context, std::span<const input_span> inputs,
                     std::span<const output_span> outputs) const {
  bind(context, inputs, outputs);
  auto choose = [&](bool own) -> run_stream {
    device_stream& stream = own ? *context.own_stream_ : *context.stream_;
    if (!context.last_stream_) return {stream};
    device_->wait(&stream, *context.last_run_);
    context.last_stream_ = nullptr;
    return {stream, false};
  };
  std::optional<borrowed_block> arena;
  if (plan_->arenas) context.pointers_.move_arena(arena.emplace(*plan_->arenas, plan_->arena_bytes).data());
  context.replay_->run_waited(choose, [&](graph_run& graphs, device_stream& stream) {
    finish_always(*device_, stream, [&] { enqueue(context, stream, &graphs, nullptr); });
  });
}

void executable::run(execution_context& context, std::span<const input_span> inputs,
                     std::span<const output_span> outputs, device_stream& stream) const {
  bind(context, inputs, outputs);
  if (!context.last_run_) context.last_run_ = device_->make_event();
  else if (context.last_stream_ && context.last_stream_ != &stream) device_->wait(&stream, *context.last_run_);
  context.last_stream_ = &stream;
  device_stream* on = &stream;
  auto choose = [&](bool own) -> run_stream {
    if (!own || context.own_stream_.get() == &stream) return {stream};
    on = context.own_stream_.get();
    context.last_run_->record(&stream);
    device_->wait(on, *context.last_run_);
    return {*on};
  };
  auto end = [&] {
    context.last_run_->record(on);
    if (on != &stream) device_->wait(&stream, *context.last_run_);
  };
  // On the host a run ends before this function returns, so the block can go back to the pool at its end.
  std::optional<borrowed_block> arena;
  if (plan_->arenas) context.pointers_.move_arena(arena.emplace(*plan_->arenas, plan_->arena_bytes).data());
  try {
    context.replay_->run_queued(choose,
                                [&](graph_run& graphs, device_stream& s) { enqueue(context, s, &graphs, nullptr); });
  } catch (...) {
    // Work launched before the error still runs. The next run and the destructor of the context wait for it.
    try {
      end();
    } catch (const error&) {}
    throw;
  }
  end();
}

void executable::settle(execution_context& context, std::span<const input_span> inputs,
                        std::span<const output_span> outputs) const {
  // The first run starts the measurement.
  do run(context, inputs, outputs);
  while (context.measuring());
}

void executable::run_timed(execution_context& context, std::span<const input_span> inputs,
                           std::span<const output_span> outputs, run_profile& profile) const {
  bind(context, inputs, outputs);
  profile.instructions.resize(plan_->instructions().size());
  if (!context.timer_) context.timer_ = std::make_unique<step_timer>(*device_);
  context.timer_->start(profile);
  device_stream& stream = context.replay_->may_replay() ? *context.own_stream_ : *context.stream_;
  if (context.last_stream_) device_->wait(&stream, *context.last_run_);
  context.last_stream_ = nullptr;
  std::optional<borrowed_block> arena;
  if (plan_->arenas) context.pointers_.move_arena(arena.emplace(*plan_->arenas, plan_->arena_bytes).data());
  auto begin = clock::now();
  finish_always(*device_, stream, [&] { enqueue(context, stream, nullptr, context.timer_.get()); });
  profile.nanoseconds += std::chrono::duration_cast<std::chrono::nanoseconds>(clock::now() - begin).count();
  context.timer_->finish();
  ++profile.runs;
}

void executable::check_inputs(std::span<const shape> types) const {
  if (types.size() != plan_->inputs.size())
    throw error(error_kind::usage, std::to_string(types.size()) + " inputs were given, the program has " +
                                       std::to_string(plan_->inputs.size()));
  for (std::size_t i = 0; i < types.size(); ++i)
    if (types[i] != plan_->inputs[i].type)
      throw error(invalid_shape, "input '" + plan_->inputs[i].name + "' is " + types[i].str() +
                                     ", the program expects " + plan_->inputs[i].type.str());
}

std::vector<literal> executable::evaluate(std::span<const literal> inputs, const graph_options& graph,
                                          graph_report* report) const {
  std::vector<shape> types;
  for (const literal& l : inputs) types.push_back(l.type());
  check_inputs(types);
  io_buffers tensors(*this);
  execution_context context = make_context(graph);
  tensors.upload(inputs);
  run(context, tensors.inputs(), tensors.outputs());
  if (report) *report = context.report();
  return tensors.download();
}

executable load(const program& source, device& target, const plan_options& options) {
  return executable(std::make_shared<const plan>(make_plan(source, target, options)), target);
}

}  // namespace kiln
