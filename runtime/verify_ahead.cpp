#include "runtime/verify_ahead.hpp"

#include <algorithm>
#include <exception>
#include <system_error>

#include "ir/ops/structure.hpp"

namespace kiln {

verify_ahead::verify_ahead(const program& of) {
  // Each thread hashes with a second one.
  constexpr unsigned most_threads = 2, processors_of_thread = 4;
  for (const module& m : of.modules())
    for (const instruction& i : m.instructions())
      if (const auto* c = i.op().get_if<constant>()) constants_.push_back(c->data);
  const auto work = [this](const std::stop_token& stop) {
    for (std::size_t i; !stop.stop_requested() && (i = next_.fetch_add(1)) < constants_.size();) {
      try {
        constants_[i].bytes();
      } catch (const std::exception&) {
        return;
      }
    }
  };
  const unsigned wanted = std::thread::hardware_concurrency() / processors_of_thread;
  for (unsigned t = 0; t < std::min(most_threads, std::max(1u, wanted)); ++t) {
    try {
      threads_.emplace_back(work);
    } catch (const std::system_error&) {
      return;
    }
  }
}

verify_ahead::~verify_ahead() {
  for (std::jthread& t : threads_) t.request_stop();
}

}  // namespace kiln
