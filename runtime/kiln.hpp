// The C interface of Kiln for C++20: owners of its handles, exceptions for its codes, spans and vectors for its
// pointers. Header only: a program links libkiln_runtime.so and nothing else, and needs no other header than kiln.h,
// which says what every call does.
//
// Errors: api::error has the code and the message. Ownership: objects move and do not copy; a context may outlive its
// program, a program its session. Threads: as kiln.h says: programs, sessions and descriptions may be shared, a context
// runs one call at a time.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kiln.h"

namespace kiln::api {

class error : public std::runtime_error {
 public:
  explicit error(kiln_status status) : std::runtime_error(kiln_last_error()), status_(status) {}
  error(kiln_status status, const char* message) : std::runtime_error(message), status_(status) {}
  kiln_status status() const noexcept { return status_; }
  const char* status_name() const noexcept { return kiln_status_name(status_); }

 private:
  kiln_status status_;
};

inline void check(kiln_status status) {
  if (status != KILN_OK) throw error(status);
}

// Bits of an element. Types of less than 8 bits are packed.
constexpr unsigned bits_of(kiln_type type) {
  switch (type) {
    case KILN_F64:
    case KILN_I64:
    case KILN_U64: return 64;
    case KILN_F32:
    case KILN_I32:
    case KILN_U32: return 32;
    case KILN_F16:
    case KILN_BF16:
    case KILN_I16:
    case KILN_U16: return 16;
    case KILN_I4:
    case KILN_U4:
    case KILN_F4E2M1: return 4;
    case KILN_I2:
    case KILN_U2: return 2;
    default: return 8;
  }
}

// Returns true if elements of this kiln_type are read as T. Types that C++ lacks, such as f16, are read as unsigned
// integers of the same size.
template <class T>
constexpr bool holds(kiln_type type) {
  switch (type) {
    case KILN_F64: return std::is_same_v<T, double>;
    case KILN_F32: return std::is_same_v<T, float>;
    case KILN_I64: return std::is_same_v<T, std::int64_t>;
    case KILN_I32: return std::is_same_v<T, std::int32_t>;
    case KILN_I16: return std::is_same_v<T, std::int16_t>;
    case KILN_I8: return std::is_same_v<T, std::int8_t>;
    case KILN_U64: return std::is_same_v<T, std::uint64_t>;
    case KILN_U32: return std::is_same_v<T, std::uint32_t>;
    case KILN_U16: return std::is_same_v<T, std::uint16_t>;
    case KILN_BOOL: return std::is_same_v<T, bool> || std::is_same_v<T, std::uint8_t>;
    case KILN_F16:
    case KILN_BF16: return std::is_same_v<T, std::uint16_t>;
    default: return std::is_same_v<T, std::uint8_t>;
  }
}

struct tensor_info {
  std::string name;
  kiln_type type = KILN_F32;
  std::vector<std::int64_t> dims;
  std::size_t bytes = 0;
};

// A dense, row-major tensor in host memory that owns its bytes.
class tensor {
 public:
  tensor() = default;
  tensor(kiln_type type, std::vector<std::int64_t> dims) : type_(type), dims_(std::move(dims)) {
    std::size_t count = 1;
    for (std::int64_t d : dims_) count *= static_cast<std::size_t>(d);
    bytes_.resize((count * bits_of(type_) + 7) / 8);
  }
  explicit tensor(const tensor_info& info) : type_(info.type), dims_(info.dims), bytes_(info.bytes) {}

  kiln_type type() const { return type_; }
  const std::vector<std::int64_t>& dims() const { return dims_; }
  std::size_t bytes() const { return bytes_.size(); }
  void* data() { return bytes_.data(); }
  const void* data() const { return bytes_.data(); }
  // The elements. Throws error{KILN_USAGE} if the tensor's type is another.
  template <class T>
  std::span<T> as() {
    require<T>();
    return {reinterpret_cast<T*>(bytes_.data()), bytes_.size() / sizeof(T)};
  }
  template <class T>
  std::span<const T> as() const {
    require<T>();
    return {reinterpret_cast<const T*>(bytes_.data()), bytes_.size() / sizeof(T)};
  }

