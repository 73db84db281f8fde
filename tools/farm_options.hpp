// The table of jobs that a farm accepts: for each kind the command that it runs, and the options that it allows with
// the form of their values. Submitters and workers use the same table, so a worker refuses every item that `kiln farm
// submit` would not have sent.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "jit/remote/farm_job.hpp"

namespace kiln::tools {

// The form of an option's value. No form can name a device, or a file or folder outside of the job.
enum class farm_value {
  none,        // the option is a flag
  dim_range,   // NAME=VALUE or NAME=MIN:MAX[:OPT,...]
  dim_values,  // NAME=VALUE[,VALUE...]
  // NAME=VALUE[,VALUE...] for an input.
  elements,
  target,  // a row of `kiln targets`, except native, which differs between workers
  source,  // one of the job's inputs, not the model
};

struct farm_option {
  std::string_view name;
  farm_value value;
};

struct farm_command {
  const char* command;
  const char* model;  // name of the first input in the job's folder
  const char* result;
  const char* extension;  // of the file that the result is fetched to
  std::vector<std::string> result_options;
  std::vector<farm_option> allowed;
};
const farm_command& command_of(farm_kind kind);

// An option that was given, and its value ("" for a flag).
struct given_option {
  std::string_view name;
  farm_value kind;
  std::string value;
};

// Parses the options of a job: `--name value` or `--name=value` with names from the table, and no other words. Throws
// error{unsupported} naming a word that is not allowed, error{usage} for an invalid value.
std::vector<given_option> read_farm_options(farm_kind kind, const std::vector<std::string>& options);

// Checks that the table allows the job's options, and that its inputs have the names that the command expects. Throws
// error{unsupported, usage} otherwise.
void check_farm_job(const farm_job& job);

}  // namespace kiln::tools
