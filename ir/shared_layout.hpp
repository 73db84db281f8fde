// The name of a `prepare` launch may end with what the launch makes of its only input. Kernels that make the same then
// share one result of a constant on a GPU, although their code differs: the kernels of a program for several sizes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace kiln {

// A copy [rows, pitch] of a matrix [depth, rows], or [rows, depth] if not `depth_first`, whose rows end with zeros.
struct shared_layout {
  std::string_view type;  // of the elements
  std::int64_t rows = 0, depth = 0, pitch = 0;
  bool depth_first = true;

  std::string text() const {
    return "_shared_" + std::string(type) + "_" + std::to_string(rows) + "_rows_of_" + std::to_string(depth) +
           "_pitch_" + std::to_string(pitch) + (depth_first ? "_depth_first" : "_depth_last");
  }
};

// Returns the text at the end of the name of a launch, or nothing.
inline std::string_view shared_layout_of(std::string_view launch) {
  const std::size_t at = launch.rfind("_shared_");
  const bool named = launch.ends_with("_depth_first") || launch.ends_with("_depth_last");
  return named && at != std::string_view::npos ? launch.substr(at) : std::string_view();
}

}  // namespace kiln
