// A session of the C interface for Python: takes arrays, finds or makes the program for their sizes, and runs it
// without the interpreter's lock. Several threads may run one session.
#pragma once

#include <nanobind/nanobind.h>

#include <memory>
#include <string>
#include <vector>

#include "python/extension/bound_program.hpp"
#include "python/extension/callbacks.hpp"
#include "python/extension/description.hpp"
#include "python/extension/program_pool.hpp"
#include "python/extension/tensor_view.hpp"

namespace kiln::python {

// kiln_open_options with owners.
struct session_choice {
  std::string path, device = "host";
  unsigned threads = 0;
  std::vector<std::pair<std::string, std::int64_t>> dims;  // those that no input decides
  int tuning = KILN_TUNING_OFF;
  double tuning_seconds = 0;
  int specialization = KILN_SPECIALIZE_LAZY;
  std::string cache_folder, trusted_keys;
  bool no_cache = false, only_cached = false, allow_unsigned = false;
  std::size_t most_programs = 8;

  // The options that sessions and decoders share. They refer to the texts of this object.
  kiln_open_options common_options() const;
};

class session {
 public:
  session(session_choice choice, nanobind::object progress, nanobind::object warn);
  ~session();
  session(const session&) = delete;

  const description& describes() const { return described_; }
  const std::string& device() const { return choice_.device; }
  bool closed() const { return handle_ == nullptr; }
  void close();

  // `inputs` are in the order of the model. `outputs` are None or arrays to fill, in the order of the model, where None
  // means a new array. `stream` is None or the address of a stream of the GPU. Returns a list; the entry of an output
  // that only counts elements of another one is None.
  nanobind::list run(nanobind::sequence inputs, nanobind::object outputs, nanobind::object stream);
  // The program for inputs of these sizes, a sequence for each. Null if its tensors are not used where they are: a type
  // is packed, sizes depend on data or are elements of an input, or the host's tensors would go to a GPU.
  std::unique_ptr<bound_program> bind(nanobind::sequence sizes, bool on_device);
  // Numbers about the program of the last run, as a dict; None before the first.
  nanobind::object last_program() const;

  callbacks& functions() { return callbacks_; }

 private:
  std::shared_ptr<sized_program> program_for(const std::vector<tensor_view>& inputs);
  std::vector<tensor_view> views_of(nanobind::sequence inputs) const;
  tensor_view view_of(nanobind::object given, const described_tensor& declared) const;

  session_choice choice_;
  description described_;
  callbacks callbacks_;
  std::shared_ptr<kiln_session> handle_;  // a call holds it, so that close() can come at any time
  nanobind::object arrays_;               // the module kiln.arrays
  program_pool pool_;
  std::shared_ptr<sized_program> last_;
};

}  // namespace kiln::python
