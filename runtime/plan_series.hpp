// One plan for many sets of sizes. Its memory is laid out once, for the largest of them; going on to other sizes
// changes the numbers in it (tables of sizes, grids, sizes of tensors) and nothing else, so a context keeps its arena,
// its pointers and its graphs. A step of a decoder differs from the one before by one number, and this makes it cheap.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "runtime/plan.hpp"
#include "runtime/size_table.hpp"

namespace kiln {

struct template_parts;

// The template that made it must outlive it. One thread at a time. Runs of a GPU that are enqueued keep the sizes that
// they were enqueued with.
// Whether no tensor and no scratch memory is larger than in `room`. Both are values of parts.sizes.
bool within_room(const template_parts& parts, const std::vector<std::int64_t>& values,
                 const std::vector<std::int64_t>& room);

class plan_series {
 public:
  // `made` was filled in from `parts` with the values `sizes`; `room` are the values that its memory is for. None of
  // `sizes` that is a number of bytes may be larger than the one in `room`.
  plan_series(template_parts& parts, plan made, std::vector<std::int64_t> sizes, std::vector<std::int64_t> room);

  // The same object for all sizes. plan_step::revision counts the changes of a step.
  const std::shared_ptr<const kiln::plan>& plan() const { return shared_; }

  bool is_of(const template_parts& parts) const { return &parts_ == &parts; }
  // Returns false, and changes nothing, if these sizes need a plan of their own: they exceed the room, are not valid
  // for the program, or launch other kernels.
  bool move_to(const dim_bindings& sizes);

 private:
  // A step that depends on sizes.
  struct moving_step {
    std::uint32_t block = 0, step = 0;
    size_table::index grid = size_table::none;
    std::uint32_t table = size_table::none;  // index of template_parts::tables
    buffer_id copied = 0;                    // of a copy: the buffer whose size it has
    bool copies = false;
  };
  void find_moving_steps();
  bool fits(const std::vector<std::int64_t>& values) const;
  bool same_rows(const std::vector<std::int64_t>& values) const;
  void apply(const std::vector<std::int64_t>& values);

  template_parts& parts_;
  std::shared_ptr<kiln::plan> plan_;
  std::shared_ptr<const kiln::plan> shared_;
  std::vector<std::int64_t> sizes_, room_;
  std::vector<moving_step> moving_;
};

}  // namespace kiln
