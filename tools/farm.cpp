#include "tools/farm.hpp"

#include <memory>

namespace kiln::tools {

void add_farm_options(CLI::App& app, farm_choice& choice) {
  app.add_option(
         "--redis", choice.redis,
         "The server: redis://[USER:PASSWORD@]HOST[:PORT][/DATABASE], rediss:// for TLS, or unix:///SOCKET, with "
         "?password-file=FILE")
      ->capture_default_str();
  app.add_option("--keep", choice.keep_days, "Days for which the server keeps models and results")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
}

std::chrono::seconds keep_time(const farm_choice& choice) {
  return std::chrono::duration_cast<std::chrono::seconds>(
             std::chrono::duration<double, std::ratio<86400>>(choice.keep_days)) +
         std::chrono::seconds(1);
}

action declare_farm(CLI::App& app) {
  auto chosen = std::make_shared<action>();
  app.require_subcommand(1);
  auto add = [&](const char* name, const char* summary, action (*declare)(CLI::App&)) {
    CLI::App* sub = app.add_subcommand(name, summary);
    sub->fallthrough();  // --json, --quiet and --verbose may follow
    action act = declare(*sub);
    sub->final_callback([chosen, act] { *chosen = act; });
  };
  add("submit", "Queue models; with --wait, fetch the results", declare_farm_submit);
  add("worker", "Run queued jobs until stopped", declare_farm_worker);
  add("status", "Show queue, workers, dead and flaky jobs", declare_farm_status);
  return [chosen](const output_options& output) { return (*chosen)(output); };
}

}  // namespace kiln::tools
