// The programs of a session by the sizes of inputs, each with the contexts that no call uses at the moment. Several
// threads that run one session at once get contexts of their own.
//
// The interpreter's lock guards the pool. Handles are closed without it, because closing may wait for threads that
// report to Python.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <vector>

#include "python/extension/handles.hpp"

namespace kiln::python {

// The number of valid elements along an axis of an output is the only element of output number `count`.
struct counted_axis {
  std::size_t axis = 0, count = 0;
};

struct program_output {
  kiln_type type = KILN_F32;
  std::vector<std::int64_t> dims;  // the largest, if the size depends on data
  std::size_t bytes = 0;
  std::vector<counted_axis> counted;
  bool is_count = false;   // of another output
  nanobind::object shape;  // `dims` as a tuple
};

struct sized_program {
  explicit sized_program(program_handle of);
  ~sized_program();
  sized_program(const sized_program&) = delete;
  program_handle program;
  std::vector<std::size_t> input_bytes;
  std::vector<program_output> outputs;
  std::vector<context_handle> free_contexts;
};

// A context for one run, given back with this object.
class leased_context {
 public:
  explicit leased_context(std::shared_ptr<sized_program> from);
  leased_context(const leased_context&) = delete;
  ~leased_context();
  kiln_context* get() const { return context_.get(); }

 private:
  std::shared_ptr<sized_program> from_;
  context_handle context_;
};

// Sizes of all inputs, and the elements of those that decide sizes.
using size_key = std::vector<std::int64_t>;

class program_pool {
 public:
  explicit program_pool(std::size_t most) : most_(most) {}
  // Null if there is none; it then is the least likely to be dropped.
  std::shared_ptr<sized_program> find(const size_key& key);
  // Drops the least recently used program if there are too many.
  void insert(size_key key, std::shared_ptr<sized_program> program);
  void clear();

 private:
  using entries = std::list<std::pair<size_key, std::shared_ptr<sized_program>>>;
  std::size_t most_;
  entries programs_;  // the most recently used first
};

}  // namespace kiln::python
