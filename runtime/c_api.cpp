#include "runtime/c_api.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <new>

#include "ir/container/container.hpp"
#include "ir/error_kinds.hpp"
#include "ir/trust/native_consent.hpp"
#include "runtime/devices.hpp"

namespace {

// Indexed by kiln_status.
constexpr std::array<const char*, KILN_UNREACHABLE + 1> status_names{
    "ok",        "usage",         "missing_file", "damaged_file", "newer_version", "unsupported",    "not_native",
    "io",        "out_of_memory", "internal",     "untrusted",    "mismatch",      "compile_failed", "timed_out",
    "no_driver", "no_device",     "wrong_device", "device_lost",  "not_built_in",  "not_cached",     "unreachable"};

// Per error_kind: the status that the table of kinds names.
constexpr auto statuses = [] {
  std::array<kiln_status, kiln::error_kinds.size()> result{};
  for (std::size_t i = 0; i < result.size(); ++i) {
    const auto found = std::ranges::find(status_names, kiln::error_kinds[i].status);
    result[i] = static_cast<kiln_status>(found - status_names.begin());
  }
  return result;
}();
static_assert(std::ranges::all_of(statuses, [](kiln_status s) { return s > KILN_OK && s <= KILN_UNREACHABLE; }));

static_assert(static_cast<int>(kiln::element_type::f64) == KILN_F64 &&
              static_cast<int>(kiln::element_type::i64) == KILN_I64 &&
              static_cast<int>(kiln::element_type::u64) == KILN_U64 &&
              static_cast<int>(kiln::element_type::boolean) == KILN_BOOL);

// Of fixed size, so that even out-of-memory has room for its message.
thread_local char last_error[1024] = "";

kiln_status fail(kiln_status status, const char* message) noexcept {
  std::strncpy(last_error, message, sizeof last_error - 1);
  return status;
}

// Runs `f`; whatever it throws becomes a status and a message.
template <class F>
kiln_status guarded(F&& f) noexcept {
  try {
    f();
    return KILN_OK;
  } catch (const kiln::error& e) {
    return fail(statuses[static_cast<std::size_t>(e.kind())], e.what());
  } catch (const std::bad_alloc&) {
    return fail(KILN_OUT_OF_MEMORY, "memory: is used up; use smaller dimensions, or a machine with more");
  } catch (const std::exception& e) {
    return fail(KILN_INTERNAL, e.what());
  } catch (...) {
    return fail(KILN_INTERNAL, "an unknown exception");
  }
}

kiln_status describe(const std::vector<kiln::plan_port>& ports, std::size_t index, kiln_tensor_info* info) {
  if (!info) return fail(KILN_USAGE, "the pointer for the result is null");
  if (index >= ports.size()) return fail(KILN_USAGE, "there is no tensor of this index");
  const kiln::plan_port& p = ports[index];
  *info = {p.name.c_str(), static_cast<kiln_type>(p.type.type), p.dims.size(), p.dims.data(), p.bytes};
  return KILN_OK;
}

// Calls `run` with the context's tensors bound to these pointers.
template <class Run>
kiln_status with_tensors(kiln_context* context, const void* const* inputs, void* const* outputs, Run&& run) {
  if (!context) return fail(KILN_USAGE, "the context is null");
  const kiln::plan& plan = context->program.loaded.plan();
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

kiln_program::kiln_program(const kiln::program& source, std::unique_ptr<kiln::device> on)
    : device(std::move(on)), loaded(kiln::load(source, *device)) {}

kiln_context::kiln_context(const kiln_program& p, const kiln::graph_options& graph)
    : program(p),
      context(p.loaded.make_context(graph)),
      inputs(p.loaded.plan().inputs.size()),
      outputs(p.loaded.plan().outputs.size()) {}

extern "C" {

int kiln_api_version(void) { return KILN_API_VERSION; }

const char* kiln_status_name(kiln_status status) {
  auto i = static_cast<std::size_t>(status);
  return i < status_names.size() ? status_names[i] : "unknown";
}

const char* kiln_last_error(void) { return last_error; }

kiln_status kiln_program_open(const char* path, unsigned threads, kiln_program** program) {
  return kiln_program_open_on(path, "host", threads, program);
}

kiln_status kiln_program_open_on(const char* path, const char* device, unsigned threads, kiln_program** program) {
  if (program) *program = nullptr;
  if (!device) return fail(KILN_USAGE, "the device's name is null");
  kiln_open_options options{};
  options.size = sizeof options;
  options.device = device;
  options.threads = threads;
  return kiln_program_open_with(path, &options, program);
}

kiln_status kiln_program_open_with(const char* path, const kiln_open_options* options, kiln_program** program) {
  if (!program) return fail(KILN_USAGE, "the pointer for the program is null");
  *program = nullptr;
  if (!path) return fail(KILN_USAGE, "the path is null");
  // The first version of the options; a later one is recognized by its larger size.
  if (options && options->size < sizeof(kiln_open_options))
    return fail(KILN_USAGE, "the size in the options is not that of kiln_open_options");
  if (options && options->trusted_keys && options->allow_unsigned)
    return fail(KILN_USAGE, "trusted_keys and allow_unsigned exclude each other");
  const kiln_open_options chosen = options ? *options : kiln_open_options{};
  return guarded([&] {
    kiln::native_consent consent{.user = kiln::user_keys::of_this_user(), .allow_unsigned = chosen.allow_unsigned != 0};
    if (chosen.trusted_keys) consent.only = kiln::trusted_keys::read(chosen.trusted_keys);
    kiln::device_options with;
    with.threads = chosen.threads;
    *program = new kiln_program(kiln::read_program(path, consent),
                                kiln::open_device(chosen.device ? chosen.device : "host", with));
  });
}

void kiln_program_close(kiln_program* program) { delete program; }

size_t kiln_program_input_count(const kiln_program* program) {
  return program ? program->loaded.plan().inputs.size() : 0;
}
size_t kiln_program_output_count(const kiln_program* program) {
  return program ? program->loaded.plan().outputs.size() : 0;
}

kiln_status kiln_program_input(const kiln_program* program, size_t index, kiln_tensor_info* info) {
  return program ? describe(program->loaded.plan().inputs, index, info) : fail(KILN_USAGE, "the program is null");
}
kiln_status kiln_program_output(const kiln_program* program, size_t index, kiln_tensor_info* info) {
  return program ? describe(program->loaded.plan().outputs, index, info) : fail(KILN_USAGE, "the program is null");
}

kiln_status kiln_program_output_extent(const kiln_program* program, size_t index, size_t axis, size_t* count) {
  if (!program || !count) return fail(KILN_USAGE, "the program or the pointer for the result is null");
  const auto& ports = program->loaded.plan().outputs;
  if (index >= ports.size() || axis >= ports[index].dims.size())
    return fail(KILN_USAGE, "there is no such output, or no such axis of it");
  *count = ports.size();
  for (const kiln::counted_axis& c : ports[index].counted)
    if (c.axis == axis) *count = c.count;
  return KILN_OK;
}

kiln_status kiln_program_get_info(const kiln_program* program, kiln_program_info* info) {
  if (!program || !info) return fail(KILN_USAGE, "the program or the pointer for the result is null");
  const kiln::plan_report& r = program->loaded.plan().report;
  *info = {r.kernels, r.launches, r.arena_bytes, r.constant_bytes, r.prepared_bytes};
  return KILN_OK;
}

kiln_status kiln_context_create(const kiln_program* program, kiln_context** context) {
  return kiln_context_create_with(program, KILN_GRAPH_AUTO, context);
}

kiln_status kiln_context_create_with(const kiln_program* program, kiln_graph_policy graph, kiln_context** context) {
  if (!program || !context) return fail(KILN_USAGE, "the program or the pointer for the context is null");
  *context = nullptr;
  if (graph < KILN_GRAPH_OFF || graph > KILN_GRAPH_AUTO) return fail(KILN_USAGE, "there is no such graph policy");
  return guarded([&] { *context = new kiln_context(*program, {.policy = static_cast<kiln::graph_policy>(graph)}); });
}

void kiln_context_destroy(kiln_context* context) { delete context; }

kiln_status kiln_context_get_graph_info(kiln_context* context, kiln_graph_info* info) {
  if (!context || !info) return fail(KILN_USAGE, "the context or the pointer for the result is null");
  return guarded([&] {
    context->graph = context->context.report();
    const kiln::graph_report& r = context->graph;
    auto decision = context->context.decision();
    kiln::graph_decision d = decision.value_or(kiln::graph_decision{});
    *info = {r.mode.c_str(), r.reason.c_str(),     r.captures, r.replays,  r.patches,  r.updates,  r.rebuilds,
             r.failures,     decision.has_value(), d.replay,   d.branches, d.eager_ms, d.replay_ms};
  });
}

kiln_status kiln_run(kiln_context* context, const void* const* inputs, void* const* outputs) {
  return with_tensors(context, inputs, outputs,
                      [&] { context->program.loaded.run(context->context, context->inputs, context->outputs); });
}

kiln_status kiln_run_on_stream(kiln_context* context, const void* const* inputs, void* const* outputs, void* stream) {
  return with_tensors(context, inputs, outputs, [&] {
    auto& known = context->streams[stream];
    if (!known) known = context->program.device->borrow_stream(stream);
    context->program.loaded.run(context->context, context->inputs, context->outputs, *known);
  });
}

}  // extern "C"
