// Statistics of timings. Timings are skewed and have outliers, so they are compared by their medians.
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

// The `p` quantile (0 to 1) of the sorted samples, by the nearest rank; 0 if there are none.
double percentile(const std::vector<double>& sorted, double p);

// Whether `a` is faster than `b` with significance: the 95 % intervals do not overlap, and the median is smaller by at
// least the fraction `margin` of b's.
bool clearly_faster(const timing& a, const timing& b, double margin);

}  // namespace kiln
