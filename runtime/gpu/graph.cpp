#include "runtime/gpu/graph.hpp"

namespace kiln::gpu {

namespace {

// Estimates the memory that the driver keeps for a graph. It is not less than 64 contexts with a graph each took more
// than without, for each graph: 0.48 MiB with 19 nodes, 0.58 with 35 (H200), 0.41 with 139, 1.97 with 514 (H100;
// bench_session --parts).
std::size_t estimated_bytes(std::size_t nodes) {
  constexpr std::size_t of_graph = std::size_t{512} << 10, of_node = 3 << 10;
  return of_graph + nodes * of_node;
}

}  // namespace

raw_graph::~raw_graph() {
  if (!native_ || state_->hung()) return;
  current_device now(*state_);
  state_->note(state_->functions().graph_destroy(native_));
}

raw_graph make_raw_graph(state& of) {
  void* native = nullptr;
  of.require(of.functions().graph_create(&native, 0), "making a graph");
  return {of, native};
}

stream_capture::stream_capture(state& of) : state_(of), stream_(of) {
  if (!can_capture(of.driver()))
    throw error(error_kind::unsupported,
                "device " + of.name() + ": its driver does not support stream capture: update the driver");
  of.require(of.functions().capture_begin(stream_.get(), capture_of_this_thread), "beginning a capture");
  open_ = true;
}

stream_capture::~stream_capture() {
  if (!open_ || state_.hung()) return;
  current_device now(state_);
  void* graph = nullptr;
  state_.note(state_.functions().capture_end(stream_.get(), &graph));
  if (graph) state_.note(state_.functions().graph_destroy(graph));
}

void* stream_capture::last_node() const {
  const driver_functions& f = state_.functions();
  if (!f.capture_info) return nullptr;
  int status = 0;
  unsigned long long id = 0;
  void* graph = nullptr;
  void* const* nodes = nullptr;
  std::size_t count = 0;
  state_.require(f.capture_info(stream_.get(), &status, &id, &graph, &nodes, &count), "querying a capture");
  if (status != capturing)
    throw error(error_kind::unsupported, "device " + state_.name() + ": a captured call ended the capture");
  return count == 1 ? nodes[0] : nullptr;
}

raw_graph stream_capture::end() {
  void* graph = nullptr;
  int status = state_.functions().capture_end(stream_.get(), &graph);
  open_ = status != status_ok;
  state_.require(status, "ending a capture");
  return {state_, graph};
}

gpu_graph::~gpu_graph() {
  if (!exec_) return;
  state_.remove_graph(bytes_);
  if (state_.hung()) return;
  current_device now(state_);
  state_.note(state_.functions().exec_destroy(exec_));
}

void gpu_graph::instantiate() {
  working_device now(state_);
  void* made = nullptr;
  state_.require(gpu::instantiate(state_, native(), &made), "instantiating a graph");
  exec_ = made;
  bytes_ = estimated_bytes(nodes_.size());
  state_.add_graph(bytes_);
}

bool gpu_graph::accepted(int status) {
  if (status == status_ok) return true;
  state_.note(status);
  state_.require_alive();
  return false;
}

bool gpu_graph::patch(std::uint32_t node, const graph_node& with) {
  if (!nodes_[node]) return false;
  working_device now(state_);
  if (with.what == graph_node::kind::call) return patch_call(nodes_[node], with);
  return accepted(set_node(state_, exec_, nodes_[node], with));
}

bool gpu_graph::patch_call(void* node, const graph_node& with) {
  if (!state_.functions().exec_set_child) return false;
  stream_capture capture(state_);
  state_.require(enqueue_node(state_, capture.stream(), with), "capturing a call");
  raw_graph child = capture.end();
  return accepted(state_.functions().exec_set_child(exec_, node, child.get()));
}

bool gpu_graph::update(device_graph& from) {
  working_device now(state_);
  return accepted(gpu::update(state_, exec_, static_cast<gpu_graph&>(from).native()));
}

void gpu_graph::launch(device_stream& stream) {
  auto& on = static_cast<gpu::stream&>(stream);
  if (on.failed()) return;  // drop further launches until the error is reported
  working_device now(state_);
  state_.require(state_.functions().graph_launch(exec_, on.native()), "launching a graph");
}

bool node_graph::add_early(const graph_node& node, std::uint32_t after) {
  const driver_functions& f = state_.functions();
  if (!f.cuda_add_edges) return false;
  void* made = nullptr;
  state_.require(add_node(state_, graph_.get(), {}, node, &made), "adding a node to a graph");
  constexpr cuda_edge early{1, 0, 1}, full;
  int status = f.cuda_add_edges(graph_.get(), &nodes_[after], &made, &early, 1);
  state_.note(status);
  if (status)
    state_.require(f.cuda_add_edges(graph_.get(), &nodes_[after], &made, &full, 1), "adding an edge to a graph");
  nodes_.push_back(made);
  return true;
}

void node_graph::add(const graph_node& node, std::span<const std::uint32_t> after) {
  working_device now(state_);
  bool launches = node.what == graph_node::kind::launch;
  launches_.push_back(launches);
  if (launches && node.launch.waits && after.size() == 1 && launches_[after[0]] && add_early(node, after[0])) return;
  after_.clear();
  for (std::uint32_t earlier : after) after_.push_back(nodes_[earlier]);
  void* made = nullptr;
  if (node.what == graph_node::kind::call) {
    if (!state_.functions().graph_add_child)
      throw error(error_kind::unsupported,
                  "device " + state_.name() + ": its driver does not support child graphs: update the driver");
    stream_capture capture(state_);
    state_.require(enqueue_node(state_, capture.stream(), node), "capturing a call");
    raw_graph child = capture.end();  // the driver copies it
    state_.require(state_.functions().graph_add_child(&made, graph_.get(), after_.data(), after_.size(), child.get()),
                   "adding a captured call to a graph");
  } else {
    state_.require(add_node(state_, graph_.get(), after_, node, &made), "adding a node to a graph");
  }
  nodes_.push_back(made);
}

captured_graph::captured_graph(state& of)
    : gpu_graph(of), capture_(std::make_unique<stream_capture>(of)), graph_(of, nullptr) {}

void captured_graph::add(const graph_node& node, std::span<const std::uint32_t>) {
  working_device now(state_);
  state_.require(enqueue_node(state_, capture_->stream(), node), "capturing a step");
  nodes_.push_back(node.what == graph_node::kind::call ? nullptr : capture_->last_node());
}

void captured_graph::finish() {
  working_device now(state_);
  graph_ = capture_->end();
  capture_.reset();
}

}  // namespace kiln::gpu
