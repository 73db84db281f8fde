// The libraries that we are measured against: what each makes of a case, or nothing where it has no such function or is
// not installed.
#pragma once

#include <functional>
#include <optional>

#include "cases.hpp"

namespace kiln::bench {

// Does the case once on this thread, into the output given. Weights are already in the layout that the library likes
// best.
using peer_run = std::function<void()>;

std::optional<peer_run> openblas_peer(const kernel_case& c, const float* left, const float* right, float* result);
std::optional<peer_run> onednn_peer(const kernel_case& c, const float* left, const float* right, const float* bias,
                                    float* result);

}  // namespace kiln::bench
