// A row of the table of targets that every machine of this processor's kind runs.
#pragma once

namespace kiln::test {

#if defined(__aarch64__)
inline constexpr const char* host_row = "armv8-a";
#else
inline constexpr const char* host_row = "x86-64-v3";
#endif

}  // namespace kiln::test