 private:
  template <class T>
  void require() const {
    if (!holds<T>(type_)) throw error(KILN_USAGE, "as<T>: the tensor has another type; see type()");
  }
  kiln_type type_ = KILN_F32;
  std::vector<std::int64_t> dims_;
  std::vector<std::byte> bytes_;
};

using dims = std::vector<std::pair<std::string, std::int64_t>>;

// As kiln_open_options; what is not set has the defaults of kiln.h.
struct open_options {
  std::string device = "host";
  unsigned threads = 0;
  std::string trusted_keys;
  bool allow_unsigned = false;
  api::dims dims;  // of a program
  std::string cache_folder;
  bool no_cache = false, only_cached = false;
  std::string compile_worker;
  std::size_t most_programs = 0;
  std::function<void(std::size_t done, std::size_t total)> progress;  // must not throw
  std::function<void(std::string_view)> warn;                         // from any thread; must not throw
  kiln_tuning tuning = KILN_TUNING_OFF;
  double tuning_seconds = 0;
  kiln_specialization specialization = KILN_SPECIALIZE_LAZY;
  // The caller's memory, as kiln_open_options has it: both or neither; from any thread; must not throw.
  std::function<void*(std::size_t bytes, std::size_t alignment)> allocate;
  std::function<void(void* memory, std::size_t bytes)> release;
};

namespace details {

template <class Handle, void (*Close)(Handle*)>
struct closer {
  void operator()(Handle* handle) const { Close(handle); }
};
template <class Handle, void (*Close)(Handle*)>
using owner = std::unique_ptr<Handle, closer<Handle, Close>>;

inline std::vector<kiln_dim> c_dims(const api::dims& given) {
  std::vector<kiln_dim> result;
  for (const auto& [name, value] : given) result.push_back({name.c_str(), value});
  return result;
}

// The options in C's form. Callbacks may be called as long as what they opened lives, which therefore shares them.
class c_options {
 public:
  explicit c_options(open_options given)
      : options_(std::make_shared<const open_options>(std::move(given))), dims_(c_dims(options_->dims)) {
    const auto text = [](const std::string& s) { return s.empty() ? nullptr : s.c_str(); };
    c_.size = sizeof c_;
    c_.device = text(options_->device);
    c_.threads = options_->threads;
    c_.trusted_keys = text(options_->trusted_keys);
    c_.allow_unsigned = options_->allow_unsigned;
    c_.dims = dims_.data();
    c_.dim_count = dims_.size();
    c_.cache_folder = text(options_->cache_folder);
    c_.no_cache = options_->no_cache;
    c_.only_cached = options_->only_cached;
    c_.compile_worker = text(options_->compile_worker);
    c_.most_programs = options_->most_programs;
    c_.data = const_cast<open_options*>(options_.get());
    if (options_->progress)
      c_.progress = [](void* data, std::size_t done, std::size_t total) {
        static_cast<const open_options*>(data)->progress(done, total);
      };
    if (options_->warn)
      c_.warn = [](void* data, const char* line) { static_cast<const open_options*>(data)->warn(line); };
    if (options_->allocate)
      c_.allocate = [](void* data, std::size_t bytes, std::size_t alignment) {
        return static_cast<const open_options*>(data)->allocate(bytes, alignment);
      };
    if (options_->release)
      c_.release = [](void* data, void* memory, std::size_t bytes) {
        static_cast<const open_options*>(data)->release(memory, bytes);
      };
    c_.tuning = options_->tuning;
    c_.tuning_seconds = options_->tuning_seconds;
    c_.specialization = options_->specialization;
  }
  const kiln_open_options* get() const { return &c_; }
  const std::shared_ptr<const open_options>& kept() const { return options_; }

 private:
  std::shared_ptr<const open_options> options_;
  std::vector<kiln_dim> dims_;
  kiln_open_options c_{};
};

inline tensor_info info_of(const kiln_tensor_info& c) { return {c.name, c.type, {c.dims, c.dims + c.rank}, c.bytes}; }

}  // namespace details

// The memory of one run.
class context {
 public:
  explicit context(kiln_context* owned) : handle_(owned) {}
  kiln_context* get() const { return handle_.get(); }

  // In the device's memory, or host memory for a program on the host: one pointer for each tensor.
  void run(std::span<const void* const> inputs, std::span<void* const> outputs) {
    check(kiln_run(get(), inputs.data(), outputs.data()));
  }
  void run_from_host(std::span<const void* const> inputs, std::span<void* const> outputs) {
    check(kiln_run_from_host(get(), inputs.data(), outputs.data()));
  }
  // Enqueues on a hipStream_t or CUstream and does not wait.
  void run_on_stream(std::span<const void* const> inputs, std::span<void* const> outputs, void* stream) {
    check(kiln_run_on_stream(get(), inputs.data(), outputs.data(), stream));
  }
  kiln_graph_memory graph_memory() const {
    kiln_graph_memory memory;
    check(kiln_context_get_graph_memory(get(), &memory));
    return memory;
  }
  kiln_graph_info graph_info() const {
    kiln_graph_info info;
    check(kiln_context_get_graph_info(get(), &info));
    return info;
  }

