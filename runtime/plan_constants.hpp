// The constants of a program while its plan is being built. A device that can access host memory reads them in place
// (in a mapped file). For a GPU, a constant is uploaded when a launch first needs it and is kept only if runs read it.
// Programs on one device share equal constants. Internal to plan_builder.cpp. One thread.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "ir/literal.hpp"
#include "runtime/plan.hpp"

namespace kiln {

class plan_constants {
 public:
  // `hashes` may be null.
  plan_constants(plan& of, device& target, constant_hashes* hashes) : plan_(of), device_(target), shared_(hashes) {}

  // The buffer of a constant with the same storage, if there is one.
  std::optional<buffer_id> find(const literal& data) const;
  // Registers `id` as the buffer of `data`.
  void add(buffer_id id, const literal& data);
  // Returns null if the buffer is not a constant.
  const literal* literal_of(buffer_id id) const;
  // The device address of the constant, which is uploaded if necessary. Valid while this object exists; after keep(),
  // as long as the plan.
  const std::byte* address(buffer_id id);
  // The same for `prepare` launches, valid until release(). Most constants are read by nothing else, and the device may
  // have no room for all of them beside what is made of them.
  const std::byte* temporary_address(buffer_id id);
  // Says that the launches that read temporary addresses have been queued.
  void release();
  const content_hash& hash_of(const literal& data);
  // Gives the plan the constants among `read`, which its steps read, and releases the others.
  void keep(const std::set<buffer_id>& read);

 private:
  using storage = std::tuple<const std::byte*, std::size_t, std::size_t>;  // address, size, alignment
  plan& plan_;
  device& device_;
  constant_hashes* shared_;
  std::map<storage, buffer_id> buffers_;
  std::map<buffer_id, literal> literals_;
  std::map<buffer_id, std::shared_ptr<const device_memory>> uploaded_;
  // What temporary addresses point to: memory of another program, or own memory, which is reused in the order of the
  // device's own stream until keep().
  std::map<buffer_id, std::shared_ptr<const device_memory>> borrowed_;
  std::map<buffer_id, device_memory> temporary_;
  std::vector<device_memory> rooms_;
  bool kept_ = false;
  std::map<std::pair<const std::byte*, std::size_t>, content_hash> hashes_;
};

}  // namespace kiln
