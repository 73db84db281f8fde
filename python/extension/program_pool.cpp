#include "python/extension/program_pool.hpp"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>

#include "python/extension/status.hpp"

namespace nb = nanobind;

namespace kiln::python {
namespace {

program_output output_of(const kiln_program* program, std::size_t index) {
  kiln_tensor_info info;
  check(kiln_program_output(program, index, &info));
  program_output result{
      .type = info.type, .dims = {info.dims, info.dims + info.rank}, .bytes = info.bytes, .counted = {}, .shape = {}};
  nb::list shape;
  for (std::size_t axis = 0; axis < info.rank; ++axis) {
    shape.append(info.dims[axis]);
    std::size_t count = 0;
    check(kiln_program_output_extent(program, index, axis, &count));
    if (count < kiln_program_output_count(program)) result.counted.push_back({axis, count});
  }
  result.shape = nb::tuple(shape);
  return result;
}

}  // namespace

sized_program::sized_program(program_handle of) : program(std::move(of)) {
  kiln_tensor_info info;
  for (std::size_t i = 0; i < kiln_program_input_count(program.get()); ++i) {
    check(kiln_program_input(program.get(), i, &info));
    input_bytes.push_back(info.bytes);
  }
  for (std::size_t i = 0; i < kiln_program_output_count(program.get()); ++i)
    outputs.push_back(output_of(program.get(), i));
  for (std::size_t i = 0; i < outputs.size(); ++i)
    for (const counted_axis& c : outputs[i].counted) outputs[c.count].is_count = true;
}

sized_program::~sized_program() {
  nb::gil_scoped_release unlocked;
  free_contexts.clear();
  program.reset();
}

leased_context::leased_context(std::shared_ptr<sized_program> from) : from_(std::move(from)) {
  if (!from_->free_contexts.empty()) {
    context_ = std::move(from_->free_contexts.back());
    from_->free_contexts.pop_back();
    return;
  }
  kiln_context* made = nullptr;
  const outcome making = [&] {
    nb::gil_scoped_release unlocked;
    return outcome(kiln_context_create(from_->program.get(), &made));
  }();
  check(making);
  context_.reset(made);
}

leased_context::~leased_context() {
  if (context_) from_->free_contexts.push_back(std::move(context_));
}

std::shared_ptr<sized_program> program_pool::find(const size_key& key) {
  const auto found =
      std::ranges::find(programs_, key, [](const auto& entry) -> const size_key& { return entry.first; });
  if (found == programs_.end()) return nullptr;
  programs_.splice(programs_.begin(), programs_, found);
  return programs_.front().second;
}

void program_pool::insert(size_key key, std::shared_ptr<sized_program> program) {
  programs_.emplace_front(std::move(key), std::move(program));
  // The list is consistent before anything is closed: closing releases the lock, and another thread may use the list.
  entries dropped;
  if (programs_.size() > most_) dropped.splice(dropped.begin(), programs_, std::prev(programs_.end()));
}

void program_pool::clear() {
  entries dropped;
  dropped.swap(programs_);
}

}  // namespace kiln::python
