#include "runtime/c_api.hpp"
#include "runtime/c_status.hpp"
#include "runtime/graph/graph_usage.hpp"

using kiln::c_interface::fail;
using kiln::c_interface::guarded;

namespace {

// Calls `run` with the context's tensors bound to these pointers.
template <class Run>
kiln_status with_tensors(kiln_context* context, const void* const* inputs, void* const* outputs, Run&& run) {
  if (!context) return fail(KILN_USAGE, "the context is null");
  const kiln::plan& plan = context->program.loaded().plan();
  if ((!inputs && !plan.inputs.empty()) || (!outputs && !plan.outputs.empty()))
    return fail(KILN_USAGE, "the list of inputs or outputs is null");
  return guarded([&] {
    auto bind = [](const std::vector<kiln::plan_port>& ports, auto* pointers, auto& spans, auto cast) {
      for (std::size_t i = 0; i < ports.size(); ++i) {
        if (!pointers[i] && ports[i].bytes)
          throw kiln::error(kiln::error_kind::usage, "the pointer of tensor '" + ports[i].name + "' is null");
        spans[i] = {cast(pointers[i]), ports[i].bytes};
      }
    };
    bind(plan.inputs, inputs, context->inputs, [](const void* p) { return static_cast<const std::byte*>(p); });
    bind(plan.outputs, outputs, context->outputs, [](void* p) { return static_cast<std::byte*>(p); });
    run();
  });
}

static_assert(static_cast<int>(kiln::graph_policy::off) == KILN_GRAPH_OFF &&
              static_cast<int>(kiln::graph_policy::automatic) == KILN_GRAPH_AUTO);

}  // namespace

kiln_context::kiln_context(const kiln_program& of, kiln::graph_policy graph)
    : program(of),
      runner(program.model->runner(graph)),
      inputs(of.loaded().plan().inputs.size()),
      outputs(of.loaded().plan().outputs.size()) {}

extern "C" {

kiln_status kiln_context_create(const kiln_program* program, kiln_context** context) {
  return kiln_context_create_with(program, KILN_GRAPH_AUTO, context);
}

kiln_status kiln_context_create_with(const kiln_program* program, kiln_graph_policy graph, kiln_context** context) {
  if (!program || !context) return fail(KILN_USAGE, "the program or the pointer for the context is null");
  *context = nullptr;
  if (graph < KILN_GRAPH_OFF || graph > KILN_GRAPH_AUTO) return fail(KILN_USAGE, "there is no such graph policy");
  return guarded([&] { *context = new kiln_context(*program, static_cast<kiln::graph_policy>(graph)); });
}

void kiln_context_destroy(kiln_context* context) { delete context; }

kiln_status kiln_context_get_graph_info(kiln_context* context, kiln_graph_info* info) {
  if (!context || !info) return fail(KILN_USAGE, "the context or the pointer for the result is null");
  return guarded([&] {
    context->graph = context->runner->context().report();
    const kiln::graph_report& r = context->graph;
    auto decision = context->runner->context().decision();
    kiln::graph_decision d = decision.value_or(kiln::graph_decision{});
    *info = {r.mode.c_str(), r.reason.c_str(),     r.captures, r.replays,  r.patches,  r.updates,  r.rebuilds,
             r.failures,     decision.has_value(), d.replay,   d.branches, d.eager_ms, d.replay_ms};
  });
}

kiln_status kiln_context_get_graph_memory(const kiln_context* context, kiln_graph_memory* memory) {
  if (!context || !memory) return fail(KILN_USAGE, "the context or the pointer for the result is null");
  return guarded([&] {
    const kiln::device& device = context->program.loaded().target();
    const kiln::graph_usage usage = kiln::graphs_of(device);
    *memory = {usage.graphs, usage.bytes, device.has_graphs() ? kiln::most_graph_bytes : 0};
  });
}

kiln_status kiln_run(kiln_context* context, const void* const* inputs, void* const* outputs) {
  return with_tensors(context, inputs, outputs, [&] { context->runner->run(context->inputs, context->outputs); });
}

kiln_status kiln_run_from_host(kiln_context* context, const void* const* inputs, void* const* outputs) {
  return with_tensors(context, inputs, outputs, [&] {
    kiln_context& c = *context;
    kiln::device& device = c.program.loaded().target();
    if (!c.tensors) c.tensors.emplace(c.program.loaded());
    for (std::size_t i = 0; i < c.inputs.size(); ++i)
      device.upload(const_cast<std::byte*>(c.tensors->inputs()[i].data()), c.inputs[i].data(), c.inputs[i].size());
    device.synchronize();
    c.runner->run(c.tensors->inputs(), c.tensors->outputs());
    for (std::size_t i = 0; i < c.outputs.size(); ++i)
      device.download(c.outputs[i].data(), c.tensors->outputs()[i].data(), c.outputs[i].size());
  });
}

kiln_status kiln_run_on_stream(kiln_context* context, const void* const* inputs, void* const* outputs, void* stream) {
  return with_tensors(context, inputs, outputs, [&] {
    auto& known = context->streams[stream];
    if (!known) known = context->program.loaded().target().borrow_stream(stream);
    context->runner->run(context->inputs, context->outputs, *known);
  });
}

}  // extern "C"
