// The drivers' functions for graphs and captures.
#include <algorithm>
#include <cstdint>

#include "engine.hpp"
#include "entry.hpp"
#include "runtime/gpu/driver_functions.hpp"

using namespace kiln::stand_in;
using namespace kiln::gpu;

namespace {

engine& e = the_engine();

int add(void** node, void* graph, void* const* after, std::size_t count, node_object::kind kind, work run) {
  auto* g = static_cast<graph_object*>(graph);
  if (!e.graphs.contains(g)) return invalid_value;
  auto made = std::make_unique<node_object>(node_object{kind, std::move(run), {}, g});
  for (std::size_t i = 0; i < count; ++i) {
    auto found = std::ranges::find(g->nodes, static_cast<node_object*>(after[i]), &std::unique_ptr<node_object>::get);
    if (found == g->nodes.end()) return invalid_value;
    made->after.push_back(found->get());
  }
  *node = made.get();
  g->nodes.push_back(std::move(made));
  return ok;
}

std::vector<exec_object::node> snapshot(const graph_object& g, std::map<node_object*, std::size_t>* place = nullptr) {
  std::map<node_object*, std::size_t> at;
  std::vector<exec_object::node> nodes;
  for (const auto& n : g.nodes) {
    exec_object::node& made = nodes.emplace_back(exec_object::node{n->what, n->run, {}});
    for (node_object* earlier : n->after) made.after.push_back(at.at(earlier));
    at[n.get()] = nodes.size() - 1;
  }
  if (place) *place = std::move(at);
  return nodes;
}

// Repeatedly runs the last node whose dependencies are satisfied, so that a missing dependency shows.
bool run_all(const std::vector<exec_object::node>& nodes, stream_object& s) {
  std::vector<bool> done(nodes.size());
  for (std::size_t left = nodes.size(); left > 0; --left) {
    std::size_t at = nodes.size();
    for (std::size_t i = nodes.size(); i-- > 0 && at == nodes.size();)
      if (!done[i] && std::ranges::all_of(nodes[i].after, [&](std::size_t earlier) { return done[earlier]; })) at = i;
    if (at == nodes.size() || !nodes[at].run(s)) return false;
    done[at] = true;
    if (s.hung || e.lost(s.device)) return true;
  }
  return true;
}

int instantiate(void** exec, void* graph) {
  auto* g = static_cast<graph_object*>(graph);
  if (!e.graphs.contains(g)) return invalid_value;
  auto* made = new exec_object;
  made->nodes = snapshot(*g, &made->place);
  made->device = engine::current;
  e.execs.insert(made);
  *exec = made;
  return ok;
}

int set(void* exec, void* node, node_object::kind kind, work run) {
  auto* x = static_cast<exec_object*>(exec);
  if (!e.execs.contains(x)) return invalid_value;
  auto found = x->place.find(static_cast<node_object*>(node));
  if (found == x->place.end() || x->nodes[found->second].what != kind) return invalid_value;
  x->nodes[found->second].run = std::move(run);
  return ok;
}

int update(void* exec, void* graph) {
  auto* x = static_cast<exec_object*>(exec);
  auto* g = static_cast<graph_object*>(graph);
  if (!e.execs.contains(x) || !e.graphs.contains(g)) return invalid_value;
  auto nodes = snapshot(*g);
  bool same = nodes.size() == x->nodes.size();
  for (std::size_t i = 0; same && i < nodes.size(); ++i)
    same = nodes[i].what == x->nodes[i].what && nodes[i].after == x->nodes[i].after;
  if (!same) return update_failed;
  x->nodes = std::move(nodes);
  return ok;
}

work child_work(graph_object* child) {
  return [nodes = snapshot(*child)](stream_object& s) { return run_all(nodes, s); };
}

#ifdef KILN_STAND_IN_CUDA
int kernel_of(const void* parameters, work& run) {
  auto& k = *static_cast<const cuda_kernel_node*>(parameters);
  return kernel_work(k.function, k.grid, k.block, k.parameters, run);
}
#else
int kernel_of(const void* parameters, work& run) {
  auto& k = *static_cast<const hip_kernel_node*>(parameters);
  return kernel_work(k.function, k.grid, k.block, k.parameters, run);
}
#endif

}  // namespace

