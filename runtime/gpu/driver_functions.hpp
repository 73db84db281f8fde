// The GPU driver functions that Kiln uses, as one table. AMD's HIP runtime and NVIDIA's CUDA driver mostly differ only
// in function names. The functions are declared here, so building needs neither toolkit. Handles (streams, events,
// modules, functions, pools, contexts) are pointers in both drivers. A CUdeviceptr is a 64-bit integer, which every
// 64-bit ABI passes like a pointer. All functions may be called from any thread.
#pragma once

#include <cstddef>
#include <cstdint>

namespace kiln::gpu {

// X(need, member, CUDA name, HIP name, parameters): functions that exist in both drivers with the same parameters. They
// return a status.
#define KILN_GPU_BOTH(X)                                                                                               \
  X(required, init, cuInit, hipInit, (unsigned flags))                                                                 \
  X(required, driver_version, cuDriverGetVersion, hipDriverGetVersion, (int* version))                                 \
  X(required, device_count, cuDeviceGetCount, hipGetDeviceCount, (int* count))                                         \
  X(required, device_get, cuDeviceGet, hipDeviceGet, (int* device, int index))                                         \
  X(required, device_name, cuDeviceGetName, hipDeviceGetName, (char* name, int bytes, int device))                     \
  X(required, device_memory_bytes, cuDeviceTotalMem_v2, hipDeviceTotalMem, (std::size_t* bytes, int device))           \
  X(required, device_attribute, cuDeviceGetAttribute, hipDeviceGetAttribute, (int* value, int attribute, int device))  \
  X(required, stream_create, cuStreamCreate, hipStreamCreateWithFlags, (void** stream, unsigned flags))                \
  X(required, stream_destroy, cuStreamDestroy_v2, hipStreamDestroy, (void* stream))                                    \
  X(required, stream_synchronize, cuStreamSynchronize, hipStreamSynchronize, (void* stream))                           \
  X(required, stream_query, cuStreamQuery, hipStreamQuery, (void* stream))                                             \
  X(required, stream_wait_event, cuStreamWaitEvent, hipStreamWaitEvent, (void* stream, void* event, unsigned flags))   \
  X(required, event_create, cuEventCreate, hipEventCreateWithFlags, (void** event, unsigned flags))                    \
  X(required, event_destroy, cuEventDestroy_v2, hipEventDestroy, (void* event))                                        \
  X(required, event_record, cuEventRecord, hipEventRecord, (void* event, void* stream))                                \
  X(required, event_synchronize, cuEventSynchronize, hipEventSynchronize, (void* event))                               \
  X(required, event_query, cuEventQuery, hipEventQuery, (void* event))                                                 \
  X(required, event_elapsed, cuEventElapsedTime, hipEventElapsedTime, (float* milliseconds, void* begin, void* end))   \
  X(required, memory_allocate, cuMemAlloc_v2, hipMalloc, (void** memory, std::size_t bytes))                           \
  X(required, memory_free, cuMemFree_v2, hipFree, (void* memory))                                                      \
  X(required, host_allocate, cuMemHostAlloc, hipHostMalloc, (void** memory, std::size_t bytes, unsigned flags))        \
  X(required, host_free, cuMemFreeHost, hipHostFree, (void* memory))                                                   \
  X(required, copy_to_device, cuMemcpyHtoDAsync_v2, hipMemcpyHtoDAsync,                                                \
    (void* to, const void* from, std::size_t bytes, void* stream))                                                     \
  X(required, copy_to_host, cuMemcpyDtoHAsync_v2, hipMemcpyDtoHAsync,                                                  \
    (void* to, const void* from, std::size_t bytes, void* stream))                                                     \
  X(required, copy_on_device, cuMemcpyDtoDAsync_v2, hipMemcpyDtoDAsync,                                                \
    (void* to, const void* from, std::size_t bytes, void* stream))                                                     \
  X(required, fill, cuMemsetD8Async, hipMemsetD8Async,                                                                 \
    (void* to, unsigned char value, std::size_t count, void* stream))                                                  \
  X(required, fill_words, cuMemsetD32Async, hipMemsetD32Async,                                                         \
    (void* to, unsigned value, std::size_t count, void* stream))                                                       \
  X(required, module_unload, cuModuleUnload, hipModuleUnload, (void* module))                                          \
  X(required, module_function, cuModuleGetFunction, hipModuleGetFunction,                                              \
    (void** function, void* module, const char* name))                                                                 \
  X(required, launch, cuLaunchKernel, hipModuleLaunchKernel,                                                           \
    (void* function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y,            \
     unsigned block_z, unsigned shared_bytes, void* stream, void** parameters, void** extra))                          \
  X(optional, pool_create, cuMemPoolCreate, hipMemPoolCreate, (void** pool, const void* properties))                   \
  X(optional, pool_destroy, cuMemPoolDestroy, hipMemPoolDestroy, (void* pool))                                         \
  X(optional, pool_set_attribute, cuMemPoolSetAttribute, hipMemPoolSetAttribute,                                       \
    (void* pool, int attribute, void* value))                                                                          \
  X(optional, pool_trim, cuMemPoolTrimTo, hipMemPoolTrimTo, (void* pool, std::size_t bytes_to_keep))                   \
  X(optional, pool_allocate, cuMemAllocFromPoolAsync, hipMallocFromPoolAsync,                                          \
    (void** memory, std::size_t bytes, void* pool, void* stream))                                                      \
  X(optional, pool_free, cuMemFreeAsync, hipFreeAsync, (void* memory, void* stream))                                   \
  X(optional, graph_create, cuGraphCreate, hipGraphCreate, (void** graph, unsigned flags))                             \
  X(optional, graph_destroy, cuGraphDestroy, hipGraphDestroy, (void* graph))                                           \
  X(optional, graph_add_kernel, cuGraphAddKernelNode, hipGraphAddKernelNode,                                           \
    (void** node, void* graph, void* const* after, std::size_t count, const void* parameters))                         \
  X(optional, graph_add_child, cuGraphAddChildGraphNode, hipGraphAddChildGraphNode,                                    \
    (void** node, void* graph, void* const* after, std::size_t count, void* child))                                    \
  X(optional, graph_instantiate_flags, cuGraphInstantiateWithFlags, hipGraphInstantiateWithFlags,                      \
    (void** exec, void* graph, unsigned long long flags))                                                              \
  X(optional, graph_instantiate, cuGraphInstantiate_v2, hipGraphInstantiate,                                           \
    (void** exec, void* graph, void** node, char* log, std::size_t bytes))                                             \
  X(optional, exec_set_kernel, cuGraphExecKernelNodeSetParams, hipGraphExecKernelNodeSetParams,                        \
    (void* exec, void* node, const void* parameters))                                                                  \
  X(optional, exec_set_child, cuGraphExecChildGraphNodeSetParams, hipGraphExecChildGraphNodeSetParams,                 \
    (void* exec, void* node, void* child))                                                                             \
  X(optional, exec_update, cuGraphExecUpdate, hipGraphExecUpdate, (void* exec, void* graph, void** node, int* result)) \
  X(optional, exec_destroy, cuGraphExecDestroy, hipGraphExecDestroy, (void* exec))                                     \
  X(optional, graph_launch, cuGraphLaunch, hipGraphLaunch, (void* exec, void* stream))                                 \
  X(optional, capture_begin, cuStreamBeginCapture_v2, hipStreamBeginCapture, (void* stream, int mode))                 \
  X(optional, capture_end, cuStreamEndCapture, hipStreamEndCapture, (void* stream, void** graph))                      \
  X(optional, capture_info, cuStreamGetCaptureInfo_v2, hipStreamGetCaptureInfo_v2,                                     \
    (void* stream, int* status, unsigned long long* id, void** graph, void* const** nodes, std::size_t* count))

// X(need, member, name, result, parameters): functions that exist in one driver only.
#define KILN_GPU_CUDA_ONLY(X)                                                                                         \
  X(required, cuda_error_name, cuGetErrorName, int, (int status, const char** name))                                  \
  X(required, primary_context_retain, cuDevicePrimaryCtxRetain, int, (void** context, int device))                    \
  X(required, primary_context_release, cuDevicePrimaryCtxRelease_v2, int, (int device))                               \
  X(required, context_get, cuCtxGetCurrent, int, (void** context))                                                    \
  X(required, context_set, cuCtxSetCurrent, int, (void* context))                                                     \
  X(required, cuda_module_load, cuModuleLoadDataEx, int,                                                              \
    (void** module, const void* image, unsigned count, int* options, void** values))                                  \
  X(required, function_set_attribute, cuFuncSetAttribute, int, (void* function, int attribute, int value))            \
  X(required, link_create, cuLinkCreate_v2, int, (unsigned count, int* options, void** values, void** state))         \
  X(required, link_add, cuLinkAddData_v2, int,                                                                        \
    (void* state, int type, void* data, std::size_t bytes, const char* name, unsigned count, int* options,            \
     void** values))                                                                                                  \
  X(required, link_complete, cuLinkComplete, int, (void* state, void** cubin, std::size_t* bytes))                    \
  X(required, link_destroy, cuLinkDestroy, int, (void* state))                                                        \
  X(optional, tensor_map_encode, cuTensorMapEncodeTiled, int,                                                         \
    (void* map, int type, std::uint32_t rank, void* address, const std::uint64_t* dims, const std::uint64_t* strides, \
     const std::uint32_t* box, const std::uint32_t* element_strides, int interleave, int swizzle, int promotion,      \
     int outside))                                                                                                    \
  X(optional, cuda_add_copy, cuGraphAddMemcpyNode, int,                                                               \
    (void** node, void* graph, void* const* after, std::size_t count, const void* parameters, void* context))         \
  X(optional, cuda_set_copy, cuGraphExecMemcpyNodeSetParams, int,                                                     \
    (void* exec, void* node, const void* parameters, void* context))                                                  \
  X(optional, cuda_add_fill, cuGraphAddMemsetNode, int,                                                               \
    (void** node, void* graph, void* const* after, std::size_t count, const void* parameters, void* context))         \
  X(optional, cuda_set_fill, cuGraphExecMemsetNodeSetParams, int,                                                     \
    (void* exec, void* node, const void* parameters, void* context))                                                  \
  X(optional, cuda_add_edges, cuGraphAddDependencies_v2, int,                                                         \
    (void* graph, void* const* from, void* const* to, const void* edges, std::size_t count))                          \
  X(optional, exec_update_2, cuGraphExecUpdate_v2, int, (void* exec, void* graph, void* result))

#define KILN_GPU_HIP_ONLY(X)                                                                                         \
  X(required, hip_error_name, hipGetErrorName, const char*, (int status))                                            \
  X(required, device_set, hipSetDevice, int, (int device))                                                           \
  X(required, device_current, hipGetDevice, int, (int* device))                                                      \
  X(required, hip_module_load, hipModuleLoadData, int, (void** module, const void* image))                           \
  X(optional, properties_6, hipGetDevicePropertiesR0600, int, (void* properties, int device))                        \
  X(required, properties_5, hipGetDeviceProperties, int, (void* properties, int device))                             \
  X(optional, hip_add_copy, hipGraphAddMemcpyNode1D, int,                                                            \
    (void** node, void* graph, void* const* after, std::size_t count, void* to, const void* from, std::size_t bytes, \
     int kind))                                                                                                      \
  X(optional, hip_set_copy, hipGraphExecMemcpyNodeSetParams1D, int,                                                  \
    (void* exec, void* node, void* to, const void* from, std::size_t bytes, int kind))                               \
  X(optional, hip_add_fill, hipGraphAddMemsetNode, int,                                                              \
    (void** node, void* graph, void* const* after, std::size_t count, const void* parameters))                       \
  X(optional, hip_set_fill, hipGraphExecMemsetNodeSetParams, int, (void* exec, void* node, const void* parameters))

// A member is null if the driver lacks that function.
struct driver_functions {
#define KILN_GPU_MEMBER(need, member, cuda, hip, parameters) int(*member) parameters = nullptr;
  KILN_GPU_BOTH(KILN_GPU_MEMBER)
#undef KILN_GPU_MEMBER
#define KILN_GPU_MEMBER(need, member, symbol, result, parameters) result(*member) parameters = nullptr;
  KILN_GPU_CUDA_ONLY(KILN_GPU_MEMBER)
  KILN_GPU_HIP_ONLY(KILN_GPU_MEMBER)
#undef KILN_GPU_MEMBER
};

// Constants from the drivers' headers. A single value is the same in both drivers.
inline constexpr unsigned stream_non_blocking = 1;       // CU_STREAM_NON_BLOCKING
inline constexpr unsigned event_without_timing = 2;      // CU_EVENT_DISABLE_TIMING
inline constexpr int pool_release_threshold = 4;         // CU_MEMPOOL_ATTR_RELEASE_THRESHOLD
inline constexpr int function_dynamic_shared_bytes = 8;  // CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES

// CU_STREAM_CAPTURE_MODE_THREAD_LOCAL: calls of other threads do not affect the capture.
inline constexpr int capture_of_this_thread = 1;
inline constexpr int capturing = 1;            // CU_STREAM_CAPTURE_STATUS_ACTIVE
inline constexpr int copy_on_device_kind = 3;  // hipMemcpyDeviceToDevice

// CUDA_KERNEL_NODE_PARAMS_v1. Every driver accepts it under the function name without a version suffix.
struct cuda_kernel_node {
  void* function;
  unsigned grid[3], block[3], shared_bytes;
  void** parameters;
  void** extra;
};
static_assert(sizeof(cuda_kernel_node) == 56);

struct hip_kernel_node {
  unsigned block[3];
  void** extra;
  void* function;
  unsigned grid[3];
  void** parameters;
  unsigned shared_bytes;
};
static_assert(sizeof(hip_kernel_node) == 64);

// CUDA_MEMCPY3D_v2, used for one row of bytes within device memory.
struct cuda_copy_node {
  struct place {
    std::size_t x = 0, y = 0, z = 0, level = 0;
    int memory_type = 2;  // CU_MEMORYTYPE_DEVICE
    const void *host = nullptr, *device = nullptr, *array = nullptr, *reserved = nullptr;
    std::size_t pitch = 0, height = 0;
  };
  place from, to;
  std::size_t bytes = 0, height = 1, depth = 1;
};
static_assert(sizeof(cuda_copy_node) == 200);

// CUDA_MEMSET_NODE_PARAMS_v1
struct cuda_fill_node {
  void* to;
  std::size_t pitch;
  unsigned value, element_bytes;
  std::size_t width, height;
};
static_assert(sizeof(cuda_fill_node) == 40);

struct hip_fill_node {
  void* to;
  unsigned element_bytes;
  std::size_t height, pitch;
  unsigned value;
  std::size_t width;
};
static_assert(sizeof(hip_fill_node) == 48);

// CUgraphEdgeData
struct cuda_edge {
  unsigned char from_port = 0;  // 1: CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC
  unsigned char to_port = 0;
  unsigned char type = 0;  // 1: CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC
  unsigned char reserved[5] = {};
};
static_assert(sizeof(cuda_edge) == 8);

// CUgraphExecUpdateResultInfo
struct cuda_update_result {
  int result = 0;
  void *node = nullptr, *from = nullptr;
};

// CUmemPoolProps and hipMemPoolProps, 88 bytes in every version.
struct pool_properties {
  int allocation_type = 1;  // pinned, that is, ordinary device memory
  int handle_types = 0;
  int location_type = 1;  // a device
  int location_id = 0;
  void* security_attributes = nullptr;
  std::size_t max_bytes = 0;
  unsigned char reserved[56] = {};
};
static_assert(sizeof(pool_properties) == 88);

}  // namespace kiln::gpu
