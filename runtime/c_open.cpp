#include "runtime/c_open.hpp"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <optional>

#include "ir/container/container.hpp"
#include "ir/container/stripped.hpp"
#include "ir/native_program.hpp"
#include "runtime/c_status.hpp"
#include "runtime/compiler_library.hpp"
#include "runtime/verify_ahead.hpp"

namespace kiln::c_interface {
namespace {

// The options as they were in version 4; later ones are larger.
constexpr std::size_t smallest_options = offsetof(kiln_open_options, dims);

}  // namespace

model_request request_of(const char* path, const kiln_open_options& o) {
  auto text = [](const char* given) { return std::string(given ? given : ""); };
  model_request request;
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
    throw error(error_kind::usage, "tuning: there is no such effort; use one of kiln_tuning");
  request.tuning = o.tuning;
  if (o.specialization < KILN_SPECIALIZE_LAZY || o.specialization > KILN_SPECIALIZE_OFF)
    throw error(error_kind::usage, "specialization: there is no such way; use one of kiln_specialization");
  request.specialization = o.specialization;
  if (o.tuning_seconds < 0) throw error(error_kind::usage, "tuning_seconds: it is negative; give seconds, or 0 for 30");
  if (o.tuning_seconds > 0) request.tuning_seconds = o.tuning_seconds;
  if (o.most_programs) request.most_instances = o.most_programs;
  if (o.progress)
    request.progress = [f = o.progress, data = o.data](std::size_t done, std::size_t total) { f(data, done, total); };
  if (o.warn) request.warn = [f = o.warn, data = o.data](const std::string& what) { f(data, what.c_str()); };
  if (!o.allocate != !o.release) throw error(error_kind::usage, "allocate and release: give both or neither");
  if (o.allocate)
    request.allocator = {
        .allocate = [f = o.allocate, data = o.data](std::size_t bytes,
                                                    std::size_t alignment) { return f(data, bytes, alignment); },
        .release = [f = o.release, data = o.data](void* memory, std::size_t bytes) { f(data, memory, bytes); }};
  return request;
}

kiln_status check(const kiln_open_options* options) {
  if (options && options->size < smallest_options)
    return fail(KILN_USAGE, "the size in the options is not that of kiln_open_options");
  if (options && options->trusted_keys && options->allow_unsigned)
    return fail(KILN_USAGE, "trusted_keys and allow_unsigned exclude each other");
  return KILN_OK;
}

kiln_open_options complete(const kiln_open_options* options) {
  kiln_open_options result{};
  if (options) std::memcpy(&result, options, std::min(options->size, sizeof result));
  return result;
}

open_result open_file(const char* path, const kiln_open_options& options) {
  const model_request request = request_of(path, options);
  program source = read_program(request.file, consent_of(request), weight_check::when_read);
  require_weights(source, request.file);
  model_interface described = interface_of(source);
  if (!has_native_kernels_only(source)) return {std::move(described), load_compiler().open(std::move(source), request)};
  if (request.tuning != KILN_TUNING_OFF)
    throw error(error_kind::unsupported,
                request.file.string() + ": native kernels are not tuned; open the portable file, or with tuning off");
  std::optional<verify_ahead> verifying;
  if (request.device != "host") verifying.emplace(source);
  return {std::move(described), open_native(source, request)};
}

dim_bindings sizes_of(const kiln_dim* dims, std::size_t count) {
  if (!dims && count)
    throw error(error_kind::usage, "dims: the list is null, but its count is " + std::to_string(count));
  dim_bindings sizes;
  for (std::size_t i = 0; i < count; ++i) {
    if (!dims[i].name) throw error(error_kind::usage, "dims: the name of number " + std::to_string(i) + " is null");
    if (!sizes.emplace(dims[i].name, dims[i].value).second)
      throw error(error_kind::usage,
                  std::string("dimension '") + dims[i].name + "': it is given twice; leave one away");
  }
  return sizes;
}

kiln_status describe(const std::map<std::string, dim_range>& symbols, std::size_t index, kiln_dim_info* info) {
  if (index >= symbols.size()) return fail(KILN_USAGE, "there is no dimension of this index");
  const auto& [name, range] = *std::next(symbols.begin(), static_cast<std::ptrdiff_t>(index));
  *info = {name.c_str(), range.min, range.max};
  return KILN_OK;
}

}  // namespace kiln::c_interface
