#include "python/extension/session.hpp"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstring>
#include <utility>

#include "python/extension/element_types.hpp"
#include "python/extension/output_arrays.hpp"
#include "python/extension/status.hpp"

namespace nb = nanobind;

namespace kiln::python {
namespace {

const char* text_or_null(const std::string& text) { return text.empty() ? nullptr : text.c_str(); }

// The sizes that decide which program runs.
size_key key_of(const std::vector<tensor_view>& inputs, const std::vector<described_tensor>& declared) {
  size_key key;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    key.push_back(static_cast<std::int64_t>(inputs[i].dims.size()));
    key.insert(key.end(), inputs[i].dims.begin(), inputs[i].dims.end());
    if (!declared[i].decides_sizes) continue;
    std::size_t bytes = inputs[i].dtype.bits / 8;
    for (std::int64_t d : inputs[i].dims) bytes *= static_cast<std::size_t>(d);
    const std::size_t words = (bytes + 7) / 8, first = key.size();
    key.resize(first + words);
    if (bytes) std::memcpy(&key[first], inputs[i].data, bytes);
  }
  return key;
}

enum class place { host, device };

// Where all inputs lie. Those without an input are in host memory.
place place_of(const std::vector<tensor_view>& inputs, const std::vector<described_tensor>& declared,
               const std::string& device) {
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].on_device != inputs[0].on_device)
      raise(KILN_USAGE, "input '" + declared[i].name + "': it is " +
                            (inputs[i].on_device ? "on a GPU" : "in host memory") + ", and '" + declared[0].name +
                            "' is not; move one of them");
    if (inputs[i].on_device && device == "host")
      raise(KILN_USAGE,
            "input '" + declared[i].name + "': it is on a GPU, and the session is on the host; open it with device=");
    if (inputs[i].on_device && declared[i].decides_sizes)
      raise(KILN_UNSUPPORTED,
            "input '" + declared[i].name + "': its elements are sizes; give the inputs in host memory");
  }
  return !inputs.empty() && inputs[0].on_device ? place::device : place::host;
}

}  // namespace

kiln_open_options session_choice::common_options() const {
  kiln_open_options options{};
  options.size = sizeof options;
  options.device = device.c_str();
  options.threads = threads;
  options.trusted_keys = text_or_null(trusted_keys);
  options.allow_unsigned = allow_unsigned;
  options.cache_folder = text_or_null(cache_folder);
  options.no_cache = no_cache;
  options.only_cached = only_cached;
  return options;
}

session::session(session_choice choice, nb::object progress, nb::object warn)
    : choice_(std::move(choice)),
      described_(describe(choice_.path)),
      callbacks_(std::move(progress), std::move(warn)),
      arrays_(nb::module_::import_("kiln.arrays")),
      pool_(choice_.most_programs) {
  kiln_open_options options = choice_.common_options();
  options.most_programs = choice_.most_programs;
  options.tuning = static_cast<kiln_tuning>(choice_.tuning);
  options.tuning_seconds = choice_.tuning_seconds;
  options.specialization = static_cast<kiln_specialization>(choice_.specialization);
  callbacks_.install(options);
  kiln_session* opened = nullptr;
  const outcome opening = [&] {
    nb::gil_scoped_release unlocked;
    return outcome(kiln_session_open(choice_.path.c_str(), &options, &opened));
  }();
  check(opening);
  handle_.reset(opened, kiln_session_close);
}

session::~session() { close(); }

void session::close() {
  last_.reset();
  pool_.clear();
  std::shared_ptr<kiln_session> closing = std::move(handle_);
  nb::gil_scoped_release unlocked;
  closing.reset();
}

tensor_view session::view_of(nb::object given, const described_tensor& declared) const {
  const element_type_row& row = row_of(declared.type);
  if (row.dlpack.bits < 8) {
    const auto packed = nb::cast<nb::tuple>(arrays_.attr("pack")(given, row.array, declared.name));
    tensor_view bytes = view(packed[0]).value();
    bytes.dims = nb::cast<std::vector<std::int64_t>>(packed[1]);
    return bytes;
  }
  auto seen = view(given);
  if (seen && seen->on_device && !seen->dense)
    raise(KILN_UNSUPPORTED, "input '" + declared.name + "': it is not row-major; on a GPU, call contiguous() first");
  if (!seen || !seen->dense) seen.emplace(view(arrays_.attr("as_input")(given, row.array, declared.name)).value());
  if (!fits(row, seen->dtype))
    raise(KILN_USAGE,
          "input '" + declared.name + "': it is " + name_of(seen->dtype) + ", and the model takes " + row.array);
  return std::move(*seen);
}

