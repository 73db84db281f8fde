#include "runtime/c_api.hpp"

#include <cstddef>
#include <cstring>

#include "ir/container/container.hpp"
#include "runtime/c_status.hpp"
#include "runtime/compiler_library.hpp"

using kiln::c_interface::fail;
using kiln::c_interface::guarded;

namespace {

static_assert(static_cast<int>(kiln::element_type::f64) == KILN_F64 &&
              static_cast<int>(kiln::element_type::i64) == KILN_I64 &&
              static_cast<int>(kiln::element_type::u64) == KILN_U64 &&
              static_cast<int>(kiln::element_type::boolean) == KILN_BOOL &&
              static_cast<int>(kiln::element_type::u2) == KILN_U2);

// The options as they were in version 4; later ones are larger.
constexpr std::size_t smallest_options = offsetof(kiln_open_options, dims);

kiln_status check(const kiln_open_options* options) {
  if (options && options->size < smallest_options)
    return fail(KILN_USAGE, "the size in the options is not that of kiln_open_options");
  if (options && options->trusted_keys && options->allow_unsigned)
    return fail(KILN_USAGE, "trusted_keys and allow_unsigned exclude each other");
  return KILN_OK;
}

// With zeros for what the caller's version does not have.
kiln_open_options complete(const kiln_open_options* options) {
  kiln_open_options result{};
  if (options) std::memcpy(&result, options, std::min(options->size, sizeof result));
  return result;
}

kiln::model_request request_of(const char* path, const kiln_open_options& o) {
  auto text = [](const char* given) { return std::string(given ? given : ""); };
  kiln::model_request request;
  request.file = path;
  if (o.device) request.device = o.device;
  request.threads = o.threads;
  request.trusted_keys = text(o.trusted_keys);
  request.allow_unsigned = o.allow_unsigned != 0;
  request.cache_folder = text(o.cache_folder);
  request.no_cache = o.no_cache != 0;
  request.only_cached = o.only_cached != 0;
  request.compile_worker = text(o.compile_worker);
  if (o.tuning < KILN_TUNING_OFF || o.tuning > KILN_TUNING_EXHAUSTIVE)
    throw kiln::error(kiln::error_kind::usage, "tuning: there is no such effort; use one of kiln_tuning");
  request.tuning = o.tuning;
  if (o.specialization < KILN_SPECIALIZE_LAZY || o.specialization > KILN_SPECIALIZE_OFF)
    throw kiln::error(kiln::error_kind::usage, "specialization: there is no such way; use one of kiln_specialization");
  request.specialization = o.specialization;
  if (o.tuning_seconds < 0) throw kiln::error(kiln::error_kind::usage, "tuning_seconds: it is negative");
  if (o.tuning_seconds > 0) request.tuning_seconds = o.tuning_seconds;
  if (o.most_programs) request.most_instances = o.most_programs;
  if (o.progress)
    request.progress = [f = o.progress, data = o.data](std::size_t done, std::size_t total) { f(data, done, total); };
  if (o.warn) request.warn = [f = o.warn, data = o.data](const std::string& what) { f(data, what.c_str()); };
  return request;
}

// A file of native kernels needs no compiler.
std::shared_ptr<kiln::model_source> open_source(const kiln::model_request& request) {
  kiln::program source = kiln::read_program(request.file, consent_of(request));
  if (is_native(source)) {
    if (request.tuning != KILN_TUNING_OFF)
      throw kiln::error(
          kiln::error_kind::unsupported,
          request.file.string() + ": native kernels are not tuned; open the portable file, or with tuning off");
    return open_native(source, request);
  }
  return kiln::load_compiler().open(std::move(source), request);
}

kiln::dim_bindings sizes_of(const kiln_dim* dims, std::size_t count) {
  if (!dims && count) throw kiln::error(kiln::error_kind::usage, "the list of dimensions is null");
  kiln::dim_bindings sizes;
  for (std::size_t i = 0; i < count; ++i) {
    if (!dims[i].name) throw kiln::error(kiln::error_kind::usage, "the name of a dimension is null");
    if (!sizes.emplace(dims[i].name, dims[i].value).second)
      throw kiln::error(kiln::error_kind::usage, std::string("dimension '") + dims[i].name + "': it is given twice");
  }
  return sizes;
}

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
    auto source = open_source(request_of(path, chosen));
    auto model = source->at(sizes_of(chosen.dims, chosen.dim_count));
    *program = new kiln_program{std::move(source), std::move(model)};
  });
}

void kiln_program_close(kiln_program* program) { delete program; }

kiln_status kiln_session_open(const char* path, const kiln_open_options* options, kiln_session** session) {
  if (!session) return fail(KILN_USAGE, "the pointer for the session is null");
  *session = nullptr;
  if (!path) return fail(KILN_USAGE, "the path is null");
  if (kiln_status wrong = check(options)) return wrong;
  const kiln_open_options chosen = complete(options);
  if (chosen.dim_count)
    return fail(KILN_USAGE, "dims: a session takes them with each program; give them to kiln_session_program()");
  return guarded([&] { *session = new kiln_session{open_source(request_of(path, chosen))}; });
}

void kiln_session_close(kiln_session* session) { delete session; }

size_t kiln_session_dim_count(const kiln_session* session) { return session ? session->source->symbols().size() : 0; }

kiln_status kiln_session_dim(const kiln_session* session, size_t index, kiln_dim_info* info) {
  if (!session || !info) return fail(KILN_USAGE, "the session or the pointer for the result is null");
  const auto& symbols = session->source->symbols();
  if (index >= symbols.size()) return fail(KILN_USAGE, "there is no dimension of this index");
  const auto& [name, range] = *std::next(symbols.begin(), static_cast<std::ptrdiff_t>(index));
  *info = {name.c_str(), range.min, range.max};
  return KILN_OK;
}

kiln_status kiln_session_program(kiln_session* session, const kiln_dim* dims, size_t count, kiln_program** program) {
  if (!session || !program) return fail(KILN_USAGE, "the session or the pointer for the program is null");
  *program = nullptr;
  return guarded([&] {
    auto model = session->source->at(sizes_of(dims, count));
    *program = new kiln_program{session->source, std::move(model)};
  });
}

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
