// The options of the execution provider, with the names of the command line. They come as entries of the session's
// configuration, "ep.kilnexecutionprovider.NAME" or "ep.kilngpuexecutionprovider.NAME".
#pragma once

#include <map>
#include <optional>
#include <string>

#include "onnxruntime/api.hpp"
#include "runtime/kiln.h"

namespace kiln::ort {

// Two providers: tensors of the first are in the memory of the host, those of the second in that of a GPU.
inline constexpr const char* provider_name = "KilnExecutionProvider";
inline constexpr const char* gpu_provider_name = "KilnGpuExecutionProvider";

struct provider_options {
  std::string device = "host", cache, compiler, precision;
  unsigned threads = 0;
  bool no_cache = false, if_cached = false;
  kiln_specialization specialize = KILN_SPECIALIZE_LAZY;
  kiln_tuning tune = KILN_TUNING_OFF;
  double tune_budget = 0;  // seconds; 0: the default
  kiln_graph_policy graph = KILN_GRAPH_AUTO;
  std::optional<void*> stream;  // of the caller's, on which runs are enqueued; for tensors on a GPU
};

// Throws failure{ORT_INVALID_ARGUMENT} that names an unknown option or a value that makes no sense.
// `gpu` is the device of the provider for GPUs, null for the other one.
provider_options read_options(const OrtSessionOptions* session, const std::string* gpu);

}  // namespace kiln::ort
