// A session on a model, with one instance and inputs for it, for the commands run, perf, tune and verify.
#pragma once

#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "session/session.hpp"
#include "tools/command.hpp"
#include "tools/model_options.hpp"
#include "tools/session_view.hpp"

namespace kiln::tools {

// A session on a model with one instance and inputs for it, as the options say.
class opened_model {
 public:
  // Opens options.file.
  opened_model(const model_options& options, const output_options& output);
  // Takes a program in memory instead (verify), whose payloads this process made: it reads them itself, unless
  // --isolated is given.
  opened_model(program portable, const model_options& options, const output_options& output);
  // Goes on at the sizes that these options name, with new inputs where they give none. Throws as the constructor does;
  // the model stays where it was if a size is refused.
  void move_to(const model_options& options);

  const session_resources& resources() const { return session_.resources(); }
  kiln::instance& instance() const { return *instance_; }
  const kiln::executable& executable() const { return instance_->executable(); }
  const std::vector<literal>& inputs() const { return inputs_; }  // in the order of the parameters
  std::map<std::string, literal> named_inputs() const;
  std::vector<literal> run_once();  // with outputs of its own; the first run's time is kept

  // Writes NAME.npy of every output into a folder, which is made if need be. Labels that are text are written as text.
  void write_outputs(const std::string& folder, std::span<const literal> outputs) const;

  double read_ms() const { return session_.read_ms(); }
  double first_run_ms() const { return first_run_ms_; }
  // Tunes in the foreground, with a bar.
  std::vector<kernel_tuning> tune(const tuner_options& options, double budget_ms);
  // The keys that run and perf have in common.
  nlohmann::ordered_json describe() const;

 private:
  void prepare(const model_options& options);
  std::string file_;
  session_view view_;
  session session_;
  std::shared_ptr<kiln::instance> instance_;
  std::vector<literal> inputs_;
  double first_run_ms_ = -1;
  graph_report graph_;  // of run_once()
};

// ", 2 threads" after a description of describe()'s device; nothing for a GPU.
std::string threads_text(const nlohmann::ordered_json& description);

// The key `graph` of documents: how a context ran, what it found out, whether that was known before, and the graphs of
// the device.
nlohmann::ordered_json describe(const graph_report& report, const std::optional<graph_decision>& decision,
                                const graph_memory& memory, const device& of);

}  // namespace kiln::tools
