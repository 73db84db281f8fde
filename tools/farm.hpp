// The three sub-commands of `kiln farm` and the options that they share. Each function declares the options of its
// sub-command and returns the action to run.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "ir/error.hpp"
#include "jit/remote/redis_client.hpp"
#include "tools/command.hpp"

namespace kiln::tools {

struct farm_choice {
  std::string redis = "redis://127.0.0.1:6379";
  double keep_days = 7;
};
void add_farm_options(CLI::App& app, farm_choice& choice);
std::chrono::seconds keep_time(const farm_choice& choice);

action declare_farm_submit(CLI::App& app);
action declare_farm_worker(CLI::App& app);
action declare_farm_status(CLI::App& app);

}  // namespace kiln::tools