EXPORT int ENTRY(cuGraphCreate, hipGraphCreate)(void** graph, unsigned) {
  return e.call(NAME(cuGraphCreate, hipGraphCreate), [&] {
    auto* made = new graph_object;
    e.graphs.insert(made);
    *graph = made;
    return ok;
  });
}
EXPORT int ENTRY(cuGraphDestroy, hipGraphDestroy)(void* graph) {
  return e.call(
      NAME(cuGraphDestroy, hipGraphDestroy),
      [&] {
        auto* g = static_cast<graph_object*>(graph);
        if (!e.graphs.erase(g)) return invalid_value;
        delete g;
        return ok;
      },
      true);
}
EXPORT int ENTRY(cuGraphAddKernelNode, hipGraphAddKernelNode)(void** node, void* graph, void* const* after,
                                                              std::size_t count, const void* parameters) {
  return e.call(NAME(cuGraphAddKernelNode, hipGraphAddKernelNode), [&] {
    work run;
    int status = kernel_of(parameters, run);
    return status ? status : add(node, graph, after, count, node_object::kind::kernel, std::move(run));
  });
}
EXPORT int ENTRY(cuGraphAddChildGraphNode, hipGraphAddChildGraphNode)(void** node, void* graph, void* const* after,
                                                                      std::size_t count, void* child) {
  return e.call(NAME(cuGraphAddChildGraphNode, hipGraphAddChildGraphNode), [&] {
    auto* c = static_cast<graph_object*>(child);
    return e.graphs.contains(c) ? add(node, graph, after, count, node_object::kind::child, child_work(c))
                                : invalid_value;
  });
}
EXPORT int ENTRY(cuGraphInstantiate_v2, hipGraphInstantiate)(void** exec, void* graph, void**, char*, std::size_t) {
  return e.call(NAME(cuGraphInstantiate_v2, hipGraphInstantiate), [&] { return instantiate(exec, graph); });
}
EXPORT int ENTRY(cuGraphExecKernelNodeSetParams, hipGraphExecKernelNodeSetParams)(void* exec, void* node,
                                                                                  const void* parameters) {
  return e.call(NAME(cuGraphExecKernelNodeSetParams, hipGraphExecKernelNodeSetParams), [&] {
    work run;
    int status = kernel_of(parameters, run);
    return status ? status : set(exec, node, node_object::kind::kernel, std::move(run));
  });
}
EXPORT int ENTRY(cuGraphExecUpdate, hipGraphExecUpdate)(void* exec, void* graph, void**, int*) {
  return e.call(NAME(cuGraphExecUpdate, hipGraphExecUpdate), [&] { return update(exec, graph); });
}
EXPORT int ENTRY(cuGraphExecDestroy, hipGraphExecDestroy)(void* exec) {
  return e.call(
      NAME(cuGraphExecDestroy, hipGraphExecDestroy),
      [&] {
        auto* x = static_cast<exec_object*>(exec);
        if (!e.execs.erase(x)) return invalid_value;
        // Not every driver waits here.
        if (*x->pending && !e.lost(x->device)) ++e.late_uses;
        delete x;
        return ok;
      },
      true);
}
EXPORT int ENTRY(cuGraphLaunch, hipGraphLaunch)(void* exec, void* stream) {
  return e.call(NAME(cuGraphLaunch, hipGraphLaunch), [&] {
    auto* x = static_cast<exec_object*>(exec);
    if (!e.execs.contains(x)) return invalid_value;
    ++*x->pending;
    return later(
        stream,
        [nodes = x->nodes, pending = x->pending](stream_object& s) {
          --*pending;
          return run_all(nodes, s);
        },
        node_object::kind::child);
  });
}

