// Verifies a program's constants on threads of its own, in the order of their use, before somebody reads them
// (deferred_check.hpp). For GPUs, which read nearly all of them: hashing the weights of a file then overlaps with
// opening the device and with the uploads, which find the pages of the file mapped.
#pragma once

#include <atomic>
#include <thread>
#include <vector>

#include "ir/literal.hpp"
#include "ir/program.hpp"

namespace kiln {

class verify_ahead {
 public:
  // Starts. If the system has no thread left, nothing is verified ahead. Damaged constants are left to whoever reads
  // them.
  explicit verify_ahead(const program& of);
  // Ends after the constant at hand.
  ~verify_ahead();
  verify_ahead(const verify_ahead&) = delete;
  verify_ahead& operator=(const verify_ahead&) = delete;

 private:
  std::vector<literal> constants_;
  std::atomic<std::size_t> next_ = 0;
  std::vector<std::jthread> threads_;
};

}  // namespace kiln
