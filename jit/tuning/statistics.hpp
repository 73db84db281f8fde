// Timings are skewed and have outliers, so they are judged by medians. Free functions over plain numbers.
#pragma once

#include <vector>

namespace kiln {

struct timing {
  double median = 0;
  double low = 0, high = 0;  // a 95 % interval of the median
  int samples = 0;
};

// The interval is median ± 1.96 · 1.2533 · 1.4826 · MAD / √n: the standard error of a median, with the median absolute
// deviation as the robust estimate of the spread (Rousseeuw and Croux, 1993). With fewer than five samples it is
// infinitely wide. No samples: all zero.
timing summarize(std::vector<double> samples);

// The smallest value that a share `p` of the sorted samples does not exceed.
double percentile(const std::vector<double>& sorted, double p);

// Whether `a` is faster than `b` by at least `margin` of b, beyond doubt: the intervals do not meet.
bool clearly_faster(const timing& a, const timing& b, double margin);

}  // namespace kiln