std::vector<tensor_view> session::views_of(nb::sequence inputs) const {
  const std::size_t count = nb::len(inputs);
  if (count != described_.inputs.size())
    raise(KILN_USAGE, "inputs: the model has " + std::to_string(described_.inputs.size()) + ", and " +
                          std::to_string(count) + " are given");
  std::vector<tensor_view> views;
  views.reserve(count);
  for (std::size_t i = 0; i < count; ++i) views.push_back(view_of(inputs[i], described_.inputs[i]));
  return views;
}

std::shared_ptr<sized_program> session::program_for(const std::vector<tensor_view>& inputs) {
  if (!handle_) raise(KILN_USAGE, "session: it is closed");
  size_key key = key_of(inputs, described_.inputs);
  if (auto found = pool_.find(key)) return found;
  std::vector<kiln_given_input> given;
  for (const tensor_view& v : inputs) given.push_back({v.dims.size(), v.dims.data(), v.on_device ? nullptr : v.data});
  std::vector<kiln_dim> dims;
  for (const auto& [name, value] : choice_.dims) dims.push_back({name.c_str(), value});
  kiln_program* made = nullptr;
  const outcome making = [&, held = handle_]() mutable {
    nb::gil_scoped_release unlocked;
    const outcome result(
        kiln_session_program_for(held.get(), given.data(), given.size(), dims.data(), dims.size(), &made));
    held.reset();  // without the lock, if it is the last one
    return result;
  }();
  program_handle owned(made);
  callbacks_.rethrow();
  check(making);
  auto program = std::make_shared<sized_program>(std::move(owned));
  if (!pool_.find(key)) pool_.insert(std::move(key), program);
  return program;
}

nb::list session::run(nb::sequence inputs, nb::object outputs, nb::object stream) {
  if (!handle_) raise(KILN_USAGE, "session: it is closed");
  const std::vector<tensor_view> views = views_of(inputs);
  const place where = place_of(views, described_.inputs, choice_.device);
  if (where == place::host && !stream.is_none())
    raise(KILN_UNSUPPORTED, "stream: the inputs are in host memory; streams are for arrays on a GPU");
  const auto program = program_for(views);
  // Closing the last program releases the interpreter's lock, and another thread may be here then. An assignment would
  // close it before the new one is in its place.
  { const auto closed = std::exchange(last_, program); }
  output_arrays results(*program, described_.outputs, arrays_, inputs, outputs, where == place::device);
  std::vector<const void*> from;
  for (const tensor_view& v : views) from.push_back(v.data);
  leased_context context(program);
  const bool on_stream = !stream.is_none() || results.stream();
  void* chosen =
      stream.is_none() ? results.stream().value_or(nullptr) : reinterpret_cast<void*>(nb::cast<std::uintptr_t>(stream));
  const outcome running = [&] {
    nb::gil_scoped_release unlocked;
    if (where == place::host && choice_.device != "host")
      return outcome(kiln_run_from_host(context.get(), from.data(), results.pointers()));
    if (where == place::device && on_stream)
      return outcome(kiln_run_on_stream(context.get(), from.data(), results.pointers(), chosen));
    return outcome(kiln_run(context.get(), from.data(), results.pointers()));
  }();
  callbacks_.rethrow();
  check(running);
  return results.finish();
}

std::unique_ptr<bound_program> session::bind(nb::sequence sizes, bool on_device) {
  if (!on_device && choice_.device != "host") return nullptr;
  const auto is_packed = [](kiln_type type) { return row_of(type).dlpack.bits < 8; };
  std::vector<tensor_view> views;
  for (std::size_t i = 0; i < described_.inputs.size(); ++i) {
    const described_tensor& input = described_.inputs[i];
    if (input.decides_sizes || is_packed(input.type)) return nullptr;
    views.push_back(
        {.dims = nb::cast<std::vector<std::int64_t>>(sizes[i]), .dtype = {}, .on_device = on_device, .owner = {}});
  }
  auto program = program_for(views);
  for (const program_output& o : program->outputs)
    if (o.is_count || !o.counted.empty() || is_packed(o.type)) return nullptr;
  return std::make_unique<bound_program>(handle_, callbacks_, std::move(program));
}

nb::object session::last_program() const {
  if (!last_) return nb::none();
  kiln_program_info info;
  check(kiln_program_get_info(last_->program.get(), &info));
  nb::dict result;
  result["kernels"] = info.kernels;
  result["launches"] = info.launches;
  result["arena_bytes"] = info.arena_bytes;
  result["constant_bytes"] = info.constant_bytes;
  result["prepared_bytes"] = info.prepared_bytes;
  kiln_tuning_info tuning;
  check(kiln_program_get_tuning_info(last_->program.get(), &tuning));
  result["tuned"] = tuning.tuned;
  result["improved"] = tuning.improved;
  result["tuning_done"] = tuning.done != 0;
  return result;
}

}  // namespace kiln::python
