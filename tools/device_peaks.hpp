// How near each launch of a profile comes to what a GPU can do, for `kiln perf --per-kernel`.
#pragma once

#include <nlohmann/json.hpp>

#include "runtime/device.hpp"

namespace kiln::tools {

struct device_peaks {
  // Bytes that a copy within the device's memory reads and writes a second, measured; 0 on the host.
  double bandwidth = 0;
  // Operations a second of the matrix units on f16 with f32 sums, from the vendor's data sheet of a product with this
  // target, scaled to the device's number of compute units; 0: not known.
  double matrix_rate = 0;
};

// Allocates memory of the device for the copy, and takes some milliseconds. A device without so much free memory has no
// bandwidth.
device_peaks measure_peaks(device& of);

// Gives each row of perf's `per_kernel` the keys `bandwidth_share` and `matrix_share`, fractions of the peaks, and
// `far_from_peaks`: more than 5 % of the time of all rows, and below 10 % of both peaks. A share is null if the peak is
// not known, or what the launch moves: a share above 1 counts tensors of which only a part is touched.
void add_shares(nlohmann::ordered_json& per_kernel, const device_peaks& peaks);

// "48 % of bandwidth, 1 % of matrix units"; empty if neither is known.
std::string shares_text(const nlohmann::ordered_json& row);

}  // namespace kiln::tools
