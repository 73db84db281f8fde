#include "runtime/model_runner.hpp"

#include <utility>

namespace kiln {
namespace {

class fixed_runner final : public model_runner {
 public:
  fixed_runner(executable what, const graph_options& graphs, std::function<void(const execution_context&)> at_end)
      : what_(std::move(what)), context_(what_.make_context(graphs)), at_end_(std::move(at_end)) {}
  ~fixed_runner() override {
    if (at_end_) at_end_(context_);
  }
  void run(std::span<const executable::input_span> inputs, std::span<const executable::output_span> outputs) override {
    what_.run(context_, inputs, outputs);
  }
  void run(std::span<const executable::input_span> inputs, std::span<const executable::output_span> outputs,
           device_stream& stream) override {
    what_.run(context_, inputs, outputs, stream);
  }
  const execution_context& context() const override { return context_; }

 private:
  executable what_;
  execution_context context_;
  std::function<void(const execution_context&)> at_end_;
};

}  // namespace

std::unique_ptr<model_runner> make_runner(executable what, const graph_options& graphs,
                                          std::function<void(const execution_context&)> at_end) {
  return std::make_unique<fixed_runner>(std::move(what), graphs, std::move(at_end));
}

}  // namespace kiln
