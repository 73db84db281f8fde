// Branches, loops and switches. Every kernel here writes output0[i] from input0[i] (and input1[i]).
#include <hip/hip_runtime.h>

__device__ int index() { return blockIdx.x * blockDim.x + threadIdx.x; }

KILN_OPERATOR("corpus", "branch") KILN_OUTPUT(0, float32, same_as(input0)) KILN_LAUNCH(branch, per_element(elements(input0)), input0, output0, elements(input0))
__global__ void branch(const float* x, float* y, int n) {
  int i = index();
  if (i >= n) return;
  if (x[i] < 0) y[i] = -x[i];
  else y[i] = x[i] * 2;
}

KILN_OPERATOR("corpus", "ladder") KILN_OUTPUT(0, int32, same_as(input0)) KILN_LAUNCH(ladder, per_element(elements(input0)), input0, output0, elements(input0))
__global__ void ladder(const float* x, int* y, int n) {
  int i = index();
  if (i >= n) return;
  float v = x[i];
  int r;
  if (v < -1) r = 0;
  else if (v < -0.5f) r = v < -0.75f ? 1 : 2;
  else if (v < 0.5f) {
    if (v < 0) r = 3;
    else r = v < 0.25f ? 4 : 5;
  } else r = 6;
  y[i] = r;
}

KILN_OPERATOR("corpus", "loop_sum") KILN_OUTPUT(0, float32, same_as(input0)) KILN_LAUNCH(loop_sum, per_element(elements(input0)), input0, output0, elements(input0))
__global__ void loop_sum(const float* x, float* y, int n) {
  int i = index();
  if (i >= n) return;
  float sum = 0;
  for (int k = 0; k < i % 17; ++k) sum += x[(i + k) % n];
  y[i] = sum;
}

KILN_OPERATOR("corpus", "loop_break") KILN_OUTPUT(0, int32, same_as(input0)) KILN_LAUNCH(loop_break, per_element(elements(input0)), input0, output0, elements(input0))
__global__ void loop_break(const int* x, int* y, int n) {
  int i = index();
  if (i >= n) return;
  int k = 0;
  for (; k < 1000; ++k)
    if (k * k > x[i]) break;
  y[i] = k;
}

KILN_OPERATOR("corpus", "loop_continue") KILN_OUTPUT(0, int32, same_as(input0)) KILN_LAUNCH(loop_continue, per_element(elements(input0)), input0, output0, elements(input0))
__global__ void loop_continue(const int* x, int* y, int n) {
  int i = index();
  if (i >= n) return;
  int sum = 0;
  for (int k = 0; k < 50; ++k) {
    if ((x[i] >> (k & 7)) & 1) continue;
    sum += k;
    if (sum > 300) continue;
    sum += 2;
  }
  y[i] = sum;
}

KILN_OPERATOR("corpus", "gcd") KILN_OUTPUT(0, int32, same_as(input0)) KILN_LAUNCH(gcd, per_element(elements(input0)), input0, input1, output0, elements(input0))
__global__ void gcd(const int* x, const int* z, int* y, int n) {
  int i = index();
  if (i >= n) return;
  unsigned a = x[i], b = z[i];
  while (b) {
    unsigned t = a % b;
    a = b;
    b = t;
  }
  y[i] = a;
}

KILN_OPERATOR("corpus", "digits") KILN_OUTPUT(0, int32, same_as(input0)) KILN_LAUNCH(digits, per_element(elements(input0)), input0, output0, elements(input0))
__global__ void digits(const int* x, int* y, int n) {
  int i = index();
  if (i >= n) return;
  int v = x[i], count = 0;
  do {
    ++count;
    v /= 10;
  } while (v);
  y[i] = count;
}

KILN_OPERATOR("corpus", "switch_dense") KILN_OUTPUT(0, int32, same_as(input0)) KILN_LAUNCH(switch_dense, per_element(elements(input0)), input0, output0, elements(input0))
__global__ void switch_dense(const int* x, int* y, int n) {
  int i = index();
  if (i >= n) return;
  int v = x[i], r = 0;
  switch (v % 8) {
    case 0: r = v + 1; break;
    case 1: r = v * 3; break;
    case 2: r = v - 7; break;
    case 3: r = v ^ 0x55; break;
    case 4: r = v / 3; break;
    case 5: for (int k = 0; k < v % 5; ++k) r += k * v; break;
    case 6: r = -v; break;
    default: r = 99;
  }
  y[i] = r;
}

