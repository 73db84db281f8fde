#include "peers.hpp"

#ifdef KILN_BENCH_OPENBLAS
#include <cblas.h>
#endif

namespace kiln::bench {

#ifdef KILN_BENCH_OPENBLAS

std::optional<peer_run> openblas_peer(const kernel_case& c, const float* left, const float* right, float* result) {
  const auto* op = c.op.get_if<dot>();
  if (!op || op->transpose_a) return std::nullopt;
  openblas_set_num_threads(1);
  const int m = static_cast<int>(c.left[0]), k = static_cast<int>(c.left[1]),
            n = static_cast<int>(c.right[op->transpose_b ? 0 : 1]);
  const bool t = op->transpose_b;
  if (m == 1)
    return [=] {
      cblas_sgemv(CblasRowMajor, t ? CblasNoTrans : CblasTrans, t ? n : k, t ? k : n, 1, right, t ? k : n, left, 1, 0,
                  result, 1);
    };
  return [=] {
    cblas_sgemm(CblasRowMajor, CblasNoTrans, t ? CblasTrans : CblasNoTrans, m, n, k, 1, left, k, right, t ? k : n, 0,
                result, n);
  };
}

#else

std::optional<peer_run> openblas_peer(const kernel_case&, const float*, const float*, float*) { return std::nullopt; }

#endif

}  // namespace kiln::bench
