// The options of the execution provider, with the names of the command line. They come as entries of the session's
// configuration, "ep.kilnexecutionprovider.NAME".
#pragma once

#include <map>
#include <string>

#include "onnxruntime/api.hpp"
#include "runtime/kiln.h"

namespace kiln::ort {

inline constexpr const char* provider_name = "KilnExecutionProvider";

struct provider_options {
  std::string device = "host", cache, compiler, precision;
  unsigned threads = 0;
  bool no_cache = false, if_cached = false;
  kiln_specialization specialize = KILN_SPECIALIZE_LAZY;
  kiln_tuning tune = KILN_TUNING_OFF;
  double tune_budget = 0;  // seconds; 0: the default
  kiln_graph_policy graph = KILN_GRAPH_AUTO;
};

// Throws failure{ORT_INVALID_ARGUMENT} that names an unknown option or a value that makes no sense.
provider_options read_options(const OrtSessionOptions* session);

}  // namespace kiln::ort
