// Statuses and messages of the C interface. Any thread; the last message is the thread's own.
#pragma once

#include <exception>
#include <new>

#include "ir/error.hpp"
#include "runtime/kiln.h"

namespace kiln::c_interface {

// Keeps the message for kiln_last_error() and returns the status.
kiln_status fail(kiln_status status, const char* message) noexcept;
kiln_status fail(const error& e) noexcept;

// Runs `f`; whatever it throws becomes a status and a message.
template <class F>
kiln_status guarded(F&& f) noexcept {
  try {
    f();
    return KILN_OK;
  } catch (const error& e) {
    return fail(e);
  } catch (const std::bad_alloc&) {
    return fail(KILN_OUT_OF_MEMORY, "memory: is used up; use smaller dimensions, or a machine with more");
  } catch (const std::exception& e) {
    return fail(KILN_INTERNAL, e.what());
  } catch (...) {
    return fail(KILN_INTERNAL, "an unknown exception");
  }
}

}  // namespace kiln::c_interface
