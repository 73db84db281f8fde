#include "python/extension/output_arrays.hpp"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "python/extension/element_types.hpp"
#include "python/extension/status.hpp"

namespace nb = nanobind;

namespace kiln::python {

output_arrays::output_arrays(const sized_program& program, const std::vector<described_tensor>& declared,
                             nb::handle arrays, nb::sequence inputs, nb::handle given, bool on_device)
    : program_(program), declared_(declared), arrays_(arrays) {
  const std::size_t count = program.outputs.size();
  if (!given.is_none() && nb::len(given) != count)
    raise(KILN_USAGE,
          "outputs: the model has " + std::to_string(count) + ", and " + std::to_string(nb::len(given)) + " are given");
  const nb::object maker = arrays.attr("maker_for")(inputs, on_device);
  if (!maker.is_none()) {
    empty_ = maker.attr("empty");
    if (nb::object stream = maker.attr("stream"); !stream.is_none())
      stream_ = reinterpret_cast<void*>(nb::cast<std::uintptr_t>(stream));
  }
  made_.reserve(count);
  views_.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    nb::object array = given.is_none() ? nb::none() : nb::object(given[i]);
    ours_.push_back(array.is_none());
    if (array.is_none()) allocate(i);
    else take(i, std::move(array), on_device);
    pointers_.push_back(views_.back().data);
  }
}

void output_arrays::allocate(std::size_t index) {
  const program_output& output = program_.outputs[index];
  const element_type_row& row = row_of(output.type);
  if (empty_.is_valid()) made_.push_back(empty_(output.shape, row.array));
  else if (row.dlpack.bits < 8) made_.push_back(arrays_.attr("empty_bytes")(output.bytes));
  else made_.push_back(arrays_.attr("empty")(output.shape, arrays_.attr("storage")[row.array]));
  auto seen = view(made_.back());
  if (!seen) raise(KILN_INTERNAL, "output '" + declared_[index].name + "': the new array cannot be written");
  views_.push_back(std::move(*seen));
}

void output_arrays::take(std::size_t index, nb::object array, bool on_device) {
  const program_output& output = program_.outputs[index];
  const element_type_row& row = row_of(output.type);
  const std::string name = "output '" + declared_[index].name + "': ";
  if (!output.counted.empty() || row.dlpack.bits < 8)
    raise(KILN_UNSUPPORTED, name + (output.counted.empty() ? "it is packed" : "its size depends on data") +
                                "; pass None, and use the array that run() returns");
  auto seen = view(array);
  if (!seen || !seen->dense || !seen->writable)
    raise(KILN_USAGE, name + "it is no array that can be written, row-major and without gaps");
  if (seen->dims != output.dims || !fits(row, seen->dtype))
    raise(KILN_USAGE, name + "the array does not have the shape and type of the output: " + row.array +
                          nb::cast<std::string>(nb::str(output.shape)));
  if (seen->on_device != on_device) raise(KILN_USAGE, name + "it must be where the inputs are");
  made_.push_back(std::move(array));
  views_.push_back(std::move(*seen));
}

nb::list output_arrays::finish() {
  views_.clear();  // an array with a view of it cannot be resized
  nb::list result;
  for (std::size_t i = 0; i < made_.size(); ++i) {
    const program_output& output = program_.outputs[i];
    const element_type_row& row = row_of(output.type);
    if (output.is_count) {
      result.append(nb::none());
      continue;
    }
    nb::object array = made_[i];
    if (ours_[i] && !empty_.is_valid() && (row.as_bits || row.dlpack.bits < 8))
      array = arrays_.attr("as_output")(array, row.array, output.shape);
    for (const counted_axis& c : output.counted) array = arrays_.attr("trim")(array, c.axis, made_[c.count]);
    result.append(array);
  }
  return result;
}

}  // namespace kiln::python
