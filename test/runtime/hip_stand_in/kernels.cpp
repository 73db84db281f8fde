// The functions that the stand-in's modules hold: those of test/runtime/kernels/tensors.c, and some for GPUs alone.
#include <algorithm>
#include <cstdint>

#include "engine.hpp"

extern "C" {
#define TENSOR_KERNEL(name) void name(void* const* buffers, long long begin, long long end);
TENSOR_KERNEL(add)
TENSOR_KERNEL(twice)
TENSOR_KERNEL(exponential)
TENSOR_KERNEL(sum_parts)
TENSOR_KERNEL(sum_total)
TENSOR_KERNEL(reverse)
TENSOR_KERNEL(multiply)
TENSOR_KERNEL(plus_minus)
TENSOR_KERNEL(below_limit)
TENSOR_KERNEL(add_iteration)
#undef TENSOR_KERNEL
}

namespace kiln::stand_in {
namespace {

// x, counter, out: out = x + counter, where the counter goes up and back as a split-K fix-up's does.
void add_counter(void* const* b, long long begin, long long end) {
  auto* x = static_cast<const float*>(b[0]);
  auto* counter = static_cast<std::int32_t*>(b[1]);
  auto* out = static_cast<float*>(b[2]);
  for (long long i = begin; i < end; ++i) out[i] = x[i] + static_cast<float>(*counter);
}

void nothing(void* const*, long long, long long) {}

constexpr kernel kernels[] = {
    {"add", add, 3},
    {"twice", twice, 2},
    {"exponential", exponential, 2},
    {"sum_parts", sum_parts, 2},
    {"sum_total", sum_total, 2},
    {"reverse", reverse, 2},
    // Says what it makes (ir/shared_layout.hpp).
    {"reverse_shared_f32_depth_last", reverse, 2},
    {"multiply", multiply, 3},
    {"plus_minus", plus_minus, 3},
    {"below_limit", below_limit, 2},
    {"add_iteration", add_iteration, 3},
    {"add_counter", add_counter, 3},
    // Its input is passed as a tensor map.
    {"twice_mapped", twice, 2, 1},
    // Makes the device unusable.
    {"fault", nothing, 0},
    // Never ends.
    {"hang", nothing, 0},
};

}  // namespace

const kernel* find_kernel(const std::string& name) {
  auto* found = std::ranges::find(kernels, name, [](const kernel& k) { return std::string(k.name); });
  return found == std::end(kernels) ? nullptr : found;
}

}  // namespace kiln::stand_in
