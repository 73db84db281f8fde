#include "runtime/gpu/graph_nodes.hpp"

#include "runtime/gpu/handles.hpp"

namespace kiln::gpu {
namespace {

unsigned narrow(std::int64_t number) { return static_cast<unsigned>(number); }
void** parameters_of(const graph_node& node) { return const_cast<void**>(node.launch.parameters.data()); }
void* function_of(const graph_node& node) { return static_cast<const function*>(node.launch.kernel.function)->native; }

cuda_kernel_node cuda_kernel(const graph_node& node) {
  const launch_request& l = node.launch;
  return {function_of(node),       {narrow(l.grid), narrow(l.grid_y), narrow(l.grid_z)},
          {narrow(l.block), 1, 1}, narrow(l.lds_bytes),
          parameters_of(node),     nullptr};
}

hip_kernel_node hip_kernel(const graph_node& node) {
  const launch_request& l = node.launch;
  return {{narrow(l.block), 1, 1}, nullptr,
          function_of(node),       {narrow(l.grid), narrow(l.grid_y), narrow(l.grid_z)},
          parameters_of(node),     narrow(l.lds_bytes)};
}

cuda_copy_node cuda_copy(const graph_node& node) {
  cuda_copy_node copy;
  copy.from.device = node.from;
  copy.to.device = node.to;
  copy.bytes = node.bytes;
  return copy;
}

cuda_fill_node cuda_fill(const graph_node& node) { return {node.to, 0, node.value, 4, 1, 1}; }
hip_fill_node hip_fill(const graph_node& node) { return {node.to, 4, 1, 4, node.value, 1}; }

bool is_cuda(const state& of) { return of.driver().which() == api::cuda; }

struct needed {
  template <class Function>
  needed(Function* pointer, std::string_view called) : here(pointer != nullptr), name(called) {}
  needed(bool found, std::string_view called) : here(found), name(called) {}
  bool here;
  std::string_view name;
};
template <std::size_t N>
std::string_view first_missing(const needed (&functions)[N]) {
  for (const needed& n : functions)
    if (!n.here) return n.name;
  return {};
}

}  // namespace

std::string_view missing_for_graphs(const gpu_driver& driver) {
  const driver_functions& f = driver.functions();
  bool instantiates = f.graph_instantiate_flags || f.graph_instantiate;
  if (driver.which() == api::cuda)
    return first_missing({{f.graph_create, "cuGraphCreate"},
                          {f.graph_destroy, "cuGraphDestroy"},
                          {f.graph_add_kernel, "cuGraphAddKernelNode"},
                          {f.cuda_add_copy, "cuGraphAddMemcpyNode"},
                          {f.cuda_add_fill, "cuGraphAddMemsetNode"},
                          {instantiates, "cuGraphInstantiateWithFlags"},
                          {f.exec_destroy, "cuGraphExecDestroy"},
                          {f.graph_launch, "cuGraphLaunch"}});
  return first_missing({{f.graph_create, "hipGraphCreate"},
                        {f.graph_destroy, "hipGraphDestroy"},
                        {f.graph_add_kernel, "hipGraphAddKernelNode"},
                        {f.hip_add_copy, "hipGraphAddMemcpyNode1D"},
                        {f.hip_add_fill, "hipGraphAddMemsetNode"},
                        {instantiates, "hipGraphInstantiateWithFlags"},
                        {f.exec_destroy, "hipGraphExecDestroy"},
                        {f.graph_launch, "hipGraphLaunch"}});
}

bool can_capture(const gpu_driver& driver) {
  return driver.functions().capture_begin && driver.functions().capture_end;
}

int add_node(state& of, void* graph, std::span<void* const> after, const graph_node& what, void** node) {
  const driver_functions& f = of.functions();
  if (what.what == graph_node::kind::launch) {
    if (is_cuda(of)) {
      cuda_kernel_node kernel = cuda_kernel(what);
      return f.graph_add_kernel(node, graph, after.data(), after.size(), &kernel);
    }
    hip_kernel_node kernel = hip_kernel(what);
    return f.graph_add_kernel(node, graph, after.data(), after.size(), &kernel);
  }
  if (what.what == graph_node::kind::copy) {
    if (!is_cuda(of))
      return f.hip_add_copy(node, graph, after.data(), after.size(), what.to, what.from, what.bytes,
                            copy_on_device_kind);
    cuda_copy_node copy = cuda_copy(what);
    return f.cuda_add_copy(node, graph, after.data(), after.size(), &copy, of.context());
  }
  if (is_cuda(of)) {
    cuda_fill_node fill = cuda_fill(what);
    return f.cuda_add_fill(node, graph, after.data(), after.size(), &fill, of.context());
  }
  hip_fill_node fill = hip_fill(what);
  return f.hip_add_fill(node, graph, after.data(), after.size(), &fill);
}

int set_node(state& of, void* exec, void* node, const graph_node& what) {
  const driver_functions& f = of.functions();
  if (what.what == graph_node::kind::launch) {
    if (!f.exec_set_kernel) return status_not_supported;
    if (is_cuda(of)) {
      cuda_kernel_node kernel = cuda_kernel(what);
      return f.exec_set_kernel(exec, node, &kernel);
    }
    hip_kernel_node kernel = hip_kernel(what);
    return f.exec_set_kernel(exec, node, &kernel);
  }
  if (what.what == graph_node::kind::copy) {
    if (f.hip_set_copy) return f.hip_set_copy(exec, node, what.to, what.from, what.bytes, copy_on_device_kind);
    if (!f.cuda_set_copy) return status_not_supported;
    cuda_copy_node copy = cuda_copy(what);
    return f.cuda_set_copy(exec, node, &copy, of.context());
  }
  if (f.hip_set_fill) {
    hip_fill_node fill = hip_fill(what);
    return f.hip_set_fill(exec, node, &fill);
  }
  if (!f.cuda_set_fill) return status_not_supported;
  cuda_fill_node fill = cuda_fill(what);
  return f.cuda_set_fill(exec, node, &fill, of.context());
}

int enqueue_node(state& of, void* stream, const graph_node& what) {
  const driver_functions& f = of.functions();
  switch (what.what) {
    case graph_node::kind::launch: {
      const launch_request& l = what.launch;
      return f.launch(function_of(what), narrow(l.grid), narrow(l.grid_y), narrow(l.grid_z), narrow(l.block), 1, 1,
                      narrow(l.lds_bytes), stream, parameters_of(what), nullptr);
    }
    case graph_node::kind::copy: return f.copy_on_device(what.to, what.from, what.bytes, stream);
    case graph_node::kind::word: return f.fill_words(what.to, what.value, 1, stream);
    case graph_node::kind::call:
      what.call.enqueue(what.call.data, stream, what.call.inputs, what.call.outputs);
      return status_ok;
  }
  return status_not_supported;
}

int instantiate(state& of, void* graph, void** exec) {
  const driver_functions& f = of.functions();
  if (f.graph_instantiate_flags) return f.graph_instantiate_flags(exec, graph, 0);
  return f.graph_instantiate(exec, graph, nullptr, nullptr, 0);
}

int update(state& of, void* exec, void* graph) {
  const driver_functions& f = of.functions();
  if (f.exec_update) {
    void* node = nullptr;
    int result = 0;
    return f.exec_update(exec, graph, &node, &result);
  }
  if (!f.exec_update_2) return status_not_supported;
  cuda_update_result result;
  return f.exec_update_2(exec, graph, &result);
}

}  // namespace kiln::gpu