EXPORT int ENTRY(cuStreamBeginCapture_v2, hipStreamBeginCapture)(void* stream, int mode) {
  return e.call(NAME(cuStreamBeginCapture_v2, hipStreamBeginCapture), [&] {
    auto* s = static_cast<stream_object*>(stream);
    if (!e.streams.contains(s) || s->capture || mode < 0 || mode > 2)
      return stream ? illegal_state : capture_unsupported;
    s->capture = std::make_unique<graph_object>();
    s->last = nullptr;
    s->invalid = false;
    return ok;
  });
}
// Ends the capture in any case; returns a graph only if there was no error.
EXPORT int ENTRY(cuStreamEndCapture, hipStreamEndCapture)(void* stream, void** graph) {
  *graph = nullptr;
  graph_object* made = nullptr;
  int status = e.call(
      NAME(cuStreamEndCapture, hipStreamEndCapture),
      [&] {
        auto* s = static_cast<stream_object*>(stream);
        if (!e.streams.contains(s) || !s->capture) return illegal_state;
        made = s->capture.release();
        return s->invalid ? capture_invalidated : ok;
      },
      true);
  if (status) {
    delete made;
    return status;
  }
  std::lock_guard lock(e.mutex);
  e.graphs.insert(made);
  *graph = made;
  return ok;
}
#ifndef KILN_STAND_IN_HIP5
EXPORT int ENTRY(cuGraphInstantiateWithFlags, hipGraphInstantiateWithFlags)(void** exec, void* graph,
                                                                            unsigned long long flags) {
  return e.call(NAME(cuGraphInstantiateWithFlags, hipGraphInstantiateWithFlags),
                [&] { return flags ? invalid_value : instantiate(exec, graph); });
}
EXPORT int ENTRY(cuStreamGetCaptureInfo_v2, hipStreamGetCaptureInfo_v2)(void* stream, int* status,
                                                                        unsigned long long* id, void** graph,
                                                                        void* const** nodes, std::size_t* count) {
  return e.call(NAME(cuStreamGetCaptureInfo_v2, hipStreamGetCaptureInfo_v2), [&] {
    auto* s = static_cast<stream_object*>(stream);
    if (!e.streams.contains(s)) return invalid_value;
    *status = !s->capture ? 0 : s->invalid ? 2 : 1;
    *id = 1;
    *graph = s->capture.get();
    *nodes = &s->last;
    *count = s->last ? 1 : 0;
    return ok;
  });
}
EXPORT int ENTRY(cuGraphExecChildGraphNodeSetParams, hipGraphExecChildGraphNodeSetParams)(void* exec, void* node,
                                                                                          void* child) {
  return e.call(NAME(cuGraphExecChildGraphNodeSetParams, hipGraphExecChildGraphNodeSetParams), [&] {
    auto* c = static_cast<graph_object*>(child);
    return e.graphs.contains(c) ? set(exec, node, node_object::kind::child, child_work(c)) : invalid_value;
  });
}
#endif

#ifdef KILN_STAND_IN_CUDA

