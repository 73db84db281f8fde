// The jobs of one `kiln farm submit`: models × options (× targets for .kiln files), each with a name for its result.
// Also uploads the models to the server.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "jit/remote/blob_store.hpp"
#include "jit/remote/farm_job.hpp"
#include "tools/model_list.hpp"

namespace kiln::tools {

struct batch_job {
  farm_job job;
  std::string id;
  std::string result_name;                             // name of the file that the result is fetched to
  std::map<std::string, std::filesystem::path> files;  // paths of the inputs on this machine, by input name
};

struct batch_options {
  std::vector<std::string> variants;  // option lists, each as one text; empty: one list without options
  std::vector<std::string> targets;   // for .kiln files
  std::uint64_t max_bytes = std::uint64_t{1} << 30;
  bool shared = false;  // workers read the files from shared storage instead of the server
};

// Makes the jobs; each file is read and hashed once. Throws error{usage, unsupported, missing_file}, for example for
// options that a farm does not accept, models that are too large, or two results with the same name.
std::vector<batch_job> make_batch(const std::vector<listed_model>& models, const batch_options& options);

// Uploads the inputs that workers must fetch and that the server does not have yet.
void upload_inputs(const batch_job& job, blob_store& blobs);

}  // namespace kiln::tools