 private:
  details::owner<kiln_context, kiln_context_destroy> handle_;
};

// Loaded kernels, constants and a launch plan for fixed sizes.
class program {
 public:
  explicit program(const std::string& path, open_options options = {}) {
    const details::c_options c(std::move(options));
    kiln_program* opened = nullptr;
    check(kiln_program_open_with(path.c_str(), c.get(), &opened));
    kept_ = c.kept();
    handle_.reset(opened);
  }
  program(kiln_program* owned, std::shared_ptr<const open_options> kept) : kept_(std::move(kept)), handle_(owned) {}
  kiln_program* get() const { return handle_.get(); }

  std::vector<tensor_info> inputs() const { return list(kiln_program_input_count(get()), kiln_program_input); }
  std::vector<tensor_info> outputs() const { return list(kiln_program_output_count(get()), kiln_program_output); }
  kiln_program_info info() const {
    kiln_program_info info;
    check(kiln_program_get_info(get(), &info));
    return info;
  }
  kiln_tuning_info tuning_info() const {
    kiln_tuning_info info;
    check(kiln_program_get_tuning_info(get(), &info));
    return info;
  }
  context make_context(kiln_graph_policy graph = KILN_GRAPH_AUTO) const {
    kiln_context* made = nullptr;
    check(kiln_context_create_with(get(), graph, &made));
    return context(made);
  }

  // One run with a context of its own: the simple way, which allocates. Outputs whose size depends on data are as long
  // as this run made them. Throws error{KILN_INVALID_SHAPE} for an input of another type or shape.
  std::vector<tensor> operator()(std::span<const tensor> given) const {
    const std::vector<tensor_info> wanted = inputs(), made = outputs();
    if (given.size() != wanted.size()) throw error(KILN_USAGE, "inputs: their number is not that of program::inputs()");
    std::vector<const void*> in;
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      if (given[i].type() != wanted[i].type || given[i].dims() != wanted[i].dims)
        throw error(KILN_INVALID_SHAPE,
                    ("input '" + wanted[i].name + "' has another type or shape than inputs() says").c_str());
      in.push_back(given[i].data());
    }
    std::vector<tensor> results;
    std::vector<void*> out;
    for (const tensor_info& info : made) results.emplace_back(info);
    for (tensor& t : results) out.push_back(t.data());
    make_context().run_from_host(in, out);
    for (std::size_t i = 0; i < results.size(); ++i) shorten(results, i);
    return results;
  }

 private:
  template <class Query>
  std::vector<tensor_info> list(std::size_t count, Query query) const {
    std::vector<tensor_info> result;
    for (std::size_t i = 0; i < count; ++i) {
      kiln_tensor_info c;
      check(query(get(), i, &c));
      result.push_back(details::info_of(c));
    }
    return result;
  }
  // Leaves the elements along each axis that the run has filled. Rows are contiguous, so each is moved to the front.
  void shorten(std::vector<tensor>& results, std::size_t index) const {
    tensor& t = results[index];
    for (std::size_t axis = 0; axis < t.dims().size(); ++axis) {
      std::size_t count = 0;
      check(kiln_program_output_extent(get(), index, axis, &count));
      if (count >= results.size()) continue;
      const auto filled = results[count].as<std::int64_t>()[0];
      if (filled >= t.dims()[axis] || bits_of(t.type()) < 8) continue;
      std::vector<std::int64_t> shape = t.dims();
      std::size_t outer = 1, inner = bits_of(t.type()) / 8;
      for (std::size_t d = 0; d < axis; ++d) outer *= static_cast<std::size_t>(shape[d]);
      for (std::size_t d = axis + 1; d < shape.size(); ++d) inner *= static_cast<std::size_t>(shape[d]);
      const std::size_t from = inner * static_cast<std::size_t>(shape[axis]),
                        to = inner * static_cast<std::size_t>(filled);
      shape[axis] = filled;
      tensor shorter(t.type(), shape);
      for (std::size_t o = 0; o < outer; ++o)
        std::copy_n(static_cast<const std::byte*>(t.data()) + o * from, to,
                    static_cast<std::byte*>(shorter.data()) + o * to);
      t = std::move(shorter);
    }
  }
  std::shared_ptr<const open_options> kept_;  // outlives the handle, whose threads may call it
  details::owner<kiln_program, kiln_program_close> handle_;
};

