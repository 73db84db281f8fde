#include "python/extension/bound_program.hpp"

#include <string>
#include <vector>

#include "python/extension/element_types.hpp"
#include "python/extension/status.hpp"

namespace nb = nanobind;

namespace kiln::python {
namespace {

std::vector<void*> addresses(nb::list given, std::size_t count, const char* what) {
  if (given.size() != count)
    raise(KILN_USAGE, std::string(what) + ": the model has " + std::to_string(count) + ", and " +
                          std::to_string(given.size()) + " are given");
  std::vector<void*> result;
  result.reserve(count);
  for (nb::handle address : given) result.push_back(reinterpret_cast<void*>(nb::cast<std::uintptr_t>(address)));
  return result;
}

}  // namespace

nb::list bound_program::outputs() const {
  nb::list result;
  for (const program_output& o : program_->outputs) result.append(nb::make_tuple(o.shape, row_of(o.type).array));
  return result;
}

void bound_program::run(nb::list inputs, nb::list outputs, nb::object stream) {
  std::shared_ptr<kiln_session> open = session_.lock();
  if (!open) raise(KILN_USAGE, "session: it is closed");
  const std::vector<void*> from = addresses(inputs, program_->input_bytes.size(), "inputs");
  const std::vector<void*> to = addresses(outputs, program_->outputs.size(), "outputs");
  void* const on = stream.is_none() ? nullptr : reinterpret_cast<void*>(nb::cast<std::uintptr_t>(stream));
  leased_context context(program_);
  const bool waits = stream.is_none();
  const outcome running = [&] {
    nb::gil_scoped_release unlocked;
    const outcome result(waits ? kiln_run(context.get(), from.data(), to.data())
                               : kiln_run_on_stream(context.get(), from.data(), to.data(), on));
    open.reset();  // without the lock, if it is the last owner
    return result;
  }();
  functions_.rethrow();
  check(running);
}

}  // namespace kiln::python
