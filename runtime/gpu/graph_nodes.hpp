// One node of a graph in the words of either driver. The functions answer the driver's status and throw nothing of
// their own; what they are given is read before they return. The device is current.
#pragma once

#include <span>
#include <string_view>

#include "runtime/gpu/state.hpp"
#include "runtime/graph/device_graph.hpp"

namespace kiln::gpu {

// The first function that graphs cannot do without and that the driver lacks; empty where there is none.
std::string_view missing_for_graphs(const gpu_driver& driver);
bool can_capture(const gpu_driver& driver);

// A launch, a copy or a word.
int add_node(state& of, void* graph, std::span<void* const> after, const graph_node& what, void** node);
int set_node(state& of, void* exec, void* node, const graph_node& what);
// The same work given to a stream. Foreign work may throw.
int enqueue_node(state& of, void* stream, const graph_node& what);

int instantiate(state& of, void* graph, void** exec);
int update(state& of, void* exec, void* graph);

}  // namespace kiln::gpu