struct dim_range {
  std::string name;
  std::int64_t min, max;
};

// An open file that gives programs for any sizes.
class session {
 public:
  explicit session(const std::string& path, open_options options = {}) {
    const details::c_options c(std::move(options));
    kiln_session* opened = nullptr;
    check(kiln_session_open(path.c_str(), c.get(), &opened));
    kept_ = c.kept();
    handle_.reset(opened);
  }
  kiln_session* get() const { return handle_.get(); }

  std::vector<dim_range> open_dims() const {
    std::vector<dim_range> result;
    for (std::size_t i = 0; i < kiln_session_dim_count(get()); ++i) {
      kiln_dim_info c;
      check(kiln_session_dim(get(), i, &c));
      result.push_back({c.name, c.min, c.max});
    }
    return result;
  }
  program at(const dims& values) {
    const std::vector<kiln_dim> c = details::c_dims(values);
    kiln_program* made = nullptr;
    check(kiln_session_program(get(), c.data(), c.size(), &made));
    return {made, kept_};
  }
  // For the sizes that these inputs decide, in the order of the model; `values` are those that no input decides.
  program for_inputs(std::span<const tensor> inputs, const dims& values = {}) {
    std::vector<kiln_given_input> given;
    for (const tensor& t : inputs) given.push_back({t.dims().size(), t.dims().data(), t.data()});
    const std::vector<kiln_dim> c = details::c_dims(values);
    kiln_program* made = nullptr;
    check(kiln_session_program_for(get(), given.data(), given.size(), c.data(), c.size(), &made));
    return {made, kept_};
  }
  std::vector<tensor> operator()(std::span<const tensor> inputs) { return for_inputs(inputs)(inputs); }

 private:
  std::shared_ptr<const open_options> kept_;
  details::owner<kiln_session, kiln_session_close> handle_;
};

struct port {
  std::string name;
  kiln_type type;
  std::vector<std::string> dims;
  bool decides_sizes;
};

// Device memory and copies, for programs that have neither HIP nor CUDA. Memory belongs to its device and must not
// outlive it.
class device {
 public:
  explicit device(const std::string& name) {
    kiln_device* opened = nullptr;
    check(kiln_device_open(name.c_str(), &opened));
    handle_.reset(opened);
  }
  kiln_device* get() const { return handle_.get(); }

  struct freed {
    kiln_device* owner;
    void operator()(void* data) const { kiln_device_free(owner, data); }
  };
  using memory = std::unique_ptr<void, freed>;
  memory allocate(std::size_t bytes) {
    void* made = nullptr;
    check(kiln_device_allocate(get(), bytes, &made));
    return {made, freed{get()}};
  }
  // Complete on return.
  void upload(void* to, const void* from, std::size_t bytes) { check(kiln_device_upload(get(), to, from, bytes)); }
  void download(void* to, const void* from, std::size_t bytes) { check(kiln_device_download(get(), to, from, bytes)); }
  void copy(void* to, const void* from, std::size_t bytes) { check(kiln_device_copy(get(), to, from, bytes)); }

 private:
  details::owner<kiln_device, kiln_device_close> handle_;
};

// What a file says about itself, without a device.
class description {
 public:
  explicit description(const std::string& path) {
    kiln_description* opened = nullptr;
    check(kiln_description_open(path.c_str(), &opened));
    handle_.reset(opened);
  }
  kiln_description* get() const { return handle_.get(); }
  std::vector<port> inputs() const { return list(kiln_description_input_count(get()), kiln_description_input); }
  std::vector<port> outputs() const { return list(kiln_description_output_count(get()), kiln_description_output); }
  std::vector<dim_range> open_dims() const {
    std::vector<dim_range> result;
    for (std::size_t i = 0; i < kiln_description_dim_count(get()); ++i) {
      kiln_dim_info c;
      check(kiln_description_dim(get(), i, &c));
      result.push_back({c.name, c.min, c.max});
    }
    return result;
  }
  // False for a file without weights, which cannot be opened to run.
  bool has_weights() const { return kiln_description_has_weights(get()) != 0; }

 private:
  template <class Query>
  std::vector<port> list(std::size_t count, Query query) const {
    std::vector<port> result;
    for (std::size_t i = 0; i < count; ++i) {
      kiln_port c;
      check(query(get(), i, &c));
      result.push_back({c.name, c.type, {c.dims, c.dims + c.rank}, c.decides_sizes != 0});
    }
    return result;
  }
  details::owner<kiln_description, kiln_description_close> handle_;
};

}  // namespace kiln::api
