// The libraries that our kernels are compared with. Each returns its implementation of a case, or nothing if it has no
// such function or is not installed.
#pragma once

#include <functional>
#include <optional>

#include "cases.hpp"

namespace kiln::bench {

// Computes the case once on this thread and writes to the given output. Weights are already in the layout that the
// library prefers.
using peer_run = std::function<void()>;

std::optional<peer_run> openblas_peer(const kernel_case& c, const float* left, const float* right, float* result);
std::optional<peer_run> onednn_peer(const kernel_case& c, const float* left, const float* right, const float* bias,
                                    float* result);

}  // namespace kiln::bench
