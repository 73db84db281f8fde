// Upper limits for the time that a test may take. Code with a sanitizer is many times slower, and its tests run beside
// others, so the limits are multiplied there.
#pragma once

#include <chrono>

namespace kiln::testing {

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
inline constexpr int slowness = 30;
#elif defined(__has_feature)
inline constexpr int slowness = __has_feature(thread_sanitizer) || __has_feature(address_sanitizer) ? 30 : 1;
#else
inline constexpr int slowness = 1;
#endif

constexpr std::chrono::milliseconds patient(std::chrono::milliseconds limit) { return limit * slowness; }

}  // namespace kiln::testing
