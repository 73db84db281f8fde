// Graph nodes in terms of either driver. The functions return the driver's status and do not throw errors of their own.
// They read their arguments before they return. The device must be current.
#pragma once

#include <span>
#include <string_view>

#include "runtime/gpu/state.hpp"
#include "runtime/graph/device_graph.hpp"

namespace kiln::gpu {

// The first function that graphs require and the driver lacks; empty if it has all.
std::string_view missing_for_graphs(const gpu_driver& driver);
bool can_capture(const gpu_driver& driver);

// Adds a node: a launch, a copy or a word to set.
int add_node(state& of, void* graph, std::span<void* const> after, const graph_node& what, void** node);
int set_node(state& of, void* exec, void* node, const graph_node& what);
// Enqueues the same work to a stream. A foreign call may throw.
int enqueue_node(state& of, void* stream, const graph_node& what);

int instantiate(state& of, void* graph, void** exec);
int update(state& of, void* exec, void* graph);

}  // namespace kiln::gpu