KILN_OPERATOR("corpus", "switch_sparse") KILN_OUTPUT(0, int32, same_as(input0)) KILN_LAUNCH(switch_sparse, per_element(elements(input0)), input0, output0, elements(input0))
__global__ void switch_sparse(const int* x, int* y, int n) {
  int i = index();
  if (i >= n) return;
  switch (x[i]) {
    case -5: y[i] = 1; return;
    case 3: y[i] = 2; return;
    case 100: y[i] = 3; break;
    case 1 << 20: y[i] = 4; break;
    default: y[i] = x[i] * 2;
  }
}

KILN_OPERATOR("corpus", "switch_wide") KILN_OUTPUT(0, int32, same_as(input0)) KILN_LAUNCH(switch_wide, per_element(elements(input0)), input0, output0, elements(input0))
__global__ void switch_wide(const long* x, int* y, int n) {
  int i = index();
  if (i >= n) return;
  int r;
  switch (x[i]) {
    case 0x123456789abcL: r = 1; break;
    case -0x123456789abcL: r = x[i] & 15; break;
    case 7: r = 3; break;
    default: r = 4;
  }
  y[i] = r;
}

KILN_OPERATOR("corpus", "fall_through") KILN_OUTPUT(0, int32, same_as(input0)) KILN_LAUNCH(fall_through, per_element(elements(input0)), input0, output0, elements(input0))
__global__ void fall_through(const int* x, int* y, int n) {
  int i = index();
  if (i >= n) return;
  int r = 0;
  switch (x[i] & 7) {
    case 7: r += 64;
    case 5: r += 32 * x[i];
    case 3: r += 16; break;
    case 2: r ^= x[i];
    case 1: r += 4;
    default: r += 1;
  }
  y[i] = r;
}

// Two ways into one loop: no structured form.
KILN_OPERATOR("corpus", "irreducible") KILN_OUTPUT(0, int32, same_as(input0)) KILN_LAUNCH(irreducible, per_element(elements(input0)), input0, output0, elements(input0))
__global__ void irreducible(const int* x, int* y, int n) {
  int i = index();
  if (i >= n) return;
  int v = x[i], steps = 0;
  if (v & 1) goto odd;
even:
  v -= 3;
  ++steps;
  if (v < 0) goto done;
odd:
  v -= 5;
  steps += 10;
  if (v % 7 == 0) goto odd;
  if (v >= 0) goto even;
done:
  y[i] = steps * 1000 + v;
}

KILN_OPERATOR("corpus", "collatz") KILN_OUTPUT(0, int32, same_as(input0)) KILN_LAUNCH(collatz, per_element(elements(input0)), input0, output0, elements(input0))
__global__ void collatz(const int* x, int* y, int n) {
  int i = index();
  if (i >= n) return;
  long v = x[i] + 1;
  int steps = 0;
  while (v != 1) {
    v = v & 1 ? 3 * v + 1 : v / 2;
    if (++steps == 500) break;
  }
  y[i] = steps;
}

KILN_OPERATOR("corpus", "short_circuit") KILN_OUTPUT(0, int32, same_as(input0)) KILN_LAUNCH(short_circuit, per_element(elements(input0)), input0, input1, output0, elements(input0))
__global__ void short_circuit(const int* x, const int* z, int* y, int n) {
  int i = index();
  if (i >= n) return;
  int a = x[i], b = z[i];
  bool p = (b != 0 && a / b > 2) || (a > 10 && (b == 0 || a % b == 1));
  y[i] = p ? (a > b ? 1 : 2) : (a == b ? 3 : 4);
}

KILN_OPERATOR("corpus", "nested_break") KILN_OUTPUT(0, int32, same_as(input0)) KILN_LAUNCH(nested_break, per_element(elements(input0)), input0, output0, elements(input0))
__global__ void nested_break(const int* x, int* y, int n) {
  int i = index();
  if (i >= n) return;
  int primes = 0;
  for (int v = 2; v < 60; ++v) {
    if (v > x[i] % 64) break;
    bool prime = true;
    for (int d = 2; d * d <= v; ++d)
      if (v % d == 0) {
        prime = false;
        break;
      }
    primes += prime;
  }
  y[i] = primes;
}
