#include "runtime/c_api.hpp"
#include "runtime/c_open.hpp"
#include "runtime/c_status.hpp"
#include "runtime/compiler_library.hpp"

using kiln::c_interface::check;
using kiln::c_interface::complete;
using kiln::c_interface::fail;
using kiln::c_interface::guarded;

namespace {

static_assert(static_cast<int>(kiln::element_type::f64) == KILN_F64 &&
              static_cast<int>(kiln::element_type::i64) == KILN_I64 &&
              static_cast<int>(kiln::element_type::u64) == KILN_U64 &&
              static_cast<int>(kiln::element_type::boolean) == KILN_BOOL &&
              static_cast<int>(kiln::element_type::u2) == KILN_U2);

kiln_status describe(const std::vector<kiln::plan_port>& ports, std::size_t index, kiln_tensor_info* info) {
  if (!info) return fail(KILN_USAGE, "the pointer for the result is null");
  if (index >= ports.size()) return fail(KILN_USAGE, "there is no tensor of this index");
  const kiln::plan_port& p = ports[index];
  *info = {p.name.c_str(), static_cast<kiln_type>(p.type.type), p.dims.size(), p.dims.data(), p.bytes};
  return KILN_OK;
}

}  // namespace

extern "C" {

int kiln_api_version(void) { return KILN_API_VERSION; }

kiln_status kiln_load_compiler(const char* library) {
  return guarded([&] { kiln::load_compiler(library ? library : ""); });
}

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
  if (kiln_status wrong = check(options)) return wrong;
  const kiln_open_options chosen = complete(options);
  return guarded([&] {
    auto source = kiln::c_interface::open_file(path, chosen).source;
    auto model = source->at(kiln::c_interface::sizes_of(chosen.dims, chosen.dim_count));
    *program = new kiln_program{std::move(source), std::move(model)};
  });
}

void kiln_program_close(kiln_program* program) { delete program; }

size_t kiln_program_input_count(const kiln_program* program) {
  return program ? program->loaded().plan().inputs.size() : 0;
}
size_t kiln_program_output_count(const kiln_program* program) {
  return program ? program->loaded().plan().outputs.size() : 0;
}

kiln_status kiln_program_input(const kiln_program* program, size_t index, kiln_tensor_info* info) {
  return program ? describe(program->loaded().plan().inputs, index, info) : fail(KILN_USAGE, "the program is null");
}
kiln_status kiln_program_output(const kiln_program* program, size_t index, kiln_tensor_info* info) {
  return program ? describe(program->loaded().plan().outputs, index, info) : fail(KILN_USAGE, "the program is null");
}

kiln_status kiln_program_output_extent(const kiln_program* program, size_t index, size_t axis, size_t* count) {
  if (!program || !count) return fail(KILN_USAGE, "the program or the pointer for the result is null");
  const auto& ports = program->loaded().plan().outputs;
  if (index >= ports.size() || axis >= ports[index].dims.size())
    return fail(KILN_USAGE, "there is no such output, or no such axis of it");
  *count = ports.size();
  for (const kiln::bounded_axis& c : ports[index].bounded)
    if (c.axis == axis) *count = c.count;
  return KILN_OK;
}

kiln_status kiln_program_get_info(const kiln_program* program, kiln_program_info* info) {
  if (!program || !info) return fail(KILN_USAGE, "the program or the pointer for the result is null");
  const kiln::plan_report& r = program->loaded().plan().report;
  *info = {r.kernels, r.launches, r.arena_bytes, r.constant_bytes, r.prepared_bytes};
  return KILN_OK;
}

kiln_status kiln_program_get_tuning_info(const kiln_program* program, kiln_tuning_info* info) {
  if (!program || !info) return fail(KILN_USAGE, "the program or the pointer for the result is null");
  return guarded([&] {
    *info = program->model->tuning();
    if (std::string problem = program->model->tuning_problem(); !problem.empty())
      throw kiln::error(kiln::error_kind::internal, "tuning in the background: " + problem);
  });
}

}  // extern "C"
