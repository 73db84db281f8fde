// Measures how launches on a second stream slow down CUDA graphs of the same context.
//
//   nvcc -x cu -arch=sm_90 bench/gpu/two_streams.cpp -o two_streams -lcuda && ./two_streams
//
// Times a graph of 64 small sequential kernels before and after single launches on one stream and then on another.
// Every case runs in a process of its own, because nothing undoes the effect. On an H200 with driver 580.159 (CUDA
// 13.0): 71 us, and 82 us after two streams have had eight launches each (seven on the second are enough).
#include <cuda_runtime.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>

__global__ void step(const float* from, float* to) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  to[i] = from[i] * 0.5f + 1.0f;
}

void check(cudaError_t status) {
  if (status == cudaSuccess) return;
  std::fprintf(stderr, "%s\n", cudaGetErrorString(status));
  std::exit(1);
}

void launch(cudaStream_t stream, float* a, float* b, int count) {
  for (int i = 0; i < count; ++i) step<<<64 + i % 64, 256, 0, stream>>>(i % 2 ? b : a, i % 2 ? a : b);
  check(cudaGetLastError());
}

double median_us(cudaGraphExec_t graph, cudaStream_t stream) {
  std::vector<double> times(400);
  for (double& t : times) {
    auto begin = std::chrono::steady_clock::now();
    check(cudaGraphLaunch(graph, stream));
    check(cudaStreamSynchronize(stream));
    t = std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count();
  }
  std::nth_element(times.begin(), times.begin() + 200, times.end());
  return times[200];
}

void measure(int on_first, int on_second) {
  float *a, *b;
  constexpr std::size_t bytes = 128 * 256 * sizeof(float);
  check(cudaMalloc(&a, bytes)), check(cudaMalloc(&b, bytes));
  check(cudaMemset(a, 0, bytes)), check(cudaDeviceSynchronize());
  cudaStream_t first, second, captured;
  for (cudaStream_t* s : {&first, &second, &captured}) check(cudaStreamCreateWithFlags(s, cudaStreamNonBlocking));
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  check(cudaStreamBeginCapture(captured, cudaStreamCaptureModeThreadLocal));
  launch(captured, a, b, 64);
  check(cudaStreamEndCapture(captured, &graph)), check(cudaGraphInstantiate(&exec, graph, 0));
  double before = median_us(exec, second);
  launch(first, a, b, on_first), launch(second, a, b, on_second);
  check(cudaDeviceSynchronize());
  std::printf("%3d launches on one stream, %3d on another: graph %.1f us before, %.1f us after\n", on_first, on_second,
              before, median_us(exec, second));
}

int main() {
  const int cases[][2] = {{0, 64}, {64, 0}, {8, 7}, {8, 8}, {64, 64}};
  for (auto [first, second] : cases) {
    pid_t child = fork();
    if (child == 0) {
      measure(first, second);
      std::fflush(stdout);
      _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    if (status) return 1;
  }
}
