#include "onnxruntime/part.hpp"

#include <algorithm>
#include <cstring>

namespace kiln::ort {
namespace {

constexpr std::size_t most_shapes = 16;

std::size_t place_of(const std::string& name, const std::vector<std::string>& among) {
  const auto found = std::ranges::find(among, name);
  if (found == among.end()) throw std::runtime_error("kiln: the fused node lacks '" + name + "'");
  return static_cast<std::size_t>(found - among.begin());
}

kiln_session* opened(const std::string& file, const provider_options& o) {
  kiln_open_options options{};
  options.size = sizeof options;
  options.device = o.device.c_str();
  options.threads = o.threads;
  options.cache_folder = o.cache.empty() ? nullptr : o.cache.c_str();
  options.no_cache = o.no_cache;
  options.only_cached = o.if_cached;
  options.tuning = o.tune;
  options.tuning_seconds = o.tune_budget;
  options.specialization = o.specialize;
  options.most_programs = most_shapes;
  kiln_session* session = nullptr;
  check(library().session_open(file.c_str(), &options, &session));
  return session;
}

bool has_sizes_in_data(const std::string& file) {
  kiln_description* description = nullptr;
  check(library().description_open(file.c_str(), &description));
  bool found = false;
  for (std::size_t i = 0, n = library().description_input_count(description); i < n; ++i) {
    kiln_port port{};
    if (library().description_input(description, i, &port) == KILN_OK) found |= port.decides_sizes != 0;
  }
  library().description_close(description);
  return found;
}

// Memory for an empty tensor, which has none of its own.
alignas(64) std::byte nothing[64];

}  // namespace

part::program::~program() {
  for (kiln_context* c : free) library().context_destroy(c);
}

part::part(const compiled_part& what, const provider_options& options, const std::vector<std::string>& node_inputs,
           const std::vector<std::string>& node_outputs)
    : graph_(options.graph),
      session_(opened(what.file, options), library().session_close),
      sizes_are_data_(has_sizes_in_data(what.file)) {
  for (const std::string& name : what.inputs) inputs_.push_back(place_of(name, node_inputs));
  for (const std::string& name : what.outputs) outputs_.push_back(place_of(name, node_outputs));
}

std::vector<part::given> part::read_inputs(OrtKernelContext* context) const {
  const OrtApi& api = *runtime().api;
  std::vector<given> result;
  for (std::size_t place : inputs_) {
    const OrtValue* value = nullptr;
    require(api.KernelContext_GetInput(context, place, &value));
    OrtTensorTypeAndShapeInfo* info = nullptr;
    require(api.GetTensorTypeAndShape(value, &info));
    std::size_t rank = 0;
    given g;
    OrtStatus* status = api.GetDimensionsCount(info, &rank);
    g.dims.resize(rank);
    if (!status && rank) status = api.GetDimensions(info, g.dims.data(), rank);
    api.ReleaseTensorTypeAndShapeInfo(info);
    require(status);
    require(api.GetTensorData(value, &g.data));
    if (!g.data) g.data = nothing;
    result.push_back(std::move(g));
  }
  return result;
}

// Sizes that are elements of inputs make another program for the same shapes: the session finds it.
std::shared_ptr<part::program> part::program_for(const std::vector<given>& inputs) {
  std::vector<std::vector<std::int64_t>> dims;
  for (const given& g : inputs) dims.push_back(g.dims);
  std::lock_guard lock(mutex_);
  const auto found = std::ranges::find(known_, dims, &known_shapes::dims);
  if (found != known_.end() && !sizes_are_data_) {
    known_.splice(known_.begin(), known_, found);
    return known_.front().made;
  }
  std::vector<kiln_given_input> all;
  for (const given& g : inputs) all.push_back({g.dims.size(), g.dims.data(), g.data});
  kiln_program* made = nullptr;
  check(library().session_program_for(session_.get(), all.data(), all.size(), nullptr, 0, &made));
  auto result = std::make_shared<program>(made);
  if (sizes_are_data_) return result;
  known_.push_front({std::move(dims), result});
  if (known_.size() > most_shapes) known_.pop_back();
  return result;
}

void part::run(OrtKernelContext* context) {
  const std::vector<given> inputs = read_inputs(context);
  const std::shared_ptr<program> p = program_for(inputs);
  kiln_context* with = nullptr;
  {
    std::lock_guard lock(mutex_);
    if (!p->free.empty()) with = p->free.back(), p->free.pop_back();
  }
  if (!with) check(library().context_create_with(p->made.get(), graph_, &with));
  try {
    run(*p, with, inputs, context);
  } catch (...) {
    library().context_destroy(with);
    throw;
  }
  std::lock_guard lock(mutex_);
  p->free.push_back(with);
}

void part::run(program& p, kiln_context* with, const std::vector<given>& inputs, OrtKernelContext* to) {
  std::vector<const void*> from;
  for (const given& g : inputs) from.push_back(g.data);
  const std::size_t count = library().program_output_count(p.made.get());
  // Outputs behind those of the model count what is valid of an output whose size depends on data.
  const bool bounded = count > outputs_.size();
  std::vector<std::vector<std::byte>> whole;
  std::vector<void*> results;
  for (std::size_t o = 0; o < count; ++o) {
    kiln_tensor_info info{};
    check(library().program_output(p.made.get(), o, &info));
    void* data = nullptr;
    if (bounded) {
      data = whole.emplace_back(std::max<std::size_t>(info.bytes, 1)).data();
    } else {
      OrtValue* value = nullptr;
      require(runtime().api->KernelContext_GetOutput(to, outputs_[o], info.dims, info.rank, &value));
      if (info.bytes) require(runtime().api->GetTensorMutableData(value, &data));
    }
    results.push_back(data ? data : nothing);
  }
  check(library().run_from_host(with, from.data(), results.data()));
  if (bounded) give_bounded(p, to, whole);
}

// Copies the valid part of each output.
void part::give_bounded(program& p, OrtKernelContext* to, std::vector<std::vector<std::byte>>& whole) {
  for (std::size_t o = 0; o < outputs_.size(); ++o) {
    kiln_tensor_info info{};
    check(library().program_output(p.made.get(), o, &info));
    std::vector<std::int64_t> dims(info.dims, info.dims + info.rank), valid = dims;
    for (std::size_t axis = 0; axis < info.rank; ++axis) {
      std::size_t counts = SIZE_MAX;
      check(library().program_output_extent(p.made.get(), o, axis, &counts));
      if (counts >= whole.size()) continue;  // always whole
      std::int64_t n = 0;
      std::memcpy(&n, whole.at(counts).data(), sizeof n);
      valid[axis] = std::clamp<std::int64_t>(n, 0, dims[axis]);
    }
    OrtValue* value = nullptr;
    void* data = nullptr;
    require(runtime().api->KernelContext_GetOutput(to, outputs_[o], valid.data(), valid.size(), &value));
    std::int64_t elements = 1, kept = 1;
    for (std::size_t axis = 0; axis < dims.size(); ++axis) elements *= dims[axis], kept *= valid[axis];
    if (kept == 0) continue;
    require(runtime().api->GetTensorMutableData(value, &data));
    const std::size_t bytes = info.bytes / static_cast<std::size_t>(elements);
    auto* next = static_cast<std::byte*>(data);
    std::vector<std::int64_t> at(dims.size());
    for (std::int64_t i = 0; i < kept; ++i) {
      std::int64_t offset = 0;
      for (std::size_t axis = 0; axis < dims.size(); ++axis) offset = offset * dims[axis] + at[axis];
      std::memcpy(next, whole[o].data() + static_cast<std::size_t>(offset) * bytes, bytes);
      next += bytes;
      for (std::size_t axis = dims.size(); axis-- > 0;) {
        if (++at[axis] < valid[axis]) break;
        at[axis] = 0;
      }
    }
  }
}

}  // namespace kiln::ort
