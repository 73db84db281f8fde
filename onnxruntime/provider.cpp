#include "onnxruntime/provider.hpp"

#include <algorithm>
#include <memory>
#include <numeric>
#include <set>

#include "onnxruntime/node_order.hpp"
#include "onnxruntime/partition.hpp"

namespace kiln::ort {
namespace {

// A fused node, as ONNX Runtime runs it.
struct fused_node : OrtNodeComputeInfo {
  explicit fused_node(std::unique_ptr<part> p) : OrtNodeComputeInfo{}, runs(std::move(p)) {
    ort_version_supported = api_version;
    CreateState = [](OrtNodeComputeInfo* self, OrtNodeComputeContext*, void** state) noexcept -> OrtStatus* {
      *state = static_cast<fused_node*>(self)->runs.get();
      return nullptr;
    };
    Compute = [](OrtNodeComputeInfo*, void* state, OrtKernelContext* context) noexcept -> OrtStatus* {
      return guarded([&] { static_cast<part*>(state)->run(context); });
    };
    ReleaseState = [](OrtNodeComputeInfo*, void*) noexcept {};
  }
  std::unique_ptr<part> runs;
};

std::vector<std::string> sorted(std::vector<std::string> names) {
  std::ranges::sort(names);
  return names;
}

// The node that a message names, or else the nodes that read a value which it names, or else the one that makes it.
std::vector<const OrtNode*> named_in(const std::string& message, const std::vector<const OrtNode*>& nodes) {
  const auto has = [&](const std::string& name) {
    return !name.empty() && message.find("'" + name + "'") != std::string::npos;
  };
  const auto has_any = [&](const std::vector<const OrtValueInfo*>& values) {
    return std::ranges::any_of(values, [&](const OrtValueInfo* v) { return has(name_of(v)); });
  };
  std::vector<const OrtNode*> readers, makers;
  for (const OrtNode* n : nodes) {
    if (has(name_of(n))) return {n};
    if (has_any(inputs_of(n))) readers.push_back(n);
    if (has_any(outputs_of(n))) makers.push_back(n);
  }
  return readers.empty() ? makers : readers;
}

// The body of an If, a Loop or a Scan is taken with the node that it belongs to. ONNX Runtime 1.23 does not tell which
// node that is, but which values come from outside.
bool is_body(const OrtGraph* graph, const std::vector<const OrtNode*>& nodes) {
  const OrtNode* parent = nullptr;
  require(runtime().api->Graph_GetParentNode(graph, &parent));
  if (parent) return true;
  for (const OrtNode* n : nodes)
    for (const OrtValueInfo* v : inputs_of(n)) {
      bool outside = false;
      if (v) require(runtime().api->ValueInfo_IsFromOuterScope(v, &outside));
      if (outside) return true;
    }
  return false;
}

}  // namespace

provider::provider(const OrtSessionOptions* session, const OrtLogger* logger, std::shared_ptr<gpu> on)
    : OrtEp{},
      logger_(logger),
      gpu_(std::move(on)),
      options_(read_options(session, gpu_ ? &gpu_->name() : nullptr)),
      contexts_(read_context_options(session)),
      compiler_(options_) {
  ort_version_supported = api_version;
  GetName = [](const OrtEp* self) noexcept { return static_cast<const provider*>(self)->name(); };
  GetCapability = [](OrtEp* self, const OrtGraph* graph, OrtEpGraphSupportInfo* to) noexcept {
    return static_cast<provider*>(self)->take_nodes(graph, to);
  };
  Compile = [](OrtEp* self, const OrtGraph** graphs, const OrtNode** fused, size_t count, OrtNodeComputeInfo** to,
               OrtNode** contexts) noexcept {
    return static_cast<provider*>(self)->open_parts(graphs, fused, count, to, contexts);
  };
  ReleaseNodeComputeInfos = [](OrtEp*, OrtNodeComputeInfo** infos, size_t count) noexcept {
    for (size_t i = 0; i < count; ++i) delete static_cast<fused_node*>(infos[i]);
  };
}

void provider::tell(OrtLoggingLevel level, const std::string& text) const {
  if (OrtStatus* status =
          runtime().api->Logger_LogMessage(logger_, level, text.c_str(), "onnxruntime/provider.cpp", __LINE__, name()))
    runtime().api->ReleaseStatus(status);
}

std::string provider::compile(const OrtGraph* graph, const std::vector<const OrtNode*>& nodes) {
  try {
    const graph_model model = model_of(graph, nodes, compiler::data_file);
    compiled_[sorted(model.outputs)] = {compiler_.compile(model), model.inputs, model.outputs};
    return "";
  } catch (const std::exception& e) {
    return e.what();
  }
}

// If the compiler refuses the model, it names a node. That node is left out, and the rest is tried again.
OrtStatus* provider::take_nodes(const OrtGraph* graph, OrtEpGraphSupportInfo* to) noexcept {
  return guarded([&] {
    const std::vector<const OrtNode*> nodes = nodes_of(graph);
    if (is_body(graph, nodes)) return;
    if (has_part_in_body(nodes, name())) {
      tell(ORT_LOGGING_LEVEL_WARNING,
           "Kiln leaves nodes to ONNX Runtime (" + std::to_string(nodes.size()) +
               "): a body has parts, and in this ONNX Runtime those of its graph would have the "
               "same names; 1.25 tells which graphs are bodies");
      return;
    }
    std::map<std::string, std::size_t> reasons;
    std::set<const OrtNode*> left;
    std::vector<std::vector<const OrtNode*>> contexts;
    for (const OrtNode* n : nodes)
      if (is_own_context(n)) {
        compiled_part what = read_context_node(graph, n, compiler_);
        std::vector<std::string> outputs = what.outputs;
        compiled_.insert_or_assign(sorted(std::move(outputs)), std::move(what));
        contexts.push_back({n});
        left.insert(n);
      } else if (std::string reason = reason_against(graph, n, compiler_); !reason.empty())
        left.insert(n), ++reasons[reason];
    constexpr int most_rounds = 16;
    constexpr std::size_t least_nodes = 2;  // of a part, if ONNX Runtime runs nodes besides
    std::vector<std::vector<const OrtNode*>> taken;
    for (int round = 0; round < most_rounds; ++round) {
      taken.clear();
      bool again = false;
      for (auto& part : parts_of(graph, [&](const OrtNode* n) { return !left.contains(n); })) {
        if (part.size() < least_nodes && !left.empty()) continue;
        if (const OrtNode* n = reader_without_input(part)) {
          ++reasons[operator_of(n) + ": this ONNX Runtime does not pass what only its bodies read; 1.27 does"];
          left.insert(n);
          again = true;
          continue;
        }
        const std::string problem = compile(graph, part);
        if (problem.empty()) {
          taken.push_back(std::move(part));
          continue;
        }
        ++reasons[problem];
        const std::vector<const OrtNode*> named = named_in(problem, part);
        if (named.empty()) left.insert(part.begin(), part.end());
        left.insert(named.begin(), named.end());
        again |= !named.empty();
      }
      if (!again) break;
    }
    taken.insert(taken.end(), contexts.begin(), contexts.end());
    const auto count_taken = [&] {
      return std::accumulate(taken.begin(), taken.end(), std::size_t{0},
                             [](auto n, const auto& p) { return n + p.size(); });
    };
    // Between nodes on the GPU and others ONNX Runtime puts copies, which are kernels that the provider does not have.
    if (gpu_ && count_taken() < nodes.size()) {
      ++reasons["tensors are on the GPU only if Kiln runs all nodes; " + std::string(provider_name) +
                " with device=" + gpu_->name() + " runs the others"];
      taken.clear();
    }
    for (const auto& part : taken) {
      OrtNodeFusionOptions options{};
      options.ort_version_supported = api_version;
      options.drop_constant_initializers = true;
      require(runtime().ep->EpGraphSupportInfo_AddNodesToFuse(to, part.data(), part.size(), &options));
    }
    tell(ORT_LOGGING_LEVEL_INFO, "Kiln runs " + std::to_string(count_taken()) + " of " + std::to_string(nodes.size()) +
                                     " nodes in " + std::to_string(taken.size()) + " parts");
    for (const auto& [reason, times] : reasons)
      tell(ORT_LOGGING_LEVEL_WARNING, "Kiln leaves nodes to ONNX Runtime (" + std::to_string(times) + "): " + reason);
  });
}

OrtStatus* provider::open_parts(const OrtGraph** graphs, const OrtNode** fused, std::size_t count,
                                OrtNodeComputeInfo** to, OrtNode** contexts) noexcept {
  std::fill_n(to, count, nullptr);
  const bool writes = contexts_.enabled && contexts;
  if (writes) std::fill_n(contexts, count, nullptr);
  OrtStatus* status = guarded([&] {
    for (std::size_t i = 0; i < count; ++i) {
      std::vector<node_value> inputs, outputs;
      std::vector<std::string> given;
      for (const OrtValueInfo* v : inputs_of(fused[i])) inputs.push_back({name_of(v), element_type_of(v)});
      for (const OrtValueInfo* v : outputs_of(fused[i])) {
        outputs.push_back({name_of(v), element_type_of(v)});
        given.push_back(name_of(v));
      }
      const auto found = compiled_.find(sorted(given));
      if (found == compiled_.end())
        throw std::runtime_error("kiln: the fused node '" + name_of(fused[i]) +
                                 "' is none of the parts that were taken");
      to[i] = new fused_node(std::make_unique<part>(found->second, options_, gpu_, inputs, outputs));
      if (writes) contexts[i] = make_context_node(graphs[i], fused[i], found->second, contexts_);
    }
  });
  if (!status) return nullptr;
  for (std::size_t i = 0; i < count; ++i) {
    delete static_cast<fused_node*>(to[i]), to[i] = nullptr;
    if (writes && contexts[i]) runtime().api->ReleaseNode(contexts[i]), contexts[i] = nullptr;
  }
  return status;
}

}  // namespace kiln::ort
