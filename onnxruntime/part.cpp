#include "onnxruntime/part.hpp"

#include <algorithm>
#include <array>
#include <cstring>

namespace kiln::ort {
namespace {

constexpr std::size_t most_shapes = 16;

// ONNX's number for each kiln_type; ONNX Runtime uses the same numbers.
constexpr std::array<int, KILN_U2 + 1> onnx_types{11, 1, 10, 16, 17, 19, 7,  6,  5,  3,  22, 13,
                                                  12, 4, 2,  21, 9,  18, 20, 24, 23, 26, 25};
static_assert(onnx_types[KILN_F64] == ONNX_TENSOR_ELEMENT_DATA_TYPE_DOUBLE);
static_assert(onnx_types[KILN_F32] == ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT);
static_assert(onnx_types[KILN_F8E5M2] == ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT8E5M2);
static_assert(onnx_types[KILN_I64] == ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64);
static_assert(onnx_types[KILN_I4] == ONNX_TENSOR_ELEMENT_DATA_TYPE_INT4);
static_assert(onnx_types[KILN_U8] == ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT8);
static_assert(onnx_types[KILN_BOOL] == ONNX_TENSOR_ELEMENT_DATA_TYPE_BOOL);
static_assert(onnx_types[KILN_F8E5M2FNUZ] == ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT8E5M2FNUZ);

// The place of a port of the file among the node's values.
std::size_t place_of(const std::string& name, kiln_type type, const std::vector<node_value>& among) {
  const auto found = std::ranges::find(among, name, &node_value::name);
  if (found == among.end()) throw std::runtime_error("kiln: the fused node lacks '" + name + "'");
  if (found->element != onnx_types.at(type))
    throw std::runtime_error("kiln: the node's '" + name + "' has other elements than the compiled part's");
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

using owned_description = std::unique_ptr<kiln_description, void (*)(kiln_description*)>;
owned_description described(const std::string& file) {
  kiln_description* description = nullptr;
  check(library().description_open(file.c_str(), &description));
  return {description, library().description_close};
}

// Memory for an empty tensor, which has none of its own.
alignas(64) std::byte nothing[64];

}  // namespace

part::program::~program() {
  for (kiln_context* c : free) library().context_destroy(c);
}

part::part(const compiled_part& what, const provider_options& options, std::shared_ptr<gpu> on,
           const std::vector<node_value>& node_inputs, const std::vector<node_value>& node_outputs)
    : graph_(options.graph),
      stream_(options.stream),
      gpu_(std::move(on)),
      on_host_(options.device == "host"),
      session_(opened(what.file, options), library().session_close) {
  const owned_description description = described(what.file);
  kiln_port port{};
  for (std::size_t i = 0; i < what.inputs.size(); ++i) {
    check(library().description_input(description.get(), i, &port));
    inputs_.push_back(place_of(what.inputs[i], port.type, node_inputs));
    sizes_.push_back(port.decides_sizes != 0);
  }
  for (std::size_t i = 0; i < what.outputs.size(); ++i) {
    check(library().description_output(description.get(), i, &port));
    outputs_.push_back(place_of(what.outputs[i], port.type, node_outputs));
  }
  sizes_are_data_ = std::ranges::find(sizes_, true) != sizes_.end();
  if (stream_ && sizes_are_data_)
    throw failure(ORT_INVALID_ARGUMENT,
                  "kiln: sizes of this model are elements of an input, which are read before a "
                  "run starts; leave the option 'stream' out");
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
    if (gpu_ && sizes_.at(result.size())) {
      std::size_t bytes = 0;
      require(api.GetTensorSizeInBytes(value, &bytes));
      g.sizes.resize(bytes);
      gpu_->download(g.sizes.data(), g.data, bytes);
    }
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
  for (const given& g : inputs)
    all.push_back({g.dims.size(), g.dims.data(), g.sizes.empty() ? g.data : g.sizes.data()});
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

// ONNX Runtime goes on with a null pointer if its allocator has no memory.
void* part::memory_of(OrtValue* value) const {
  void* data = nullptr;
  require(runtime().api->GetTensorMutableData(value, &data));
  if (!data) throw failure(ORT_FAIL, "kiln: the memory of " + (gpu_ ? gpu_->name() : "the host") + " is used up");
  return data;
}

void part::start(kiln_context* with, const std::vector<const void*>& from, const std::vector<void*>& results) {
  if (stream_ && gpu_) return check(library().run_on_stream(with, from.data(), results.data(), *stream_));
  // Tensors are used where they are, unless kernels cannot do that on the host: a program has bound one that is not
  // aligned to its elements, or a result that overlaps an input. Nothing has run then.
  kiln_status status = KILN_USAGE;
  if (gpu_ || on_host_) status = library().run(with, from.data(), results.data());
  if (status == KILN_USAGE && !gpu_) status = library().run_from_host(with, from.data(), results.data());
  check(status);
}

void part::run(program& p, kiln_context* with, const std::vector<given>& inputs, OrtKernelContext* to) {
  std::vector<const void*> from;
  for (const given& g : inputs) from.push_back(g.data);
  const std::size_t count = library().program_output_count(p.made.get());
  // Outputs behind those of the model count what is valid of an output whose size depends on data.
  if (count > outputs_.size()) return run_bounded(p, with, from, to);
  std::vector<void*> results;
  for (std::size_t o = 0; o < count; ++o) {
    kiln_tensor_info info{};
    check(library().program_output(p.made.get(), o, &info));
    OrtValue* value = nullptr;
    void* data = nullptr;
    require(runtime().api->KernelContext_GetOutput(to, outputs_[o], info.dims, info.rank, &value));
    if (info.bytes) data = memory_of(value);
    results.push_back(data ? data : nothing);
  }
  start(with, from, results);
}

void part::run_bounded(program& p, kiln_context* with, const std::vector<const void*>& from, OrtKernelContext* to) {
  if (stream_)
    throw failure(ORT_INVALID_ARGUMENT,
                  "kiln: sizes of outputs depend on data, for which a run has to be waited for; "
                  "leave the option 'stream' out");
  std::vector<std::vector<std::byte>> whole;
  std::vector<std::shared_ptr<void>> on_gpu;
  std::vector<void*> results;
  for (std::size_t o = 0, count = library().program_output_count(p.made.get()); o < count; ++o) {
    kiln_tensor_info info{};
    check(library().program_output(p.made.get(), o, &info));
    results.push_back(whole.emplace_back(std::max<std::size_t>(info.bytes, 1)).data());
    if (gpu_)
      results.back() =
          on_gpu.emplace_back(gpu_->allocate(whole.back().size()), [this](void* m) { gpu_->free(m); }).get();
  }
  start(with, from, results);
  for (std::size_t o = 0; o < on_gpu.size(); ++o) gpu_->download(whole[o].data(), on_gpu[o].get(), whole[o].size());
  give_bounded(p, to, whole);
}

// Copies the valid part of each output.
void part::give_bounded(program& p, OrtKernelContext* to, const std::vector<std::vector<std::byte>>& whole) {
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
    require(runtime().api->KernelContext_GetOutput(to, outputs_[o], valid.data(), valid.size(), &value));
    std::int64_t elements = 1, kept = 1;
    for (std::size_t axis = 0; axis < dims.size(); ++axis) elements *= dims[axis], kept *= valid[axis];
    if (kept == 0) continue;
    void* const data = memory_of(value);
    const std::size_t bytes = info.bytes / static_cast<std::size_t>(elements);
    std::vector<std::byte> packed(gpu_ ? bytes * static_cast<std::size_t>(kept) : 0);
    auto* next = gpu_ ? packed.data() : static_cast<std::byte*>(data);
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
    if (gpu_) gpu_->upload(data, packed.data(), packed.size());
  }
}

}  // namespace kiln::ort
