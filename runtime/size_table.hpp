// The sizes of a plan that depend on the open dimensions: bytes of tensors, grids, bytes of scratch memory, tables of
// open kernels. Const functions may be called by any thread.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "ir/dim_table.hpp"
#include "ir/shape.hpp"

namespace kiln {

class size_table {
 public:
  using index = std::uint32_t;
  static constexpr index none = UINT32_MAX;

  index add(const dim& d);
  // The bytes of dense storage.
  index add_bytes(const shape& s);

  // Returns the values by index. nullopt if a dim has no value (see dim_table), or a tensor has a negative dim or more
  // elements than any memory holds.
  std::optional<std::vector<std::int64_t>> evaluate(const dim_bindings& sizes) const;

 private:
  struct tensor {
    element_type type;
    std::vector<dim_table::index> dims;
    friend auto operator<=>(const tensor&, const tensor&) = default;
  };
  // `which` is an index of dims_ or tensors_.
  struct entry {
    bool is_tensor;
    std::uint32_t which;
  };
  dim_table dims_;
  std::vector<tensor> tensors_;
  std::vector<entry> entries_;
  std::map<dim_table::index, index> index_of_dim_;
  std::map<tensor, index> index_of_tensor_;
};

}  // namespace kiln
