// The resources that all instances of a session share: the device, the cache and its records, the workers. Used by any
// thread.
#pragma once

#include <memory>
#include <string>

#include "runtime/constant_hashes.hpp"
#include "session/session_options.hpp"

namespace kiln {

class session_resources {
 public:
  // `name`: of the model, for logs. `embedded` (may be null) and `hints` come from its file.
  session_resources(session_options options, chosen_device chosen, std::string name,
                    std::shared_ptr<const embedded_entries> embedded, std::string hints);

  const session_options& options() const { return options_; }
  const std::string& name() const { return name_; }
  kiln::device& device() const { return *chosen_.device; }
  const target_row& target() const { return chosen_.target; }
  kernel_cache* cache() const { return cache_.get(); }   // null where it is disabled
  tuning_records& records() const { return *records_; }  // kept in memory where there is no cache
  jit_options compiling() const;                         // as the instances are compiled
  // The same options, with reports to the observer.
  jit_options compiling_with_progress() const;
  plan_options planning() const {
    return {.store = prepared_.get(),
            .hashes = &hashes_,
            .updated_inputs = options_.updated_inputs,
            .share_updated = options_.share_updated};
  }
  void report(const session_event& event) const;
  void warn(const std::string& text) const { report(session_events::warning{text}); }

 private:
  session_options options_;
  std::string name_;
  std::shared_ptr<worker_pool> workers_;  // null: payloads are read in this process
  chosen_device chosen_;
  std::unique_ptr<kernel_cache> cache_;
  std::unique_ptr<tuning_records> records_;
  std::unique_ptr<prepared_store> prepared_;
  mutable constant_hashes hashes_;
};

}  // namespace kiln