// Nodes behind a programmatic edge are kernels that wait by themselves, for kernels: here they are run as if it were a
// full one.
EXPORT int cuGraphAddDependencies_v2(void* graph, void* const* from, void* const* to, const void* edges,
                                     std::size_t count) {
  return e.call("cuGraphAddDependencies_v2", [&] {
    if (!e.graphs.contains(static_cast<graph_object*>(graph))) return invalid_value;
    for (std::size_t i = 0; i < count; ++i) {
      auto *before = static_cast<node_object*>(from[i]), *after = static_cast<node_object*>(to[i]);
      auto& edge = static_cast<const cuda_edge*>(edges)[i];
      bool kernels = before->what == node_object::kind::kernel && after->what == node_object::kind::kernel;
      if (before->of != graph || after->of != graph || edge.from_port != edge.type || edge.type > 1 || edge.to_port ||
          (edge.type && !kernels))
        return invalid_value;
      after->after.push_back(before);
    }
    return ok;
  });
}
EXPORT int cuGraphAddMemcpyNode(void** node, void* graph, void* const* after, std::size_t count, const void* parameters,
                                void* context) {
  return e.call("cuGraphAddMemcpyNode", [&] {
    auto& c = *static_cast<const cuda_copy_node*>(parameters);
    if (!context || c.from.memory_type != 2 || c.to.memory_type != 2 || c.height != 1 || c.depth != 1)
      return invalid_value;
    return add(node, graph, after, count, node_object::kind::copy,
               copy_work(const_cast<void*>(c.to.device), c.from.device, c.bytes, false, false));
  });
}
EXPORT int cuGraphExecMemcpyNodeSetParams(void* exec, void* node, const void* parameters, void* context) {
  return e.call("cuGraphExecMemcpyNodeSetParams", [&] {
    auto& c = *static_cast<const cuda_copy_node*>(parameters);
    return context ? set(exec, node, node_object::kind::copy,
                         copy_work(const_cast<void*>(c.to.device), c.from.device, c.bytes, false, false))
                   : invalid_value;
  });
}
EXPORT int cuGraphAddMemsetNode(void** node, void* graph, void* const* after, std::size_t count, const void* parameters,
                                void* context) {
  return e.call("cuGraphAddMemsetNode", [&] {
    auto& f = *static_cast<const cuda_fill_node*>(parameters);
    return context && f.height == 1 ? add(node, graph, after, count, node_object::kind::fill,
                                          fill_work(f.to, f.value, f.element_bytes, f.width))
                                    : invalid_value;
  });
}
EXPORT int cuGraphExecMemsetNodeSetParams(void* exec, void* node, const void* parameters, void* context) {
  return e.call("cuGraphExecMemsetNodeSetParams", [&] {
    auto& f = *static_cast<const cuda_fill_node*>(parameters);
    return context ? set(exec, node, node_object::kind::fill, fill_work(f.to, f.value, f.element_bytes, f.width))
                   : invalid_value;
  });
}

#else

EXPORT int hipGraphAddMemcpyNode1D(void** node, void* graph, void* const* after, std::size_t count, void* to,
                                   const void* from, std::size_t bytes, int kind) {
  return e.call("hipGraphAddMemcpyNode1D", [&] {
    return kind == 3 ? add(node, graph, after, count, node_object::kind::copy, copy_work(to, from, bytes, false, false))
                     : invalid_value;
  });
}
EXPORT int hipGraphExecMemcpyNodeSetParams1D(void* exec, void* node, void* to, const void* from, std::size_t bytes,
                                             int kind) {
  return e.call("hipGraphExecMemcpyNodeSetParams1D", [&] {
    return kind == 3 ? set(exec, node, node_object::kind::copy, copy_work(to, from, bytes, false, false))
                     : invalid_value;
  });
}
EXPORT int hipGraphAddMemsetNode(void** node, void* graph, void* const* after, std::size_t count,
                                 const void* parameters) {
  return e.call("hipGraphAddMemsetNode", [&] {
    auto& f = *static_cast<const hip_fill_node*>(parameters);
    return f.height == 1 ? add(node, graph, after, count, node_object::kind::fill,
                               fill_work(f.to, f.value, f.element_bytes, f.width))
                         : invalid_value;
  });
}
EXPORT int hipGraphExecMemsetNodeSetParams(void* exec, void* node, const void* parameters) {
  return e.call("hipGraphExecMemsetNodeSetParams", [&] {
    auto& f = *static_cast<const hip_fill_node*>(parameters);
    return set(exec, node, node_object::kind::fill, fill_work(f.to, f.value, f.element_bytes, f.width));
  });
}

#endif
