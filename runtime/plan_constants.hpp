// The constants of a program while its plan is built. A device that reads host memory reads them where they are (a
// mapped file); to a GPU they are uploaded when something reads them there, and kept only if a run does. Programs on
// one device share equal constants. Internal to plan_builder.cpp. One thread.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <tuple>
#include <utility>

#include "ir/literal.hpp"
#include "runtime/plan.hpp"

namespace kiln {

class plan_constants {
 public:
  plan_constants(plan& of, device& target) : plan_(of), device_(target) {}

  // Equal storage is one buffer.
  std::optional<buffer_id> find(const literal& data) const;
  // `id` is the buffer of `data` from now on.
  void add(buffer_id id, const literal& data);
  // Null where the buffer is no constant.
  const literal* literal_of(buffer_id id) const;
  // Where the device reads it, uploaded if need be. Valid while this object is, and with the plan after keep().
  const std::byte* address(buffer_id id);
  const content_hash& hash_of(const literal& data);
  // Gives the plan what its steps read, and forgets the rest.
  void keep();

 private:
  using storage = std::tuple<const std::byte*, std::size_t, std::size_t>;  // address, size, alignment
  plan& plan_;
  device& device_;
  std::map<storage, buffer_id> buffers_;
  std::map<buffer_id, literal> literals_;
  std::map<buffer_id, std::shared_ptr<const device_memory>> uploaded_;
  std::map<std::pair<const std::byte*, std::size_t>, content_hash> hashes_;
};

}  // namespace kiln
